/*
 * Matrices of a warp: ldmatrix, and mma.m16n8 of f16, bf16 and tf32. Which lane holds which element is the ISA's
 * figures: with g = lane / 4 and t = lane % 4, a register of A has row g or g + 8 and the columns 2t and 2t + 1, and so
 * on.
 *
 * A product is exact in double; the sum is made in double and rounded once. The hardware cuts its sums in ways that
 * nobody has written down, so the last bits differ.
 */
#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/reach.h"
#include "tests/softgpu/ptx/steps.h"

#define ROWS 16u
#define COLUMNS 8u
#define DEPTH 16u

static uint16_t element_at(const uint64_t *rows, unsigned lane_of_row, unsigned column, uint32_t reached)
{
	uint16_t value;

	if (!(reached >> lane_of_row & 1))
		return 0;
	memcpy(&value, (const uint8_t *)(uintptr_t)rows[lane_of_row] + 2 * column, sizeof(value));
	return value;
}

/*
 * count: matrices; FLAG_HIGH: .trans; extra: the registers. Lanes 8n to 8n + 7 hold the addresses of matrix n's rows.
 */
STEP(ldmatrix)
{
	const uint32_t *registers = insn->extra;
	struct reach reach = {0};
	uint32_t holders = mask & (uint32_t)width_mask(insn->count);

	if (!ptx_gathered(warp, insn, mask))
		return STEP_TURN;
	if (holders && ptx_reach(warp, insn, holders, 16, false, &reach) != STEP_NEXT)
		return STEP_FAULT;
	for (unsigned n = 0; n < insn->count; n++)
		for (uint32_t rest = mask; rest; rest &= rest - 1) {
			unsigned lane = (unsigned)__builtin_ctz(rest), row = lane / 4, pair = lane % 4 * 2;
			bool trans = insn->flags & FLAG_HIGH;
			uint32_t low = element_at(reach.at, 8 * n + (trans ? pair : row), trans ? row : pair, holders);
			uint32_t high =
				element_at(reach.at, 8 * n + (trans ? pair + 1 : row), trans ? row : pair + 1, holders);

			slot(warp, registers[n])[lane] = high << 16 | low;
		}
	return STEP_NEXT;
}

/* The value of one half of a register of A or B, or of all of it for tf32, whose low bits do not count. */
static double value_of(const struct warp *warp, const struct insn *insn, uint32_t operand, unsigned lane, unsigned half)
{
	uint64_t bits = slot(warp, operand)[lane];

	return insn->type == TY_F32 ? bits_f32(bits & 0xffffe000u)
	                            : ptx_half_value((uint16_t)(bits >> 16 * half), insn->type == TY_BF16);
}

static void read_factors(const struct warp *warp, const struct insn *insn, double a[ROWS][DEPTH],
                         double b[DEPTH][COLUMNS])
{
	const struct mma_operands *operands = insn->extra;
	unsigned halves = insn->type == TY_F32 ? 1 : 2;

	for (unsigned lane = 0; lane < WARP_LANES; lane++)
		for (unsigned half = 0; half < halves; half++) {
			unsigned row = lane / 4, at = lane % 4 * halves + half;

			for (unsigned n = 0; n < operands->a_count; n++)
				a[row + 8 * (n & 1)][at + 4 * halves * (n / 2)] =
					value_of(warp, insn, operands->a[n], lane, half);
			for (unsigned n = 0; n < operands->b_count; n++)
				b[at + 4 * halves * n][row] = value_of(warp, insn, operands->b[n], lane, half);
		}
}

/* op: the depth; type: of A and B; type2: of C and D, f32 or f16. */
STEP(mma)
{
	const struct mma_operands *operands = insn->extra;
	double a[ROWS][DEPTH] = {{0}}, b[DEPTH][COLUMNS] = {{0}};

	if (!ptx_gathered(warp, insn, mask))
		return STEP_TURN;
	read_factors(warp, insn, a, b);
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);
		bool single = insn->type2 == TY_F32;
		uint16_t halves[4];
		float singles[4];

		for (unsigned n = 0; n < 4; n++) {
			unsigned row = lane / 4 + 8 * (n / 2), column = lane % 4 * 2 + n % 2;
			uint64_t bits = slot(warp, operands->c[single ? n : n / 2])[lane];
			double sum = single ? bits_f32(bits) : ptx_half_value((uint16_t)(bits >> 16 * (n % 2)), false);

			for (unsigned k = 0; k < insn->op; k++)
				sum += a[row][k] * b[k][column];
			singles[n] = (float)sum;
			halves[n] = ptx_half_bits(sum, false, 0);
		}
		for (unsigned n = 0; n < (single ? 4u : 2u); n++)
			slot(warp, operands->d[n])[lane] = !single ? (uint32_t)halves[2 * n + 1] << 16 | halves[2 * n]
			                                   : singles[n] != singles[n] ? 0x7fffffffu
			                                                              : f32_bits(singles[n]);
	}
	return STEP_NEXT;
}

step_fn ptx_step_matrix(enum matrix_op op)
{
	return op == MATRIX_LOAD ? ldmatrix : mma;
}
