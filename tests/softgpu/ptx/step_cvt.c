/*
 * cvt. Integer to integer and the common float conversions have steps of their own; everything else goes through one
 * general step.
 */
#include <fenv.h>
#include <math.h>

#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/steps.h"

/* Integer to integer without .sat: cut to the destination, then extended by its sign to the register's width. */
#define EXTEND(from, C)                                                                                                \
	STEP(from##_to_u8){RESULT(C, (uint8_t)x)} STEP(from##_to_u16){RESULT(C, (uint16_t)x)} STEP(from##_to_u32){     \
		RESULT(C, (uint32_t)x)} STEP(from##_to_u64){RESULT(C, (uint64_t)x)} STEP(from##_to_s8){                \
		RESULT(C, (int8_t)x)} STEP(from##_to_s16){RESULT(C, (int16_t)x)} STEP(from##_to_s32){                  \
		RESULT(C, (int32_t)x)} STEP(from##_to_s64)                                                             \
	{                                                                                                              \
		RESULT(C, (int64_t)x)                                                                                  \
	}
#define RESULT(C, expression)                                                                                          \
	uint64_t *d = slot(warp, insn->d), keep = width_mask(insn->width);                                             \
	const uint64_t *a = slot(warp, insn->a);                                                                       \
	LANES(mask, C x = (C)a[i]; d[i] = (uint64_t)(int64_t)(expression)&keep;);                                      \
	return STEP_NEXT;

EXTEND(u8, uint8_t)
EXTEND(u16, uint16_t)
EXTEND(u32, uint32_t)
EXTEND(u64, uint64_t)
EXTEND(s8, int8_t)
EXTEND(s16, int16_t)
EXTEND(s32, int32_t)
EXTEND(s64, int64_t)

#define SIMPLE(name, expression)                                                                                       \
	STEP(name)                                                                                                     \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d), keep = width_mask(insn->width);                                     \
		const uint64_t *a = slot(warp, insn->a);                                                               \
		LANES(mask, d[i] = (uint64_t)(expression)&keep;);                                                      \
		return STEP_NEXT;                                                                                      \
	}

SIMPLE(s32_to_f32, f32_bits((float)(int32_t)a[i]))
SIMPLE(u32_to_f32, f32_bits((float)(uint32_t)a[i]))
SIMPLE(s32_to_f64, f64_bits((double)(int32_t)a[i]))
SIMPLE(u32_to_f64, f64_bits((double)(uint32_t)a[i]))

/* A value on its way: an integer with its sign, or a float held as a double, which every float type fits. */
struct number {
	bool is_float, negative;
	uint64_t size; /* magnitude of an integer */
	double real;
};

static struct number read_number(uint64_t bits, enum ptx_type type, bool ftz)
{
	struct number number = {0};
	unsigned size = ptx_type_bytes(type);

	if (type == TY_F32) {
		float value = bits_f32(bits);

		number.real = ftz && fabsf(value) < 0x1p-126f ? copysignf(0, value) : value;
	} else if (type == TY_F64) {
		number.real = bits_f64(bits);
	} else if (type == TY_F16 || type == TY_BF16) {
		number.real = ptx_half_value((uint16_t)bits, type == TY_BF16);
	}
	number.is_float = ptx_type_is_float(type);
	if (number.is_float)
		return number;
	bits &= width_mask(size);
	number.negative = ptx_type_is_signed(type) && bits >> (8 * size - 1);
	number.size = number.negative ? (0 - bits) & width_mask(size) : bits;
	return number;
}

static double to_integral(double value, int round)
{
	switch (round) {
	case 1:
		return trunc(value);
	case 2:
		return floor(value);
	case 3:
		return ceil(value);
	default:
		return nearbyint(value);
	}
}

/*
 * A float out of range, and an integer with .sat, goes to the nearest end. NaN is 0 where neither side has 64 bits,
 * else only the top bit is set.
 */
