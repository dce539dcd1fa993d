/*
 * f16 and bf16, alone and in pairs: computed in double and rounded once. Sums and products of halves are exact in
 * double or far from a tie; for fma the double is rounded to odd first, so that rounding it again is right.
 */
#include <math.h>

#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/steps.h"

double ptx_half_value(uint16_t bits, bool brain)
{
	if (brain)
		return bits_f32((uint64_t)bits << 16);
	unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
	double value;

	if (exponent == 31)
		value = fraction ? NAN : INFINITY;
	else if (exponent)
		value = ldexp(1024 + fraction, (int)exponent - 25);
	else
		value = ldexp(fraction, -24);
	return bits & 0x8000 ? -value : value;
}

/* Whether the magnitude, cut to an integer, must grow by one. The fraction cut off is rest, in [0, 1). */
static bool rounds_up(uint32_t whole, double rest, bool negative, int round)
{
	switch (round) {
	case 1:
		return false;
	case 2:
		return negative && rest > 0;
	case 3:
		return !negative && rest > 0;
	default:
		return rest > 0.5 || (rest == 0.5 && whole & 1);
	}
}

uint16_t ptx_half_bits(double value, bool brain, int round)
{
	int digits = brain ? 8 : 11, least = brain ? -126 : -14;
	uint16_t infinity = brain ? 0x7f80 : 0x7c00, sign = signbit(value) ? 0x8000 : 0;
	double size = fabs(value);
	int exponent;

	if (value != value)
		return 0x7fff;
	if (isinf(value))
		return sign | infinity;
	if (size == 0)
		return sign;
	frexp(size, &exponent);
	exponent = exponent - 1 < least ? least : exponent - 1;
	double scaled = size >= 0x1p200 ? 0x1p30 : ldexp(size, digits - 1 - exponent);
	if (size < 0x1p200) {
		uint32_t whole = (uint32_t)scaled;

		whole += rounds_up(whole, scaled - whole, sign, round);
		/* A carry out of the fraction lands in the exponent, which is what it should do. */
		uint32_t bits = (uint32_t)(exponent - least) << (digits - 1);
		bits = whole + bits;
		if (bits < infinity)
			return sign | (uint16_t)bits;
	}
	bool to_infinity = round == 0 || (round == 2 && sign) || (round == 3 && !sign);
	return sign | (uint16_t)(infinity - !to_infinity);
}

double ptx_fma_odd(double a, double b, double c)
{
	double product = a * b, sum = product + c;

	if (!isfinite(sum) || !isfinite(product))
		return sum;
	double back = sum - product, error = (product - (sum - back)) + (c - back);
	uint64_t bits = f64_bits(sum);

	if (error == 0 || bits & 1)
		return sum;
	/* Inexact and even: the exact value lies between sum and its odd neighbour on the error's side. */
	bool away = (error > 0) == (sum > 0);
	return bits_f64(away ? bits + 1 : bits - 1);
}

static double apply(enum float_op op, double x, double y, double z, bool nan)
{
	switch (op) {
	case FLOAT_ADD:
		return ptx_fma_odd(x, 1.0, y);
	case FLOAT_SUB:
		return ptx_fma_odd(x, 1.0, -y);
	case FLOAT_MUL:
		return x * y;
	case FLOAT_FMA:
		return ptx_fma_odd(x, y, z);
	case FLOAT_MIN:
	case FLOAT_MAX:
		if (x != x || y != y)
			return nan || (x != x && y != y) ? NAN : x != x ? y : x;
		if (x == y)
			return (op == FLOAT_MIN) == (bool)signbit(x) ? x : y;
		return (op == FLOAT_MIN) == (x < y) ? x : y;
	case FLOAT_EX2:
		return exp2(x);
	default:
		return tanh(x);
	}
}

static double flushed(double value, bool brain)
{
	return fabs(value) < (brain ? 0x1p-126 : 0x1p-14) ? copysign(0.0, value) : value;
}

static uint16_t half(const struct insn *insn, uint16_t a, uint16_t b, uint16_t c, bool brain)
{
	enum float_op op = insn->op;
	bool ftz = insn->flags & FLAG_FTZ;

	if (op == FLOAT_ABS || op == FLOAT_NEG) {
		if (ftz)
			a = ptx_half_bits(flushed(ptx_half_value(a, brain), brain), brain, 0);
		if ((a & 0x7fff) > (brain ? 0x7f80 : 0x7c00))
			return 0x7fff;
		return op == FLOAT_ABS ? a & 0x7fff : a ^ 0x8000;
	}
	double x = ptx_half_value(a, brain), y = ptx_half_value(b, brain), z = ptx_half_value(c, brain);

	if (ftz) {
		x = flushed(x, brain);
		y = flushed(y, brain);
		z = flushed(z, brain);
	}
	bool xorsign = insn->flags & FLAG_XORSIGN;
	if (xorsign) {
		x = fabs(x);
		y = fabs(y);
	}
	double value = apply(op, x, y, z, insn->flags & FLAG_NAN);
	if (xorsign && (a ^ b) & 0x8000)
		value = -value;
	if (insn->flags & FLAG_SAT)
		value = value > 0 ? fmin(value, 1) : 0;
	if (insn->flags & FLAG_RELU && value == value)
		value = value > 0 ? value : 0;
	uint16_t bits = ptx_half_bits(value, brain, insn->round);
	return ftz ? ptx_half_bits(flushed(ptx_half_value(bits, brain), brain), brain, 0) : bits;
}

STEP(step_half)
{
	uint64_t *d = slot(warp, insn->d);
	const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b), *c = slot(warp, insn->c);
	bool brain = insn->type == TY_BF16 || insn->type == TY_BF16X2,
	     pair = insn->type == TY_F16X2 || insn->type == TY_BF16X2;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);
		uint64_t low = half(insn, (uint16_t)a[i], (uint16_t)b[i], (uint16_t)c[i], brain);

		if (pair)
			low |= (uint64_t)half(insn, (uint16_t)(a[i] >> 16), (uint16_t)(b[i] >> 16),
			                      (uint16_t)(c[i] >> 16), brain)
			       << 16;
		d[i] = low;
	}
	return STEP_NEXT;
}

step_fn ptx_step_half(enum float_op op, enum ptx_type type)
{
	bool half_type = type == TY_F16 || type == TY_F16X2 || type == TY_BF16 || type == TY_BF16X2;

	switch (op) {
	case FLOAT_ADD:
	case FLOAT_SUB:
	case FLOAT_MUL:
	case FLOAT_FMA:
	case FLOAT_MIN:
	case FLOAT_MAX:
	case FLOAT_ABS:
	case FLOAT_NEG:
	case FLOAT_EX2:
	case FLOAT_TANH:
		return half_type ? step_half : NULL;
	default:
		return NULL;
	}
}
