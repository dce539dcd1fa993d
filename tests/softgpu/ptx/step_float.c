/*
 * f32 and f64 arithmetic. The plain steps round to nearest and have no modifiers; the others obey flags and
 * insn->round.
 *
 * add, sub, mul, fma, div, rcp and sqrt with a rounding are exact as IEEE 754 says. Approximate ones (.approx, .full)
 * are computed with the host's functions of the same type, so they are at least as near as the hardware's. A NaN
 * result of an f32 operation is 0x7fffffff, as on the hardware; f64 keeps an operand's payload.
 */
#include <fenv.h>
#include <math.h>

#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/steps.h"

#define NAN_F32 0x7fffffffu
#define QUIET_F64 (UINT64_C(1) << 51)

static inline uint64_t keep_f32(float value)
{
	return value != value ? NAN_F32 : f32_bits(value);
}

static inline uint64_t keep_f64(double value)
{
	return f64_bits(value);
}

static inline float flush_f32(float value)
{
	return fabsf(value) < 0x1p-126f ? copysignf(0.0f, value) : value;
}

/* There is no .ftz for f64. */
static inline double flush_f64(double value)
{
	return value;
}

static inline float saturate_f32(float value)
{
	return value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f;
}

static inline double saturate_f64(double value)
{
	return value > 0.0 ? (value < 1.0 ? value : 1.0) : 0.0;
}

static inline float least_f32(float x, float y, bool nan)
{
	if (x != x || y != y)
		return nan || (x != x && y != y) ? NAN : x != x ? y : x;
	return x < y || (x == y && signbit(x)) ? x : y;
}

static inline float most_f32(float x, float y, bool nan)
{
	if (x != x || y != y)
		return nan || (x != x && y != y) ? NAN : x != x ? y : x;
	return x > y || (x == y && !signbit(x)) ? x : y;
}

/* Of several NaN operands the first, made quiet, is the result. For f32 it does not matter. */
static inline double first_f64(double x, double y, double value)
{
	return value == value ? value : x != x ? x + x : y != y ? y + y : value;
}

static inline float first_f32(float x, float y, float value)
{
	(void)x;
	(void)y;
	return value;
}

static inline double least_f64(double x, double y, bool nan)
{
	if (x != x || y != y)
		return x == x ? x : y == y ? y : y + y;
	return x < y || (x == y && signbit(x)) ? x : y;
}

static inline double most_f64(double x, double y, bool nan)
{
	if (x != x || y != y)
		return x == x ? x : y == y ? y : y + y;
	return x > y || (x == y && !signbit(x)) ? x : y;
}

static void set_rounding(int round)
{
	static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

	fesetround(modes[round]);
}

typedef float f32;
typedef double f64;

#define PLAIN(name, T, expression)                                                                                     \
	STEP(name##_##T)                                                                                               \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d);                                                                     \
		const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b), *c = slot(warp, insn->c);           \
		(void)b;                                                                                               \
		(void)c;                                                                                               \
		LANES(mask, T x = bits_##T(a[i]); T y = bits_##T(b[i]); T z = bits_##T(c[i]); (void)y; (void)z;        \
		      d[i] = keep_##T(expression););                                                                   \
		return STEP_NEXT;                                                                                      \
	}
/*
 * Operands are loaded and results stored between the two calls that set the rounding, which the compiler cannot see
 * through.
 */
#define MODIFIED(name, T, expression)                                                                                  \
	STEP(name##_##T##_modified)                                                                                    \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d);                                                                     \
		const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b), *c = slot(warp, insn->c);           \
		bool ftz = insn->flags & FLAG_FTZ, sat = insn->flags & FLAG_SAT, nan = insn->flags & FLAG_NAN;         \
		(void)b;                                                                                               \
		(void)c;                                                                                               \
		(void)nan;                                                                                             \
		if (insn->round)                                                                                       \
			set_rounding(insn->round);                                                                     \
		for (uint32_t rest = mask; rest; rest &= rest - 1) {                                                   \
			unsigned i = (unsigned)__builtin_ctz(rest);                                                    \
			T x = bits_##T(a[i]), y = bits_##T(b[i]), z = bits_##T(c[i]);                                  \
			if (ftz) {                                                                                     \
				x = flush_##T(x);                                                                      \
				y = flush_##T(y);                                                                      \
				z = flush_##T(z);                                                                      \
			}                                                                                              \
			(void)y;                                                                                       \
			(void)z;                                                                                       \
			T value = expression;                                                                          \
			if (ftz)                                                                                       \
				value = flush_##T(value);                                                              \
			if (sat)                                                                                       \
				value = saturate_##T(value);                                                           \
			d[i] = keep_##T(value);                                                                        \
		}                                                                                                      \
		if (insn->round)                                                                                       \
			set_rounding(0);                                                                               \
		return STEP_NEXT;                                                                                      \
	}
