/* 32-bit bit tricks, packing, sign and class of floats, clocks, address spaces. */
#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/reach.h"
#include "tests/softgpu/ptx/steps.h"

#include <time.h>

#define OP(name, ...)                                                                                                  \
	STEP(name)                                                                                                     \
	{                                                                                                              \
		uint64_t *d = slot(warp, insn->d);                                                                     \
		const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b), *c = slot(warp, insn->c);           \
		(void)b;                                                                                               \
		(void)c;                                                                                               \
		LANES(mask, d[i] = (__VA_ARGS__););                                                                    \
		return STEP_NEXT;                                                                                      \
	}

static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, unsigned table)
{
	uint32_t result = 0;

	for (unsigned row = 0; row < 8; row++)
		if (table >> row & 1)
			result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
	return result;
}

enum { PRMT_BYTES, PRMT_F4E, PRMT_B4E, PRMT_RC8, PRMT_ECL, PRMT_ECR, PRMT_RC16 };

static inline uint32_t permute(uint32_t a, uint32_t b, uint32_t control, unsigned mode)
{
	uint64_t bytes = (uint64_t)b << 32 | a;
	unsigned base = control & 3;
	uint32_t result = 0;

	for (unsigned n = 0; n < 4; n++) {
		unsigned pick = control >> 4 * n & 15;
		bool sign = false;

		switch (mode) {
		case PRMT_F4E:
			pick = (base + n) & 7;
			break;
		case PRMT_B4E:
			pick = (base - n) & 7;
			break;
		case PRMT_RC8:
			pick = base;
			break;
		case PRMT_ECL:
			pick = n < base ? base : n;
			break;
		case PRMT_ECR:
			pick = n < base ? n : base;
			break;
		case PRMT_RC16:
			pick = (base & 1) * 2 + (n & 1);
			break;
		default:
			sign = pick & 8;
			pick &= 7;
		}
		uint32_t byte = bytes >> 8 * pick & 255;
		result |= (sign ? (byte & 128 ? 255u : 0u) : byte) << 8 * n;
	}
	return result;
}

static inline uint32_t funnel(uint32_t low, uint32_t high, uint32_t by, bool left, bool clamp)
{
	unsigned shift = clamp ? (by > 32 ? 32 : by) : by & 31;
	uint64_t both = (uint64_t)high << 32 | low;

	return left ? (uint32_t)((shift == 32 ? both << 32 : both << shift) >> 32) : (uint32_t)(both >> shift);
}

static inline uint32_t part(uint32_t x, unsigned index, unsigned bits, bool is_signed)
{
	uint32_t value = x >> index * bits & (bits == 8 ? 0xffu : 0xffffu);

	if (!is_signed)
		return value;
	return bits == 8 ? (uint32_t)(int8_t)value : (uint32_t)(int16_t)value;
}

static inline uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c, bool a_signed, bool b_signed)
{
	for (unsigned n = 0; n < 4; n++)
		c += part(a, n, 8, a_signed) * part(b, n, 8, b_signed);
	return c;
}

static inline uint32_t dp2a(uint32_t a, uint32_t b, uint32_t c, bool a_signed, bool b_signed, bool high)
{
	for (unsigned n = 0; n < 2; n++)
		c += part(a, n, 16, a_signed) * part(b, n + (high ? 2 : 0), 8, b_signed);
	return c;
}

static inline uint32_t bit_mask(uint32_t start, uint32_t length, bool clamp)
{
	start = clamp ? (start > 32 ? 32 : start) : start & 31;
	length = clamp ? (length > 32 ? 32 : length) : length & 31;
	return (uint32_t)((((UINT64_C(1) << length) - 1) << start));
}

static inline uint32_t extend(uint32_t value, uint32_t width, bool is_signed, bool clamp)
{
	width = clamp ? (width > 32 ? 32 : width) : width & 31;
	if (width == 32)
		return value;
	uint32_t low = value & ((1u << width) - 1);

	return is_signed && width && value >> (width - 1) & 1 ? low | ~((1u << width) - 1) : low;
}

/* The position of the offset-th set bit from base on, upwards or downwards; all ones when there is none. */
static inline uint32_t nth_set(uint32_t bits, uint32_t base, int32_t offset)
{
	int32_t at = (int32_t)(base & 31), step = offset < 0 ? -1 : 1;
	int64_t left = offset < 0 ? -(int64_t)offset : offset;

	if (!offset)
		return bits >> at & 1 ? (uint32_t)at : UINT32_MAX;
	for (; at >= 0 && at < 32; at += step)
		if (bits >> at & 1 && --left == 0)
			return (uint32_t)at;
	return UINT32_MAX;
}

