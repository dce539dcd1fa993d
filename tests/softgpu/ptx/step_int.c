/* Integer arithmetic. */
#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/steps.h"

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef __int128 s128;
typedef unsigned __int128 u128;

/* The unsigned type of the same width, in which arithmetic wraps and a result is kept zero-extended. */
#define BITS_u16 u16
#define BITS_s16 u16
#define BITS_u32 u32
#define BITS_s32 u32
#define BITS_u64 u64
#define BITS_s64 u64
/* Twice the width. */
#define WIDE_u16 u32
#define WIDE_s16 s32
#define WIDE_u32 u64
#define WIDE_s32 s64
#define WIDE_u64 u128
#define WIDE_s64 s128
#define WIDE_BITS_u16 u32
#define WIDE_BITS_s16 u32
#define WIDE_BITS_u32 u64
#define WIDE_BITS_s32 u64

#define OP1(name, T, expression)                                                                                       \
	STEP(name##_##T)                                                                                               \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d);                                                                     \
		const uint64_t *a = slot(warp, insn->a);                                                               \
		LANES(mask, T x = (T)a[i]; d[i] = (BITS_##T)(expression););                                            \
		return STEP_NEXT;                                                                                      \
	}
#define OP2(name, T, expression)                                                                                       \
	STEP(name##_##T)                                                                                               \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d);                                                                     \
		const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b);                                     \
		LANES(mask, T x = (T)a[i]; T y = (T)b[i]; d[i] = (BITS_##T)(expression););                             \
		return STEP_NEXT;                                                                                      \
	}
#define OP3(name, T, expression)                                                                                       \
	STEP(name##_##T)                                                                                               \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d);                                                                     \
		const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b), *c = slot(warp, insn->c);           \
		LANES(mask, T x = (T)a[i]; T y = (T)b[i]; T z = (T)c[i]; d[i] = (BITS_##T)(expression););              \
		return STEP_NEXT;                                                                                      \
	}
#define WIDE(T)                                                                                                        \
	STEP(mul_wide_##T)                                                                                             \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d);                                                                     \
		const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b);                                     \
		LANES(mask, d[i] = (WIDE_BITS_##T)((WIDE_##T)(T)a[i] * (WIDE_##T)(T)b[i]););                           \
		return STEP_NEXT;                                                                                      \
	}                                                                                                              \
	STEP(mad_wide_##T)                                                                                             \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d);                                                                     \
		const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b), *c = slot(warp, insn->c);           \
		LANES(mask, d[i] = (WIDE_BITS_##T)((WIDE_BITS_##T)((WIDE_##T)(T)a[i] * (WIDE_##T)(T)b[i]) + c[i]););   \
		return STEP_NEXT;                                                                                      \
	}

#define HIGH(T, x, y) ((BITS_##T)(((WIDE_##T)(x) * (WIDE_##T)(y)) >> 8 * sizeof(T)))
/*
 * The least of a signed type divided by -1 wraps. Division by zero is unspecified in PTX: quotient and remainder are
 * all ones, as the hardware's.
 */
#define DIV_s(T, x, y) ((y) == 0 ? (BITS_##T) - 1 : (y) == -1 ? (BITS_##T)(0 - (BITS_##T)(x)) : (BITS_##T)((x) / (y)))
#define DIV_u(T, x, y) ((y) == 0 ? (BITS_##T) - 1 : (BITS_##T)((x) / (y)))
#define REM_s(T, x, y) ((y) == 0 ? (BITS_##T) - 1 : (y) == -1 ? 0 : (BITS_##T)((x) % (y)))
#define REM_u(T, x, y) ((y) == 0 ? (BITS_##T) - 1 : (BITS_##T)((x) % (y)))
/* u16 products would be computed as int and may overflow: go through 64 bits. */
#define TIMES(x, y) ((u64)(x) * (u64)(y))

#define COMMON(T, S)                                                                                                   \
	OP2(add, T, (u64)x + (u64)y)                                                                                   \
	OP2(sub, T, (u64)x - (u64)y)                                                                                   \
	OP2(mul_lo, T, TIMES(x, y))                                                                                    \
	OP2(mul_hi, T, HIGH(T, x, y))                                                                                  \
	OP3(mad_lo, T, TIMES(x, y) + (u64)z)                                                                           \
	OP3(mad_hi, T, (u64)HIGH(T, x, y) + (u64)z)                                                                    \
	OP3(sad, T, (u64)z + (x < y ? (u64)y - (u64)x : (u64)x - (u64)y))                                              \
	OP2(div, T, DIV_##S(T, x, y))                                                                                  \
	OP2(rem, T, REM_##S(T, x, y))                                                                                  \
	OP2(min, T, x < y ? x : y)                                                                                     \
	OP2(max, T, x > y ? x : y)
#define SIGNED(T)                                                                                                      \
	OP1(abs, T, x < 0 ? 0 - (u64)x : (u64)x)                                                                       \
	OP1(neg, T, 0 - (u64)x)

COMMON(u16, u)
COMMON(s16, s)
COMMON(u32, u)
COMMON(s32, s)
COMMON(u64, u)
COMMON(s64, s)
SIGNED(s16)
SIGNED(s32)
SIGNED(s64)
WIDE(u16)
WIDE(s16)
WIDE(u32)
WIDE(s32)

static inline s32 sign24(s32 x)
{
	return (s32)((u32)x << 8) >> 8;
}

static inline s32 clamp32(s64 value)
{
	return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (s32)value;
}

#define PRODUCT24_u32(x, y) ((u64)((x)&0xffffff) * ((y)&0xffffff))
#define PRODUCT24_s32(x, y) ((u64)((s64)sign24(x) * sign24(y)))
#define MUL24(T)                                                                                                       \
	OP2(mul24_lo, T, PRODUCT24_##T(x, y))                                                                          \
	OP2(mul24_hi, T, PRODUCT24_##T(x, y) >> 16)                                                                    \
	OP3(mad24_lo, T, PRODUCT24_##T(x, y) + (u64)z)                                                                 \
	OP3(mad24_hi, T, (PRODUCT24_##T(x, y) >> 16) + (u64)z)

MUL24(u32)
MUL24(s32)
OP2(add_sat, s32, clamp32((s64)x + y))
OP2(sub_sat, s32, clamp32((s64)x - y))
OP3(mad_hi_sat, s32, clamp32((s64)(s32)HIGH(s32, x, y) + z))
OP3(mad24_hi_sat, s32, clamp32((s64)(s32)(PRODUCT24_s32(x, y) >> 16) + z))

/*
 * Extended precision: the carry goes from one instruction to the next through a slot of its own. A subtraction adds
 * the complement, so its carry is the absence of a borrow: nvcc's 128-bit division reads that with addc.
 */
#define CARRY(name, T, addend, more, inverted, ...)                                                                    \
	STEP(name##_##T)                                                                                               \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d), *out = insn->e == NO_OPERAND ? NULL : slot(warp, insn->e);          \
		const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b), *c = slot(warp, insn->c);           \
		const uint64_t *in = insn->m == NO_OPERAND ? NULL : slot(warp, insn->m);                               \
		(void)c;                                                                                               \
		LANES(mask, T x = (T)a[i]; T y = (T)b[i]; T left = (addend); T right = (more);                         \
		      T carry = in ? (T)(in[i] ^ inverted) : 0; T sum; bool over = __VA_ARGS__; d[i] = sum;            \
		      if (out) out[i] = over ^ inverted;);                                                             \
		return STEP_NEXT;                                                                                      \
	}
#define SUM (int)__builtin_add_overflow(left, right, &sum) | (int)__builtin_add_overflow(sum, carry, &sum)
#define DIFFERENCE (int)__builtin_sub_overflow(left, right, &sum) | (int)__builtin_sub_overflow(sum, carry, &sum)
#define CARRIES(T)                                                                                                     \
	CARRY(add_cc, T, x, y, 0, SUM)                                                                                 \
	CARRY(sub_cc, T, x, y, 1, DIFFERENCE)                                                                          \
	CARRY(mad_lo_cc, T, (T)(x * y), (T)c[i], 0, SUM)                                                               \
	CARRY(mad_hi_cc, T, HIGH(T, x, y), (T)c[i], 0, SUM)

CARRIES(u32)
CARRIES(u64)
/* Only the high half of a product knows signs. */
STEP(mad_hi_cc_s32)
{
	uint64_t *d = slot(warp, insn->d), *out = insn->e == NO_OPERAND ? NULL : slot(warp, insn->e);
	const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b), *c = slot(warp, insn->c);
	const uint64_t *in = insn->m == NO_OPERAND ? NULL : slot(warp, insn->m);

	LANES(mask, u64 sum = (u64)HIGH(s32, (s32)a[i], (s32)b[i]) + (u32)c[i] + (in ? in[i] : 0); d[i] = (u32)sum;
	      if (out) out[i] = sum >> 32;);
	return STEP_NEXT;
}

STEP(mad_hi_cc_s64)
{
	uint64_t *d = slot(warp, insn->d), *out = insn->e == NO_OPERAND ? NULL : slot(warp, insn->e);
	const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b), *c = slot(warp, insn->c);
	const uint64_t *in = insn->m == NO_OPERAND ? NULL : slot(warp, insn->m);

	LANES(mask, u128 sum = (u128)HIGH(s64, (s64)a[i], (s64)b[i]) + c[i] + (in ? in[i] : 0); d[i] = (u64)sum;
	      if (out) out[i] = (u64)(sum >> 64););
	return STEP_NEXT;
}

/* Pairs of 16 bits. .relu is for signed ones. */
#define PACKED(name, T, expression)                                                                                    \
	STEP(name##_pair_##T)                                                                                          \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d);                                                                     \
		const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b);                                     \
		bool relu = insn->flags & FLAG_RELU;                                                                   \
		for (uint32_t rest = mask; rest; rest &= rest - 1) {                                                   \
			unsigned i = (unsigned)__builtin_ctz(rest);                                                    \
			u64 both = 0;                                                                                  \
			for (unsigned shift = 0; shift < 32; shift += 16) {                                            \
				T x = (T)(a[i] >> shift), y = (T)(b[i] >> shift), value = (T)(expression);             \
				both |= (u64)(u16)(relu && (s16)value < 0 ? 0 : value) << shift;                       \
			}                                                                                              \
			d[i] = both;                                                                                   \
		}                                                                                                      \
		return STEP_NEXT;                                                                                      \
	}

PACKED(add, u16, x + y)
PACKED(min, u16, x < y ? x : y)
PACKED(max, u16, x > y ? x : y)
PACKED(min, s16, x < y ? x : y)
PACKED(max, s16, x > y ? x : y)

step_fn ptx_step_int_pair(enum int_op op, bool is_signed)
{
	return op == INT_ADD   ? add_pair_u16
	       : op == INT_MIN ? (is_signed ? min_pair_s16 : min_pair_u16)
	       : op == INT_MAX ? (is_signed ? max_pair_s16 : max_pair_u16)
	                       : NULL;
}

#define ROW(OP, name)                                                                                                  \
	[OP] = {[TY_U16] = name##_u16, [TY_S16] = name##_s16, [TY_U32] = name##_u32,                                   \
	        [TY_S32] = name##_s32, [TY_U64] = name##_u64, [TY_S64] = name##_s64}
#define ROW_SIGNED(OP, name) [OP] = {[TY_S16] = name##_s16, [TY_S32] = name##_s32, [TY_S64] = name##_s64}
#define ROW_24(OP, name) [OP] = {[TY_U32] = name##_u32, [TY_S32] = name##_s32}
#define ROW_WIDE(OP, name)                                                                                             \
	[OP] = {[TY_U16] = name##_u16, [TY_S16] = name##_s16, [TY_U32] = name##_u32, [TY_S32] = name##_s32}
#define ROW_CARRY(OP, name)                                                                                            \
	[OP] = {[TY_B32] = name##_u32, [TY_U32] = name##_u32, [TY_S32] = name##_u32,                                   \
	        [TY_B64] = name##_u64, [TY_U64] = name##_u64, [TY_S64] = name##_u64}

step_fn ptx_step_int(enum int_op op, enum ptx_type type)
{
	static const step_fn steps[INT_COUNT][TY_COUNT] = {
		ROW(INT_ADD, add),
		ROW(INT_SUB, sub),
		ROW(INT_MUL_LO, mul_lo),
		ROW(INT_MUL_HI, mul_hi),
		ROW(INT_MAD_LO, mad_lo),
		ROW(INT_MAD_HI, mad_hi),
		ROW(INT_SAD, sad),
		ROW(INT_DIV, div),
		ROW(INT_REM, rem),
		ROW(INT_MIN, min),
		ROW(INT_MAX, max),
		ROW_SIGNED(INT_ABS, abs),
		ROW_SIGNED(INT_NEG, neg),
		ROW_WIDE(INT_MUL_WIDE, mul_wide),
		ROW_WIDE(INT_MAD_WIDE, mad_wide),
		ROW_24(INT_MUL24_LO, mul24_lo),
		ROW_24(INT_MUL24_HI, mul24_hi),
		ROW_24(INT_MAD24_LO, mad24_lo),
		ROW_24(INT_MAD24_HI, mad24_hi),
		[INT_ADD_SAT] = {[TY_S32] = add_sat_s32},
		[INT_SUB_SAT] = {[TY_S32] = sub_sat_s32},
		[INT_MAD_HI_SAT] = {[TY_S32] = mad_hi_sat_s32},
		[INT_MAD24_HI_SAT] = {[TY_S32] = mad24_hi_sat_s32},
		ROW_CARRY(INT_ADD_CC, add_cc),
		ROW_CARRY(INT_SUB_CC, sub_cc),
		ROW_CARRY(INT_MAD_LO_CC, mad_lo_cc),
		[INT_MAD_HI_CC] =
			{[TY_U32] = mad_hi_cc_u32, [TY_S32] = mad_hi_cc_s32, [TY_U64] = mad_hi_cc_u64, [TY_S64] = mad_hi_cc_s64},
	};

	return steps[op][type];
}