#define BOTH(name, T, expression)                                                                                      \
	PLAIN(name, T, expression)                                                                                     \
	MODIFIED(name, T, expression)
#define FUNCTIONS(T, suffix, nan_of)                                                                                   \
	BOTH(add, T, first_##T(x, y, x + y))                                                                           \
	BOTH(sub, T, first_##T(x, y, x - y))                                                                           \
	BOTH(mul, T, first_##T(x, y, x *y))                                                                            \
	BOTH(fma, T, first_##T(x, y, fma##suffix(x, y, z)))                                                            \
	BOTH(div, T, first_##T(x, y, x / y))                                                                           \
	BOTH(rcp, T, 1 / x)                                                                                            \
	BOTH(sqrt, T, sqrt##suffix(x))                                                                                 \
	BOTH(rsqrt, T, (T)(1.0 / sqrt((double)x)))                                                                     \
	BOTH(min, T, least_##T(x, y, nan_of))                                                                          \
	BOTH(max, T, most_##T(x, y, nan_of))

#define nan_flag (insn->flags & FLAG_NAN)
FUNCTIONS(f32, f, nan_flag)
FUNCTIONS(f64, , nan_flag)
BOTH(sin, f32, sinf(x))
BOTH(cos, f32, cosf(x))
BOTH(ex2, f32, exp2f(x))
BOTH(lg2, f32, log2f(x))
BOTH(tanh, f32, tanhf(x))

/* .xorsign.abs: of the magnitudes, with the sign that the product would have. There is none for f64. */
#define XORSIGN(name, choose)                                                                                          \
	STEP(name##_xorsign_f32)                                                                                       \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d);                                                                     \
		const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b);                                     \
		LANES(                                                                                                 \
			mask, float x = fabsf(bits_f32(a[i])); float y = fabsf(bits_f32(b[i]));                        \
			if (insn->flags & FLAG_FTZ) {                                                                  \
				x = flush_f32(x);                                                                      \
				y = flush_f32(y);                                                                      \
			} uint64_t bits = keep_f32(choose(x, y, nan_flag));                                            \
			d[i] = bits == NAN_F32 ? bits : bits | ((a[i] ^ b[i]) & 0x80000000u););                        \
		return STEP_NEXT;                                                                                      \
	}

XORSIGN(min, least_f32)
XORSIGN(max, most_f32)

step_fn ptx_step_xorsign(enum float_op op)
{
	return op == FLOAT_MIN ? min_xorsign_f32 : max_xorsign_f32;
}

/*
 * abs and neg only touch the sign; a NaN of f32 becomes the one there is, one of f64 keeps its sign and becomes quiet.
 */
static inline uint64_t with_sign(uint64_t x, uint64_t changed, size_t bytes)
{
	if (bytes == 4)
		return (x & 0x7fffffff) > 0x7f800000 ? NAN_F32 : changed;
	return (x & INT64_MAX) > UINT64_C(0x7ff0000000000000) ? x | QUIET_F64 : changed;
}

#define SIGN(name, T, expression)                                                                                      \
	STEP(name##_##T)                                                                                               \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d), sign = UINT64_C(1) << (8 * sizeof(T) - 1);                          \
		const uint64_t *a = slot(warp, insn->a);                                                               \
		bool ftz = insn->flags & FLAG_FTZ;                                                                     \
		LANES(mask, uint64_t x = ftz ? (uint64_t)f32_bits(flush_f32(bits_f32(a[i]))) : a[i];                   \
		      d[i] = with_sign(x, (expression), sizeof(T)););                                                  \
		return STEP_NEXT;                                                                                      \
	}

SIGN(abs, f32, x & ~sign)
SIGN(abs, f64, x & ~sign)
SIGN(neg, f32, x ^ sign)
SIGN(neg, f64, x ^ sign)

/* A divisor beyond 2^126 is as good as infinity. */
STEP(div_approx_f32)
{
	uint64_t *d = slot(warp, insn->d);
	const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b);
	bool ftz = insn->flags & FLAG_FTZ;

	LANES(
		mask, float x = bits_f32(a[i]); float y = bits_f32(b[i]); if (ftz) {
			x = flush_f32(x);
			y = flush_f32(y);
		} float value = x / (fabsf(y) > 0x1p126f ? copysignf(INFINITY, y) : y);
		d[i] = keep_f32(ftz ? flush_f32(value) : value););
	return STEP_NEXT;
}

/* The coarse f64 instructions look at the upper word alone, and write it alone; neither has subnormal numbers. */
static inline double upper_word(uint64_t bits)
{
	double value = bits_f64(bits & ~(uint64_t)UINT32_MAX);

	return fabs(value) < 0x1p-1022 ? copysign(0, value) : value;
}

static inline uint64_t keep_upper(double value)
{
	if (value != value)
		return (uint64_t)NAN_F32 << 32;
	if (fabs(value) < 0x1p-1022)
		value = copysign(0, value);
	return (f64_bits(value) + 0x80000000u) & ~(uint64_t)UINT32_MAX;
}

STEP(rcp_coarse_f64)
{
	uint64_t *d = slot(warp, insn->d);
	const uint64_t *a = slot(warp, insn->a);

	LANES(mask, d[i] = keep_upper(1 / upper_word(a[i])););
	return STEP_NEXT;
}

STEP(rsqrt_coarse_f64)
{
	uint64_t *d = slot(warp, insn->d);
	const uint64_t *a = slot(warp, insn->a);

	LANES(mask, d[i] = keep_upper(1 / sqrt(upper_word(a[i]))););
	return STEP_NEXT;
}

step_fn ptx_step_coarse(enum float_op op, enum ptx_type type, bool ftz)
{
	return op == FLOAT_DIV && type == TY_F32            ? div_approx_f32
	       : op == FLOAT_RCP && type == TY_F64          ? rcp_coarse_f64
	       : op == FLOAT_RSQRT && type == TY_F64 && ftz ? rsqrt_coarse_f64
	                                                    : NULL;
}

#define ROW(OP, name)                                                                                                  \
	[OP] = {[TY_F32] = {name##_f32_modified, name##_f32}, [TY_F64] = {name##_f64_modified, name##_f64}}
#define ROW_SIGN(OP, name) [OP] = {[TY_F32] = {name##_f32, name##_f32}, [TY_F64] = {name##_f64, name##_f64}}
#define ROW_SINGLE(OP, name) [OP] = {[TY_F32] = {name##_f32_modified, name##_f32}}

step_fn ptx_step_float(enum float_op op, enum ptx_type type, bool plain)
{
	static const step_fn steps[FLOAT_COUNT][TY_COUNT][2] = {
		ROW(FLOAT_ADD, add),        ROW(FLOAT_SUB, sub),          ROW(FLOAT_MUL, mul),
		ROW(FLOAT_FMA, fma),        ROW(FLOAT_DIV, div),          ROW(FLOAT_RCP, rcp),
		ROW(FLOAT_SQRT, sqrt),      ROW(FLOAT_RSQRT, rsqrt),      ROW(FLOAT_MIN, min),
		ROW(FLOAT_MAX, max),        ROW_SIGN(FLOAT_ABS, abs),     ROW_SIGN(FLOAT_NEG, neg),
		ROW_SINGLE(FLOAT_SIN, sin), ROW_SINGLE(FLOAT_COS, cos),   ROW_SINGLE(FLOAT_EX2, ex2),
		ROW_SINGLE(FLOAT_LG2, lg2), ROW_SINGLE(FLOAT_TANH, tanh),
	};

	return steps[op][type][plain];
}
