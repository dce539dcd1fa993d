/* The SIMD video instructions: vadd4 and its family on the bytes or 16-bit halves of two registers. */
#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/steps.h"

static int part(uint64_t value, unsigned shift, unsigned bits, bool is_signed)
{
	uint32_t raw = (uint32_t)(value >> shift) & ((1u << bits) - 1);

	return is_signed && raw >> (bits - 1) ? (int)raw - (1 << bits) : (int)raw;
}

static int apply(const struct insn *insn, int a, int b)
{
	switch (insn->op) {
	case VIDEO_ADD:
		return a + b;
	case VIDEO_SUB:
		return a - b;
	case VIDEO_ABSDIFF:
		return a < b ? b - a : a - b;
	case VIDEO_MIN:
		return a < b ? a : b;
	case VIDEO_MAX:
		return a > b ? a : b;
	default:
		return insn->imm == CMP_EQ   ? a == b
		       : insn->imm == CMP_NE ? a != b
		       : insn->imm == CMP_LT ? a < b
		       : insn->imm == CMP_LE ? a <= b
		       : insn->imm == CMP_GT ? a > b
		                             : a >= b;
	}
}

/* width: bits of a part; count: whether d is c plus the sum of the parts. FLAG_HIGH: the result is signed. */
STEP(video)
{
	uint64_t *d = slot(warp, insn->d);
	const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b), *c = slot(warp, insn->c);
	unsigned bits = insn->width;
	bool is_signed = insn->flags & FLAG_HIGH;
	int most = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1, least = is_signed ? -most - 1 : 0;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);
		uint32_t parts = 0, sum = (uint32_t)c[i];

		for (unsigned shift = 0; shift < 32; shift += bits) {
			int value = apply(insn, part(a[i], shift, bits, insn->flags & FLAG_SIGNED),
			                  part(b[i], shift, bits, !(insn->flags & FLAG_UNSIGNED_SECOND)));

			if (insn->flags & FLAG_SAT)
				value = value > most ? most : value < least ? least : value;
			sum += (uint32_t)value;
			parts |= ((uint32_t)value & ((1u << bits) - 1)) << shift;
		}
		d[i] = insn->count ? sum : parts;
	}
	return STEP_NEXT;
}

step_fn ptx_step_video(void)
{
	return video;
}
