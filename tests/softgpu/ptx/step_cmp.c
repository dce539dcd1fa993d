/* Comparisons: setp into predicates, set into a register. */
#include <math.h>

#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/steps.h"

static inline bool join(const struct insn *insn, bool value, uint64_t with)
{
	switch (insn->width) {
	case JOIN_AND:
		return value && with;
	case JOIN_OR:
		return value || with;
	case JOIN_XOR:
		return value != (bool)with;
	default:
		return value;
	}
}

static inline float value_f32(uint64_t bits, unsigned flags)
{
	return flags & FLAG_FTZ && !((uint32_t)bits & 0x7f800000u) ? 0.0f : bits_f32(bits);
}

#define READ_u16(x) (uint16_t)(x)
#define READ_s16(x) (int16_t)(x)
#define READ_u32(x) (uint32_t)(x)
#define READ_s32(x) (int32_t)(x)
#define READ_u64(x) (x)
#define READ_s64(x) (int64_t)(x)
#define READ_f32(x) value_f32(x, insn->flags)
#define READ_f64(x) bits_f64(x)
#define READ_f16(x) ptx_half_value((uint16_t)(x), false)
#define READ_bf16(x) ptx_half_value((uint16_t)(x), true)

/* What set writes for true. */
static uint64_t set_value(enum ptx_type type)
{
	return type == TY_F32    ? 0x3f800000u
	       : type == TY_F16  ? 0x3c00u
	       : type == TY_BF16 ? 0x3f80u
	                         : width_mask(ptx_type_bytes(type));
}

#define COMPARE(name, T, expression)                                                                                   \
	STEP(setp_##name##_##T)                                                                                        \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d);                                                                     \
		const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b);                                     \
		if (insn->width == JOIN_NONE && insn->e == NO_OPERAND) {                                               \
			LANES(mask, __typeof__(READ_##T(a[i])) x = READ_##T(a[i]); __typeof__(x) y = READ_##T(b[i]);   \
			      d[i] = (expression););                                                                   \
			return STEP_NEXT;                                                                              \
		}                                                                                                      \
		const uint64_t *c = slot(warp, insn->c);                                                               \
		uint64_t *e = insn->e == NO_OPERAND ? NULL : slot(warp, insn->e);                                      \
		for (uint32_t rest = mask; rest; rest &= rest - 1) {                                                   \
			unsigned i = (unsigned)__builtin_ctz(rest);                                                    \
			__typeof__(READ_##T(a[i])) x = READ_##T(a[i]), y = READ_##T(b[i]);                             \
			bool value = (expression);                                                                     \
			uint64_t with = c[i];                                                                          \
			d[i] = join(insn, value, with);                                                                \
			if (e)                                                                                         \
				e[i] = join(insn, !value, with);                                                       \
		}                                                                                                      \
		return STEP_NEXT;                                                                                      \
	}                                                                                                              \
	STEP(set_##name##_##T)                                                                                         \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d);                                                                     \
		const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b), *c = slot(warp, insn->c);           \
		uint64_t yes = set_value(insn->type2);                                                                 \
		LANES(mask, __typeof__(READ_##T(a[i])) x = READ_##T(a[i]); __typeof__(x) y = READ_##T(b[i]);           \
		      d[i] = join(insn, (expression), c[i]) ? yes : 0;);                                               \
		return STEP_NEXT;                                                                                      \
	}

#define UNORDERED (x != x || y != y)
#define ORDER(T)                                                                                                       \
	COMPARE(lt, T, x < y)                                                                                          \
	COMPARE(le, T, x <= y)                                                                                         \
	COMPARE(gt, T, x > y)                                                                                          \
	COMPARE(ge, T, x >= y)
#define EQUAL(T)                                                                                                       \
	COMPARE(eq, T, x == y)                                                                                         \
	COMPARE(ne, T, x != y)
#define FLOATS(T)                                                                                                      \
	ORDER(T)                                                                                                       \
	COMPARE(eq, T, x == y)                                                                                         \
	COMPARE(ne, T, x<y || x> y)                                                                                    \
	COMPARE(equ, T, x == y || UNORDERED)                                                                           \
	COMPARE(neu, T, x != y)                                                                                        \
	COMPARE(ltu, T, !(x >= y))                                                                                     \
	COMPARE(leu, T, !(x > y))                                                                                      \
	COMPARE(gtu, T, !(x <= y))                                                                                     \
	COMPARE(geu, T, !(x < y))                                                                                      \
	COMPARE(num, T, !UNORDERED)                                                                                    \
	COMPARE(nan, T, UNORDERED)

ORDER(u16)
ORDER(s16)
ORDER(u32)
ORDER(s32)
ORDER(u64)
ORDER(s64)
EQUAL(u16)
EQUAL(u32)
EQUAL(u64)
FLOATS(f32)
FLOATS(f64)
FLOATS(f16)
FLOATS(bf16)

/* Comparisons of one half, for the pairs: unlike the others, by a switch. */
static bool holds(enum cmp_op op, double x, double y)
{
	bool unordered = x != x || y != y;

	switch (op) {
	case CMP_EQ:
		return x == y;
	case CMP_NE:
		return x < y || x > y;
	case CMP_LT:
		return x < y;
	case CMP_LE:
		return x <= y;
	case CMP_GT:
		return x > y;
	case CMP_GE:
		return x >= y;
	case CMP_EQU:
		return unordered || x == y;
	case CMP_NEU:
		return x != y;
	case CMP_LTU:
		return unordered || x < y;
	case CMP_LEU:
		return unordered || x <= y;
	case CMP_GTU:
		return unordered || x > y;
	case CMP_GEU:
		return unordered || x >= y;
	case CMP_NUM:
		return !unordered;
	default:
		return unordered;
	}
}

static double half_of_pair(uint64_t pair, unsigned which, const struct insn *insn)
{
	bool brain = insn->type == TY_BF16X2;
	double value = ptx_half_value((uint16_t)(pair >> 16 * which), brain);

	return insn->flags & FLAG_FTZ && fabs(value) < (brain ? 0x1p-126 : 0x1p-14) ? 0 : value;
}

STEP(setp_pair)
{
	uint64_t *d = slot(warp, insn->d), *e = insn->e == NO_OPERAND ? NULL : slot(warp, insn->e);
	const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b), *c = slot(warp, insn->c);

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);
		bool low = holds(insn->op, half_of_pair(a[i], 0, insn), half_of_pair(b[i], 0, insn));
		bool high = holds(insn->op, half_of_pair(a[i], 1, insn), half_of_pair(b[i], 1, insn));
		uint64_t with = c[i];

		d[i] = join(insn, low, with);
		if (e)
			e[i] = join(insn, high, with);
	}
	return STEP_NEXT;
}

