/* Constant expressions: C's operators on 64-bit integers, and single float constants with a sign. */
#include <math.h>
#include <string.h>

#include "tests/softgpu/ptx/load.h"
#include "tests/softgpu/ptx/machine.h"

#define EXPRESSION_DEPTH 64u

static bool expression(struct loader *loader, unsigned least, unsigned depth, struct constant *ret_value);

static bool unary(struct loader *loader, unsigned depth, struct constant *ret_value)
{
	struct ptx_text *text = text_of(loader);
	int sign = text->token == TOKEN_PUNCT ? text->punct : 0;

	if (depth > EXPRESSION_DEPTH)
		return ptx_text_fail(text, PTX_INVALID, "an expression nests deeper than %u", EXPRESSION_DEPTH);
	if (text->token == TOKEN_INT || text->token == TOKEN_FLOAT) {
		*ret_value = (struct constant){text->bits, text->token == TOKEN_FLOAT,
		                               text->token == TOKEN_FLOAT && text->single};
		ptx_text_next(text);
		return true;
	}
	if (sign == '(') {
		ptx_text_next(text);
		return expression(loader, 1, depth + 1, ret_value) && ptx_text_need(text, ')');
	}
	if (sign != '-' && sign != '+' && sign != '~' && sign != '!')
		return ptx_text_fail(text, PTX_INVALID, "a constant is due here");
	ptx_text_next(text);
	if (!unary(loader, depth + 1, ret_value))
		return false;
	if (ret_value->is_float) {
		if (sign == '-')
			ret_value->bits ^= ret_value->single ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
		else if (sign != '+')
			return ptx_text_fail(text, PTX_INVALID, "'%c' does not apply to a float", sign);
	} else if (sign == '-') {
		ret_value->bits = 0 - ret_value->bits;
	} else if (sign == '~') {
		ret_value->bits = ~ret_value->bits;
	} else if (sign == '!') {
		ret_value->bits = !ret_value->bits;
	}
	return true;
}

/* How tightly an operator binds; 0 when it is none. */
static unsigned binds(int op)
{
	switch (op) {
	case PAIR('|', '|'):
		return 1;
	case PAIR('&', '&'):
		return 2;
	case '|':
		return 3;
	case '^':
		return 4;
	case '&':
		return 5;
	case PAIR('=', '='):
	case PAIR('!', '='):
		return 6;
	case '<':
	case '>':
	case PAIR('<', '='):
	case PAIR('>', '='):
		return 7;
	case PAIR('<', '<'):
	case PAIR('>', '>'):
		return 8;
	case '+':
	case '-':
		return 9;
	case '*':
	case '/':
	case '%':
		return 10;
	default:
		return 0;
	}
}

static uint64_t apply(int op, uint64_t x, uint64_t y)
{
	int64_t a = (int64_t)x, b = (int64_t)y;

	switch (op) {
	case PAIR('|', '|'):
		return x || y;
	case PAIR('&', '&'):
		return x && y;
	case '|':
		return x | y;
	case '^':
		return x ^ y;
	case '&':
		return x & y;
	case PAIR('=', '='):
		return x == y;
	case PAIR('!', '='):
		return x != y;
	case '<':
		return a < b;
	case '>':
		return a > b;
	case PAIR('<', '='):
		return a <= b;
	case PAIR('>', '='):
		return a >= b;
	case PAIR('<', '<'):
		return y < 64 ? x << y : 0;
	case PAIR('>', '>'):
		return (uint64_t)(a >> (y < 64 ? y : 63));
	case '+':
		return x + y;
	case '-':
		return x - y;
	case '*':
		return x * y;
	case '/':
		return b == -1 ? 0 - x : (uint64_t)(a / b);
	default:
		return b == -1 ? 0 : (uint64_t)(a % b);
	}
}

static bool expression(struct loader *loader, unsigned least, unsigned depth, struct constant *ret_value)
{
	struct ptx_text *text = text_of(loader);
	struct constant right;

	if (!unary(loader, depth, ret_value))
		return false;
	while (text->token == TOKEN_PUNCT && binds(text->punct) >= least && binds(text->punct)) {
		int op = text->punct;

		if (ret_value->is_float)
			return ptx_text_fail(text, PTX_UNSUPPORTED, "arithmetic on float constants");
		ptx_text_next(text);
		if (!expression(loader, binds(op) + 1, depth + 1, &right))
			return false;
		if (right.is_float)
			return ptx_text_fail(text, PTX_UNSUPPORTED, "arithmetic on float constants");
		if ((op == '/' || op == '%') && !right.bits)
			return ptx_text_fail(text, PTX_INVALID, "a constant is divided by zero");
		ret_value->bits = apply(op, ret_value->bits, right.bits);
	}
	return true;
}

bool ptx_expression(struct loader *loader, struct constant *ret_value)
{
	return expression(loader, 1, 0, ret_value);
}

bool ptx_integer(struct loader *loader, uint64_t *ret_value)
{
	struct constant value;

	if (!ptx_expression(loader, &value))
		return false;
	if (value.is_float)
		return ptx_text_fail(text_of(loader), PTX_INVALID, "an integer is due here");
	*ret_value = value.bits;
	return true;
}

bool ptx_constant_as(struct loader *loader, int line, const struct constant *constant, enum ptx_type type,
                     uint64_t *ret_bits)
{
	unsigned bytes = ptx_type_bytes(type);
	bool bits_type = type >= TY_B8 && type <= TY_B64;

	if (!constant->is_float) {
		if (type == TY_PRED)
			*ret_bits = constant->bits != 0;
		else if (ptx_type_is_float(type) && constant->bits && (type == TY_F32 || type == TY_F64))
			return ptx_text_fail_at(text_of(loader), line, PTX_INVALID,
			                        "an integer constant where a float is due");
		else
			*ret_bits = constant->bits & width_mask(bytes);
		return true;
	}
	double value = constant->single ? (double)bits_f32(constant->bits) : bits_f64(constant->bits);
	if ((type == TY_F32 || type == TY_B32) && constant->single)
		*ret_bits = constant->bits;
	else if (type == TY_F32 || type == TY_B32)
		*ret_bits = f32_bits((float)value);
	else if ((type == TY_F64 || type == TY_B64) && !constant->single)
		*ret_bits = constant->bits;
	else if (type == TY_F64 || type == TY_B64)
		*ret_bits = f64_bits(value);
	else if (type == TY_F16 || type == TY_BF16)
		*ret_bits = ptx_half_bits(value, type == TY_BF16, 0);
	else
		return ptx_text_fail_at(text_of(loader), line, PTX_INVALID, "a float constant where %s is due",
		                        bits_type ? "bits are" : "an integer");
	return true;
}
