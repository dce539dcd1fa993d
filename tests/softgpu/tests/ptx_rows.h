/* What the tables of instructions share: a row is one instruction, its operands and the bits that come out. */
#ifndef SOFTGPU_TESTS_PTX_ROWS_H
#define SOFTGPU_TESTS_PTX_ROWS_H

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/softgpu/tests/ptx_rig.h"

/*
 * %h1 %r1 %d1 hold the low 16, 32 and 64 bits of a, %p1 whether a's lowest bit is set; 2 and 3 likewise for b and c.
 * The instruction writes register 0 of the row's kind: h, r, d or p. It begins as all ones.
 */
struct row {
	const char *text;
	char kind;
	uint64_t a, b, c, expected;
};

static const char frame[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
	".reg .b16 %%h<4>; .reg .b32 %%r<8>; .reg .b64 %%d<8>; .reg .pred %%p<8>;\n"
	"ld.param.u64 %%d4, [out]; ld.param.u64 %%d5, [in];\n"
	"ld.global.b16 %%h1, [%%d5]; ld.global.b16 %%h2, [%%d5+8]; ld.global.b16 %%h3, [%%d5+16];\n"
	"ld.global.b32 %%r1, [%%d5]; ld.global.b32 %%r2, [%%d5+8]; ld.global.b32 %%r3, [%%d5+16];\n"
	"ld.global.b64 %%d1, [%%d5]; ld.global.b64 %%d2, [%%d5+8]; ld.global.b64 %%d3, [%%d5+16];\n"
	"and.b32 %%r4, %%r1, 1; setp.ne.u32 %%p1, %%r4, 0; and.b32 %%r4, %%r2, 1; setp.ne.u32 %%p2, %%r4, 0;\n"
	"and.b32 %%r4, %%r3, 1; setp.ne.u32 %%p3, %%r4, 0;\n"
	"mov.b16 %%h0, 0xffff; mov.b32 %%r0, 0xffffffff; mov.b64 %%d0, 0xffffffffffffffff; setp.eq.u32 %%p0, 0, 0;\n"
	"%s\n"
	"%s\nret;\n}\n";

static const char *store(char kind)
{
	switch (kind) {
	case 'h':
		return "st.global.b16 [%d4], %h0;";
	case 'r':
		return "st.global.b32 [%d4], %r0;";
	case 'p':
		return "selp.b32 %r0, 1, 0, %p0; st.global.b32 [%d4], %r0;";
	default:
		return "st.global.b64 [%d4], %d0;";
	}
}

static void run_rows(const struct row *rows, size_t count)
{
	struct rig rig;

	for (size_t n = 0; n < count; n++) {
		const struct row *row = &rows[n];
		char text[4096];

		rig_create(&rig);
		snprintf(text, sizeof(text), frame, row->text, store(row->kind));
		uint64_t out = rig_alloc(&rig, 8), in = rig_alloc(&rig, 24);
		RIG_AT(uint64_t, in)[0] = row->a;
		RIG_AT(uint64_t, in)[1] = row->b;
		RIG_AT(uint64_t, in)[2] = row->c;
		cr_assert_eq(rig_load(&rig, text), PTX_OK, "%s: %s", row->text, rig.log);
		cr_assert_eq(RIG_RUN(&rig, "k", 1, 1, 0, out, in), PTX_OK, "%s: %s", row->text, rig.fault.message);
		uint64_t got = *RIG_AT(uint64_t, out);
		cr_expect_eq(got, row->expected, "%s with %llx %llx %llx gave %llx, not %llx", row->text,
		             (unsigned long long)row->a, (unsigned long long)row->b, (unsigned long long)row->c,
		             (unsigned long long)got, (unsigned long long)row->expected);
		/* The same for a full warp, which takes the vectorised way. */
		*RIG_AT(uint64_t, out) = 0;
		cr_assert_eq(RIG_RUN(&rig, "k", 1, 32, 0, out, in), PTX_OK, "%s: %s", row->text, rig.fault.message);
		cr_expect_eq(*RIG_AT(uint64_t, out), row->expected, "%s in a full warp", row->text);
		rig_destroy(&rig);
	}
}

#define RUN_ROWS(rows) run_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static inline uint64_t f(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, 4);
	return bits;
}

static inline uint64_t g(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, 8);
	return bits;
}

#define NEG(x) ((uint64_t) - (int64_t)(x))
#define NEG32(x) ((uint32_t) - (int32_t)(x))
#define NEG16(x) ((uint16_t) - (int16_t)(x))
#define INF INFINITY
#define ALL64 UINT64_MAX
#define ALL32 UINT64_C(0xffffffff)
#define MIN32 UINT64_C(0x80000000)
#define MIN64 (UINT64_C(1) << 63)

#endif