/* Into a pair of halves: one or zero; into an integer: two masks. */
STEP(set_pair)
{
	uint64_t *d = slot(warp, insn->d);
	const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b), *c = slot(warp, insn->c);
	uint64_t yes = insn->type2 == TY_F16X2 ? 0x3c00 : insn->type2 == TY_BF16X2 ? 0x3f80 : 0xffff;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);
		bool low = holds(insn->op, half_of_pair(a[i], 0, insn), half_of_pair(b[i], 0, insn));
		bool high = holds(insn->op, half_of_pair(a[i], 1, insn), half_of_pair(b[i], 1, insn));
		uint64_t with = c[i];

		d[i] = (join(insn, low, with) ? yes : 0) | (join(insn, high, with) ? yes << 16 : 0);
	}
	return STEP_NEXT;
}

#define PAIR_OF(name, T)                                                                                               \
	{                                                                                                              \
		setp_##name##_##T, set_##name##_##T                                                                    \
	}
#define EQUALS(name)                                                                                                   \
	[TY_B16] = PAIR_OF(name, u16), [TY_U16] = PAIR_OF(name, u16), [TY_S16] = PAIR_OF(name, u16),                   \
	[TY_B32] = PAIR_OF(name, u32), [TY_U32] = PAIR_OF(name, u32), [TY_S32] = PAIR_OF(name, u32),                   \
	[TY_B64] = PAIR_OF(name, u64), [TY_U64] = PAIR_OF(name, u64), [TY_S64] = PAIR_OF(name, u64)
#define ORDERS(name)                                                                                                   \
	[TY_U16] = PAIR_OF(name, u16), [TY_S16] = PAIR_OF(name, s16), [TY_U32] = PAIR_OF(name, u32),                   \
	[TY_S32] = PAIR_OF(name, s32), [TY_U64] = PAIR_OF(name, u64), [TY_S64] = PAIR_OF(name, s64)
#define REALS(name)                                                                                                    \
	[TY_F32] = PAIR_OF(name, f32), [TY_F64] = PAIR_OF(name, f64), [TY_F16] = PAIR_OF(name, f16), [TY_BF16] = PAIR_OF(name, bf16)

step_fn ptx_step_compare(enum cmp_op op, enum ptx_type type, bool set)
{
	static const step_fn steps[CMP_COUNT][TY_COUNT][2] = {
		[CMP_EQ] = {EQUALS(eq), REALS(eq)}, [CMP_NE] = {EQUALS(ne), REALS(ne)},
		[CMP_LT] = {ORDERS(lt), REALS(lt)}, [CMP_LE] = {ORDERS(le), REALS(le)},
		[CMP_GT] = {ORDERS(gt), REALS(gt)}, [CMP_GE] = {ORDERS(ge), REALS(ge)},
		[CMP_EQU] = {REALS(equ)},           [CMP_NEU] = {REALS(neu)},
		[CMP_LTU] = {REALS(ltu)},           [CMP_LEU] = {REALS(leu)},
		[CMP_GTU] = {REALS(gtu)},           [CMP_GEU] = {REALS(geu)},
		[CMP_NUM] = {REALS(num)},           [CMP_NAN] = {REALS(nan)},
	};

	if (type == TY_F16X2 || type == TY_BF16X2)
		return set ? set_pair : setp_pair;
	return steps[op][type][set];
}