#define A_SIGNED (insn->flags & FLAG_SIGNED)
#define B_SIGNED (!(insn->flags & FLAG_UNSIGNED_SECOND))

OP(step_lop3, lop3((uint32_t)a[i], (uint32_t)b[i], (uint32_t)c[i], (unsigned)insn->imm))
OP(step_prmt, permute((uint32_t)a[i], (uint32_t)b[i], (uint32_t)c[i], (unsigned)insn->imm))
OP(step_shf_l, funnel((uint32_t)a[i], (uint32_t)b[i], (uint32_t)c[i], true, insn->flags &FLAG_CLAMP))
OP(step_shf_r, funnel((uint32_t)a[i], (uint32_t)b[i], (uint32_t)c[i], false, insn->flags &FLAG_CLAMP))
OP(step_dp4a, dp4a((uint32_t)a[i], (uint32_t)b[i], (uint32_t)c[i], A_SIGNED, B_SIGNED))
OP(step_dp2a, dp2a((uint32_t)a[i], (uint32_t)b[i], (uint32_t)c[i], A_SIGNED, B_SIGNED, insn->flags &FLAG_HIGH))
OP(step_bmsk, bit_mask((uint32_t)a[i], (uint32_t)b[i], insn->flags &FLAG_CLAMP))
OP(step_szext, extend((uint32_t)a[i], (uint32_t)b[i], A_SIGNED, insn->flags &FLAG_CLAMP))
OP(step_fns, nth_set((uint32_t)a[i], (uint32_t)b[i], (int32_t)c[i]))

/* NaN selects b; a subnormal c counts as zero with .ftz, and both zeros select a. */
static inline bool selects_first(uint64_t c, enum ptx_type type)
{
	return type == TY_F32 ? bits_f32(c) >= 0.0f : (int32_t)c >= 0;
}

static inline bool tiny(uint64_t bits)
{
	return !((uint32_t)bits & 0x7f800000u);
}

OP(step_slct, selects_first(insn->flags &FLAG_FTZ &&tiny(c[i]) ? 0 : c[i], insn->type2) ? a[i] : b[i])

/* width: bytes of one element; extra: their slots. */
STEP(step_pack)
{
	const uint32_t *from = insn->extra;
	uint64_t *d = slot(warp, insn->d);

	LANES(mask, uint64_t value = 0;
	      for (unsigned n = 0; n < insn->count; n++) value |= slot(warp, from[n])[i] << (8 * insn->width * n);
	      d[i] = value;);
	return STEP_NEXT;
}

STEP(step_unpack)
{
	const uint32_t *to = insn->extra;
	const uint64_t *a = slot(warp, insn->a);

	LANES(mask, uint64_t value = a[i]; for (unsigned n = 0; n < insn->count; n++) slot(warp, to[n])[i] =
	                                           value >> (8 * insn->width * n) & width_mask(insn->width););
	return STEP_NEXT;
}

STEP(step_copysign)
{
	uint64_t *d = slot(warp, insn->d), sign = insn->type == TY_F64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
	const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b);

	/* The sign of a goes to b's magnitude. */
	LANES(mask, d[i] = (a[i] & sign) | (b[i] & ~sign););
	return STEP_NEXT;
}

static bool is_class(uint64_t bits, bool is_double, enum testp test)
{
	uint64_t exponent = is_double ? bits >> 52 & 0x7ff : bits >> 23 & 0xff, top = is_double ? 0x7ff : 0xff;
	uint64_t fraction = is_double ? bits & ((UINT64_C(1) << 52) - 1) : bits & 0x7fffff;

	switch (test) {
	case TESTP_FINITE:
		return exponent != top;
	case TESTP_INFINITE:
		return exponent == top && !fraction;
	case TESTP_NUMBER:
		return exponent != top || !fraction;
	case TESTP_NOTANUMBER:
		return exponent == top && fraction;
	case TESTP_NORMAL:
		return exponent != top && (exponent || !fraction); /* zero is normal, the hardware says */
	default:
		return !exponent && fraction;
	}
}

OP(step_testp, is_class(a[i], insn->type == TY_F64, insn->op))