static uint64_t write_integer(struct number number, enum ptx_type type, enum ptx_type from, int round, bool clamp)
{
	unsigned bits = 8 * ptx_type_bytes(type);
	bool is_signed = ptx_type_is_signed(type);
	uint64_t most = width_mask(bits / 8) >> is_signed;

	if (number.is_float) {
		double value = to_integral(number.real, round);

		if (value != value)
			return bits == 64 || from == TY_F64
			               ? UINT64_MAX << (bits - 1) & (is_signed ? UINT64_MAX : width_mask(bits / 8))
			               : 0;
		number.negative = value < 0;
		value = fabs(value);
		number.size = value >= 0x1p64 ? UINT64_MAX : (uint64_t)value;
		clamp = true;
	}
	if (clamp) {
		uint64_t end = !number.negative ? most : is_signed ? most + 1 : 0;

		number.size = number.size > end ? end : number.size;
	}
	uint64_t value = number.negative ? 0 - number.size : number.size;
	value &= width_mask(bits / 8);
	return is_signed && value >> (bits - 1) ? value | ~width_mask(bits / 8) : value;
}

/* Integers beyond 53 bits keep a sticky bit, so that the one rounding to a half is right. */
static double integer_value(struct number number)
{
	uint64_t size = number.size;

	if (size >> 53)
		size = (size & ~UINT64_C(0x7ff)) | ((size & 0x7ff) != 0) << 11;
	return number.negative ? -(double)size : (double)size;
}

static void set_rounding(int round)
{
	static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

	fesetround(modes[round & 3]);
}

/* Called with the rounding set. Signed conversions round with the sign in place. */
static float single_value(struct number number)
{
	if (number.is_float)
		return (float)number.real;
	return number.negative ? (float)(int64_t)(0 - number.size) : (float)number.size;
}

static double double_value(struct number number)
{
	if (number.is_float)
		return number.real;
	return number.negative ? (double)(int64_t)(0 - number.size) : (double)number.size;
}

static uint64_t write_single(float value, const struct insn *insn)
{
	if (insn->flags & FLAG_FTZ && fabsf(value) < 0x1p-126f)
		value = copysignf(0, value);
	if (insn->flags & FLAG_SAT)
		value = value > 0 ? fminf(value, 1) : 0;
	if (insn->flags & FLAG_RELU && value <= 0)
		value = 0;
	return value != value ? 0x7fffffffu : f32_bits(value);
}

static uint64_t write_double(double value, const struct insn *insn)
{
	if (insn->flags & FLAG_SAT)
		value = value > 0 ? fmin(value, 1) : 0;
	return f64_bits(value);
}

static uint16_t write_half(struct number number, const struct insn *insn, bool brain)
{
	double value = number.is_float ? number.real : integer_value(number);

	if (insn->flags & FLAG_SAT)
		value = value > 0 ? fmin(value, 1) : 0;
	if (insn->flags & FLAG_RELU && value <= 0)
		value = 0;
	return ptx_half_bits(value, brain, insn->round);
}

/*
 * A NaN between floats. From f64 and halves to f64 its payload goes along, quiet; the pieces that ptxas puts other
 * conversions together from do otherwise.
 */
static uint64_t write_nan(uint64_t bits, const struct insn *insn)
{
	enum ptx_type from = insn->type2, to = insn->type;
	uint64_t sign = bits >> (8 * ptx_type_bytes(from) - 1), payload = bits & UINT64_C(0xfffffffffffff);

	if (insn->flags & FLAG_SAT)
		return 0;
	if (from == TY_F16)
		payload = (bits & 0x3ff) << 42;
	if (from == TY_BF16)
		payload = (bits & 0x7f) << 45;
	if (from == TY_F32)
		payload = (bits & 0x7fffff) << 29;
	if (from == TY_F32 && insn->flags & FLAG_FTZ) {
		payload = UINT64_C(0x7fffff) << 29;
		sign = 0;
	}
	if (to == TY_F64)
		return sign << 63 | UINT64_C(0x7ff8) << 48 | payload;
	if (to == TY_F32)
		return from == TY_F64    ? sign << 31 | 0x7fc00000u | payload >> 29
		       : from == TY_BF16 ? bits << 16
		                         : 0x7fffffffu;
	if (from != TY_F64)
		return 0x7fff;
	return to == TY_F16 ? sign << 15 | 0x7e00 | payload >> 42 : sign << 15 | 0x7fc0 | payload >> 45;
}

