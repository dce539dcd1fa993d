/*
 * atom and red, with the host's atomics: they hold between blocks, and between a launch and other threads of the
 * process.
 */
#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/reach.h"
#include "tests/softgpu/ptx/steps.h"

/* The new value from the old one, x the operand, y the second. */
#define ATOMIC(name, T, ...)                                                                                              \
	STEP(name)                                                                                                        \
	{                                                                                                                 \
		struct reach reach;                                                                                       \
		uint64_t *d = insn->d == NO_OPERAND ? NULL : slot(warp, insn->d);                                         \
		const uint64_t *b = slot(warp, insn->b), *c = slot(warp, insn->c);                                        \
		if (ptx_reach(warp, insn, mask, sizeof(T), true, &reach) == STEP_FAULT)                                   \
			return STEP_FAULT;                                                                                \
		for (uint32_t rest = mask; rest; rest &= rest - 1) {                                                      \
			unsigned i = (unsigned)__builtin_ctz(rest);                                                       \
			T *at = (T *)(uintptr_t)reach.at[i];                                                              \
			T x = (T)b[i], y = (T)c[i], old = __atomic_load_n(at, __ATOMIC_RELAXED), value;                   \
			(void)y;                                                                                          \
			do                                                                                                \
				value = (T)(__VA_ARGS__);                                                                 \
			while (!__atomic_compare_exchange_n(at, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)); \
			if (d)                                                                                            \
				d[i] = old;                                                                               \
		}                                                                                                         \
		ptx_reach_wrote(warp, &reach, sizeof(T));                                                                 \
		return STEP_NEXT;                                                                                         \
	}

#define WIDTH(size, T, S)                                                                                              \
	ATOMIC(add_##size, T, old + x)                                                                                 \
	ATOMIC(min_u##size, T, old < x ? old : x)                                                                      \
	ATOMIC(max_u##size, T, old > x ? old : x)                                                                      \
	ATOMIC(min_s##size, T, (S)old < (S)x ? old : x)                                                                \
	ATOMIC(max_s##size, T, (S)old > (S)x ? old : x)                                                                \
	ATOMIC(and_##size, T, old &x)                                                                                  \
	ATOMIC(or_##size, T, old | x)                                                                                  \
	ATOMIC(xor_##size, T, old ^ x)                                                                                 \
	ATOMIC(exch_##size, T, x)                                                                                      \
	ATOMIC(cas_##size, T, old == x ? y : old)

WIDTH(32, uint32_t, int32_t)
WIDTH(64, uint64_t, int64_t)
ATOMIC(cas_16, uint16_t, old == x ? y : old)
ATOMIC(inc_32, uint32_t, old >= x ? 0 : old + 1)
ATOMIC(dec_32, uint32_t, old == 0 || old > x ? x : old - 1)
/* In global memory, but not in shared, f32 has no subnormal numbers. */
static inline uint32_t single_sum(uint32_t x, uint32_t y, bool flush)
{
	if (flush && !(x & 0x7f800000))
		x &= 0x80000000;
	if (flush && !(y & 0x7f800000))
		y &= 0x80000000;
	uint32_t sum = f32_bits(bits_f32(x) + bits_f32(y));
	if (flush && !(sum & 0x7f800000))
		sum &= 0x80000000;
	return (sum & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : sum;
}

/* In global memory a NaN goes through as it is, not made quiet. */
static inline uint64_t double_sum(uint64_t old, uint64_t x, bool keep)
{
	double value = bits_f64(old), operand = bits_f64(x);

	if (keep && (operand != operand || value != value))
		return operand != operand ? x : old;
	return f64_bits(value + operand);
}

ATOMIC(add_f32, uint32_t, single_sum(old, x, reach.global >> i & 1))
ATOMIC(add_f64, uint64_t, double_sum(old, x, reach.global >> i & 1))

static inline uint16_t half_sum(uint32_t x, uint32_t y, bool brain)
{
	return ptx_half_bits(ptx_fma_odd(ptx_half_value((uint16_t)x, brain), 1.0, ptx_half_value((uint16_t)y, brain)),
	                     brain, 0);
}

#define PAIR_SUM(x, y, brain) ((uint32_t)half_sum((x) >> 16, (y) >> 16, brain) << 16 | half_sum(x, y, brain))

ATOMIC(add_f16, uint16_t, half_sum(old, x, false))
ATOMIC(add_bf16, uint16_t, half_sum(old, x, true))
ATOMIC(add_f16x2, uint32_t, PAIR_SUM(old, x, false))
ATOMIC(add_bf16x2, uint32_t, PAIR_SUM(old, x, true))

#define BITWISE(name)                                                                                                  \
	{                                                                                                              \
		[TY_B32] = name##_32, [TY_B64] = name##_64, [TY_U32] = name##_32, [TY_U64] = name##_64,                \
		[TY_S32] = name##_32, [TY_S64] = name##_64                                                             \
	}

step_fn ptx_step_atomic(enum atom_op op, enum ptx_type type)
{
	static const step_fn steps[ATOM_COUNT][TY_COUNT] = {
		[ATOM_ADD] = {[TY_U32] = add_32,
	                      [TY_S32] = add_32,
	                      [TY_U64] = add_64,
	                      [TY_S64] = add_64,
	                      [TY_F32] = add_f32,
	                      [TY_F64] = add_f64,
	                      [TY_F16] = add_f16,
	                      [TY_BF16] = add_bf16,
	                      [TY_F16X2] = add_f16x2,
	                      [TY_BF16X2] = add_bf16x2},
		[ATOM_MIN] = {[TY_U32] = min_u32, [TY_S32] = min_s32, [TY_U64] = min_u64, [TY_S64] = min_s64},
		[ATOM_MAX] = {[TY_U32] = max_u32, [TY_S32] = max_s32, [TY_U64] = max_u64, [TY_S64] = max_s64},
		[ATOM_INC] = {[TY_U32] = inc_32},
		[ATOM_DEC] = {[TY_U32] = dec_32},
		[ATOM_AND] = BITWISE(and),
		[ATOM_OR] = BITWISE(or),
		[ATOM_XOR] = BITWISE(xor),
		[ATOM_EXCH] = BITWISE(exch),
		[ATOM_CAS] =
			{[TY_B16] = cas_16, [TY_B32] = cas_32, [TY_B64] = cas_64, [TY_U32] = cas_32, [TY_U64] = cas_64, [TY_S32] = cas_32, [TY_S64] = cas_64},
	};

	return steps[op][type];
}
