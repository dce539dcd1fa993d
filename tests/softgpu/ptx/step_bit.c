/* Logic, shifts, bit fields, selection and moves. */
#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/steps.h"

typedef uint16_t b16;
typedef uint32_t b32;
typedef uint64_t b64;

#define OP(name, T, ...)                                                                                               \
	STEP(name##_##T)                                                                                               \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d);                                                                     \
		const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b), *c = slot(warp, insn->c);           \
		(void)b;                                                                                               \
		(void)c;                                                                                               \
		LANES(mask, d[i] = (T)(__VA_ARGS__););                                                                 \
		return STEP_NEXT;                                                                                      \
	}
#define SIZE(T) (8 * sizeof(T))
#define SIGNED_b16 int16_t
#define SIGNED_b32 int32_t
#define SIGNED_b64 int64_t

/* Shift amounts are 32 bits unsigned, and those beyond the width shift everything out. */
#define WIDTH(T)                                                                                                       \
	OP(shl, T, (uint32_t)b[i] >= SIZE(T) ? 0 : a[i] << ((uint32_t)b[i] & 63))                                      \
	OP(shr, T, (uint32_t)b[i] >= SIZE(T) ? 0 : (T)a[i] >> ((uint32_t)b[i] & (SIZE(T) - 1)))                        \
	OP(sar, T, (SIGNED_##T)a[i] >> ((uint32_t)b[i] >= SIZE(T) ? SIZE(T) - 1 : (uint32_t)b[i]))                     \
	OP(not, T, ~a[i])                                                                                              \
	OP(cnot, T, (T)a[i] == 0)

WIDTH(b16)
WIDTH(b32)
WIDTH(b64)
/* Slots are zero-extended, so these do not depend on the width. */
OP(and, b64, a[i] & b[i])
OP(or, b64, a[i] | b[i])
OP(xor, b64, a[i] ^ b[i])
OP(mov, b64, a[i])
OP(select, b64, c[i] ? a[i] : b[i])
typedef uint64_t pred;
OP(not, pred, !a[i])

static inline uint64_t reverse(uint64_t x)
{
	x = (x >> 1 & UINT64_C(0x5555555555555555)) | (x & UINT64_C(0x5555555555555555)) << 1;
	x = (x >> 2 & UINT64_C(0x3333333333333333)) | (x & UINT64_C(0x3333333333333333)) << 2;
	x = (x >> 4 & UINT64_C(0x0f0f0f0f0f0f0f0f)) | (x & UINT64_C(0x0f0f0f0f0f0f0f0f)) << 4;
	return __builtin_bswap64(x);
}

OP(clz, b32, (b32)a[i] ? __builtin_clz((b32)a[i]) : 32)
OP(clz, b64, a[i] ? __builtin_clzll(a[i]) : 64)
OP(popc, b64, __builtin_popcountll(a[i]))
OP(brev, b32, reverse(a[i]) >> 32)
OP(brev, b64, reverse(a[i]))

/* The field [start, start + length) of x; bits beyond the width, and bits above the field, repeat the sign. */
static inline uint64_t field(uint64_t x, uint32_t start, uint32_t length, unsigned size, bool is_signed)
{
	if (!length)
		return 0;
	uint32_t last = start + length - 1 < size - 1 ? start + length - 1 : size - 1;
	uint64_t sign = is_signed && x >> last & 1 ? UINT64_MAX : 0;
	uint64_t value = start < size ? x >> start : 0;
	uint32_t there = start < size ? last - start + 1 : 0;

	return there >= 64 ? value : (value & ((UINT64_C(1) << there) - 1)) | (sign << there);
}

static inline uint64_t insert(uint64_t x, uint64_t into, uint32_t start, uint32_t length, unsigned size)
{
	if (!length || start >= size)
		return into;
	uint64_t ones = (length >= 64 ? UINT64_MAX : (UINT64_C(1) << length) - 1) << start;

	return (into & ~ones) | (x << start & ones);
}

/*
 * PTX restricts place and length to 255. Beyond, 32-bit instructions of the hardware drop the upper bits; ptxas makes
 * those of 64 bits from shifts.
 */
static inline uint32_t at_most_255(uint64_t value)
{
	return (uint32_t)value < 255 ? (uint32_t)value : 255;
}

OP(bfe_u, b32, field(a[i], b[i] & 255, c[i] & 255, 32, false))
OP(bfe_s, b32, field(a[i], b[i] & 255, c[i] & 255, 32, true))
OP(bfe_u, b64, field(a[i], at_most_255(b[i]), at_most_255(c[i]), 64, false))
OP(bfe_s, b64, field(a[i], at_most_255(b[i]), at_most_255(c[i]), 64, true))
OP(bfi, b32, insert(a[i], b[i], c[i] & 255, slot(warp, insn->m)[i] & 255, 32))
OP(bfi, b64, insert(a[i], b[i], at_most_255(c[i]), at_most_255(slot(warp, insn->m)[i]), 64))

/*
 * Position of the highest bit that differs from the sign, or how far it is from the top; all ones when there is none.
 */
static inline uint32_t find(uint64_t x, unsigned size, bool is_signed, bool shift)
{
	if (is_signed && x >> (size - 1) & 1)
		x = ~x & width_mask(size / 8);
	if (!x)
		return UINT32_MAX;
	uint32_t position = 63u - (uint32_t)__builtin_clzll(x);

	return shift ? size - 1 - position : position;
}

OP(bfind_u, b32, find(a[i], 32, false, insn->flags &FLAG_CLAMP))
OP(bfind_s, b32, find(a[i], 32, true, insn->flags &FLAG_CLAMP))
OP(bfind_u, b64, find(a[i], 64, false, insn->flags &FLAG_CLAMP))
OP(bfind_s, b64, find(a[i], 64, true, insn->flags &FLAG_CLAMP))

#define ANY(step)                                                                                                      \
	{                                                                                                              \
		[TY_PRED] = step, [TY_B16] = step, [TY_U16] = step, [TY_S16] = step, [TY_B32] = step, [TY_U32] = step, \
		[TY_S32] = step, [TY_B64] = step, [TY_U64] = step, [TY_S64] = step, [TY_F32] = step, [TY_F64] = step,  \
		[TY_F16] = step, [TY_F16X2] = step, [TY_BF16] = step, [TY_BF16X2] = step                               \
	}
#define UNTYPED(step16, step32, step64) [TY_B16] = step16, [TY_B32] = step32, [TY_B64] = step64

step_fn ptx_step_bit(enum bit_op op, enum ptx_type type)
{
	static const step_fn steps[BIT_COUNT][TY_COUNT] = {
		[BIT_AND] = ANY(and_b64),
		[BIT_OR] = ANY(or_b64),
		[BIT_XOR] = ANY(xor_b64),
		[BIT_MOV] = ANY(mov_b64),
		[BIT_SELECT] = ANY(select_b64),
		[BIT_NOT] = {UNTYPED(not_b16, not_b32, not_b64), [TY_PRED] = not_pred},
		[BIT_CNOT] = {UNTYPED(cnot_b16, cnot_b32, cnot_b64)},
		[BIT_SHL] = {UNTYPED(shl_b16, shl_b32, shl_b64)},
		[BIT_SHR] = {UNTYPED(shr_b16, shr_b32, shr_b64), [TY_U16] = shr_b16, [TY_U32] = shr_b32,
	                     [TY_U64] = shr_b64, [TY_S16] = sar_b16, [TY_S32] = sar_b32, [TY_S64] = sar_b64},
		[BIT_CLZ] = {[TY_B32] = clz_b32, [TY_B64] = clz_b64},
		[BIT_POPC] = {[TY_B32] = popc_b64, [TY_B64] = popc_b64},
		[BIT_BREV] = {[TY_B32] = brev_b32, [TY_B64] = brev_b64},
		[BIT_BFE] = {[TY_U32] = bfe_u_b32, [TY_S32] = bfe_s_b32, [TY_U64] = bfe_u_b64, [TY_S64] = bfe_s_b64},
		[BIT_BFI] = {[TY_B32] = bfi_b32, [TY_B64] = bfi_b64},
		[BIT_BFIND] = {[TY_U32] = bfind_u_b32, [TY_S32] = bfind_s_b32, [TY_U64] = bfind_u_b64, [TY_S64] = bfind_s_b64},
	};

	return steps[op][type];
}