STEP(step_clock)
{
	uint64_t *d = slot(warp, insn->d), value;
	bool timer = insn->op == SP_TIMER || insn->op == SP_TIMER_LO || insn->op == SP_TIMER_HI;

	if (timer) {
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		value = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	} else {
		value = warp->block->instructions; /* grows with every instruction of the block */
	}
	if (insn->op == SP_CLOCK || insn->op == SP_TIMER_LO)
		value = (uint32_t)value;
	else if (insn->op == SP_CLOCK_HI || insn->op == SP_TIMER_HI)
		value >>= 32;
	LANES(mask, d[i] = value;);
	return STEP_NEXT;
}

/* Where a space's window lies among generic addresses, for one thread. */
static void window(const struct warp *warp, unsigned lane, enum ptx_space space, uint64_t *ret_base, uint64_t *ret_bytes)
{
	const struct block *block = warp->block;

	*ret_base = 0;
	*ret_bytes = 0;
	if (space == SPACE_SHARED) {
		*ret_base = (uintptr_t)block->shared;
		*ret_bytes = block->shared_bytes;
	} else if (space == SPACE_LOCAL) {
		*ret_base = (uintptr_t)block->local + (warp->index * WARP_LANES + lane) * block->local_bytes;
		*ret_bytes = block->local_bytes;
	} else if (space == SPACE_PARAM) {
		*ret_base = (uintptr_t)block->params;
		*ret_bytes = block->params_bytes;
	}
}

STEP(step_isspace)
{
	uint64_t *d = slot(warp, insn->d);
	const uint64_t *a = slot(warp, insn->a);

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);
		uint64_t base, bytes;
		bool inside = false;

		if (insn->space == SPACE_GLOBAL) {
			inside = true;
			for (enum ptx_space space = SPACE_SHARED; space <= SPACE_PARAM; space++) {
				window(warp, i, space, &base, &bytes);
				inside = inside && a[i] - base >= bytes;
			}
			inside = inside && !ptx_shared_owner(warp->block, a[i]);
		} else {
			window(warp, i, insn->space, &base, &bytes);
			inside = a[i] - base < bytes;
		}
		/* Of shared::cluster the width says so. */
		if (insn->space == SPACE_SHARED && insn->width)
			inside = ptx_shared_owner(warp->block, a[i]) != NULL;
		d[i] = inside;
	}
	return STEP_NEXT;
}

STEP(step_cvta)
{
	uint64_t *d = slot(warp, insn->d), base, bytes;
	const uint64_t *a = slot(warp, insn->a);

	if (insn->space == SPACE_SHARED) {
		LANES(mask, d[i] = ptx_shared_generic(warp->block, a[i]););
		return STEP_NEXT;
	}
	LANES(mask, window(warp, i, insn->space, &base, &bytes); d[i] = a[i] + base;);
	return STEP_NEXT;
}

STEP(step_cvta_to)
{
	uint64_t *d = slot(warp, insn->d), base, bytes;
	const uint64_t *a = slot(warp, insn->a);

	if (insn->space == SPACE_SHARED) {
		LANES(mask, d[i] = ptx_shared_window(warp->block, a[i]) & width_mask(insn->width););
		return STEP_NEXT;
	}
	LANES(mask, window(warp, i, insn->space, &base, &bytes); d[i] = (a[i] - base) & width_mask(insn->width););
	return STEP_NEXT;
}

step_fn ptx_step_misc(enum bit32_op op)
{
	static const step_fn steps[BIT32_COUNT] = {
		[BIT_LOP3] = step_lop3,         [BIT_PRMT] = step_prmt,   [BIT_SHF_L] = step_shf_l,
		[BIT_SHF_R] = step_shf_r,       [BIT_DP4A] = step_dp4a,   [BIT_DP2A] = step_dp2a,
		[BIT_BMSK] = step_bmsk,         [BIT_SZEXT] = step_szext, [BIT_FNS] = step_fns,
		[BIT_SLCT] = step_slct,         [BIT_PACK] = step_pack,   [BIT_UNPACK] = step_unpack,
		[BIT_COPYSIGN] = step_copysign, [BIT_TESTP] = step_testp, [BIT_CLOCK] = step_clock,
		[BIT_ISSPACE] = step_isspace,   [BIT_CVTA] = step_cvta,   [BIT_CVTA_TO] = step_cvta_to,
	};

	return steps[op];
}