/* count says whether a float must become integral first (.rni and so on between equal floats). */
STEP(general)
{
	uint64_t *d = slot(warp, insn->d), keep = width_mask(insn->width);
	const uint64_t *a = slot(warp, insn->a);
	enum ptx_type from = insn->type2, to = insn->type;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);
		/* Of halves, .ftz flushes nothing. */
		struct number number = read_number(a[i], from, insn->flags & FLAG_FTZ && to != TY_F16 && to != TY_BF16);
		uint64_t bits;

		if (number.is_float && insn->count)
			number.real = to_integral(number.real, insn->round);
		if (number.is_float && number.real != number.real && ptx_type_is_float(to)) {
			bits = write_nan(a[i], insn);
		} else if (to == TY_F16 || to == TY_BF16) {
			bits = write_half(number, insn, to == TY_BF16);
		} else if (to == TY_F32) {
			set_rounding(insn->count ? 0 : insn->round);
			float value = single_value(number);
			set_rounding(0);
			bits = write_single(value, insn);
		} else if (to == TY_F64) {
			set_rounding(insn->count ? 0 : insn->round);
			double value = double_value(number);
			set_rounding(0);
			bits = write_double(value, insn);
		} else {
			bits = write_integer(number, to, from, insn->round, insn->flags & FLAG_SAT);
		}
		d[i] = bits & keep;
	}
	return STEP_NEXT;
}

/* cvt.f16x2.f32 d, a, b: a is the upper half. */
STEP(pair)
{
	uint64_t *d = slot(warp, insn->d);
	const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b);
	bool brain = insn->type == TY_BF16X2;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);
		uint64_t high = write_half(read_number(a[i], TY_F32, false), insn, brain);

		d[i] = high << 16 | write_half(read_number(b[i], TY_F32, false), insn, brain);
	}
	return STEP_NEXT;
}

/* Ten bits of fraction; a carry goes into the exponent. */
STEP(tf32)
{
	uint64_t *d = slot(warp, insn->d);
	const uint64_t *a = slot(warp, insn->a);

	LANES(mask, uint32_t x = (uint32_t)a[i]; bool special = (x & 0x7f800000u) == 0x7f800000u;
	      d[i] = (special ? x : x + 0x1000u) & 0xffffe000u;);
	return STEP_NEXT;
}

step_fn ptx_step_convert_tf32(void)
{
	return tf32;
}

step_fn ptx_step_convert_pair(void)
{
	return pair;
}

#define ROW(TYPE, name)                                                                                                 \
	[TYPE] = {[TY_U8] = name##_to_u8, [TY_U16] = name##_to_u16, [TY_U32] = name##_to_u32, [TY_U64] = name##_to_u64, \
	          [TY_S8] = name##_to_s8, [TY_S16] = name##_to_s16, [TY_S32] = name##_to_s32, [TY_S64] = name##_to_s64}

step_fn ptx_step_convert(enum ptx_type to, enum ptx_type from, bool plain)
{
	static const step_fn integer[TY_COUNT][TY_COUNT] = {
		ROW(TY_U8, u8), ROW(TY_U16, u16), ROW(TY_U32, u32), ROW(TY_U64, u64),
		ROW(TY_S8, s8), ROW(TY_S16, s16), ROW(TY_S32, s32), ROW(TY_S64, s64),
	};
	static const step_fn simple[TY_COUNT][TY_COUNT] = {
		[TY_S32] = {[TY_F32] = s32_to_f32, [TY_F64] = s32_to_f64},
		[TY_U32] = {[TY_F32] = u32_to_f32, [TY_F64] = u32_to_f64},
	};
	bool from_ok = from >= TY_U8 && from <= TY_F64 && from != TY_F16X2 && from != TY_BF16X2;
	bool to_ok = to >= TY_U8 && to <= TY_F64 && to != TY_F16X2 && to != TY_BF16X2;

	if (!from_ok || !to_ok)
		return NULL;
	if (plain && integer[from][to])
		return integer[from][to];
	if (plain && simple[from][to])
		return simple[from][to];
	return general;
}
