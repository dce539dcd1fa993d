/* What real programs bring along, from nvcc with and without -G. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/tests/ptx_rig.h"

static struct rig rig;

static void load(const char *file)
{
	rig_create(&rig);
	enum ptx_status status = rig_load_file(&rig, file);
	cr_assert_eq(status, PTX_OK, "%s: %d: %s", file, status, rig.log);
}

static const char *const files[] = {"more.ptx", "more_debug.ptx"};
#define EACH_FILE(file) for (const char *const *file = files; file < files + 2; file++)

#define RUN(...)                                                                                                       \
	do {                                                                                                           \
		enum ptx_status status_ = RIG_RUN(&rig, __VA_ARGS__);                                                  \
		cr_assert_eq(status_, PTX_OK, "%d: %s", status_, rig.fault.message);                                   \
	} while (0)

Test(ptx_programs, libdevice, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t x = rig_alloc(&rig, 512), y = rig_alloc(&rig, 512), u = rig_alloc(&rig, 256),
			 v = rig_alloc(&rig, 256);
		for (int i = 0; i < 64; i++) {
			RIG_AT(double, x)[i] = 0.05 + i * 0.173;
			RIG_AT(float, u)[i] = 0.05f + (float)i * 0.173f;
		}
		RUN("functions", 1, 64, 0, x, y, u, v, 64);
		for (int i = 0; i < 64; i++) {
			double a = RIG_AT(double, x)[i];
			float b = RIG_AT(float, u)[i];
			double expected = sin(a) + pow(a, 1.3) + exp(-a) + log(a + 1.0) + erf(a) + cbrt(a);
			double single = sin(b) + pow(b, 2.2f) + exp(-b) + log(b + 1.0f) + fmodf(b, 0.3f) + tanh(b);
			cr_expect_float_eq(RIG_AT(double, y)[i], expected, 1e-13 * (1 + fabs(expected)),
			                   "%s %d: %.17g, not %.17g", *file, i, RIG_AT(double, y)[i], expected);
			cr_expect_float_eq(RIG_AT(float, v)[i], single, 3e-6 * (1 + fabs(single)),
			                   "%s %d: %.9g, not %.9g", *file, i, (double)RIG_AT(float, v)[i], single);
		}
		rig_destroy(&rig);
	}
}

Test(ptx_programs, integers_of_128_bits, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t a = rig_alloc(&rig, 32 * 16), b = rig_alloc(&rig, 32 * 8), state = 5;
		unsigned __int128 wide[32];
		uint64_t narrow[32];
		for (int i = 0; i < 32; i++) {
			state = state * UINT64_C(6364136223846793005) + 1;
			wide[i] = (unsigned __int128)state * (state >> 7) >> (i * 3);
			narrow[i] = state >> i;
			memcpy(RIG_AT(char, a) + i * 16, &wide[i], 16);
			memcpy(RIG_AT(char, b) + i * 8, &narrow[i], 8);
		}
		RUN("wide", 1, 32, 0, a, b);
		for (int i = 0; i < 32; i++) {
			wide[i] = wide[i] * (wide[i] >> 3) + narrow[i];
			narrow[i] = (uint64_t)(wide[i] / (narrow[i] | 1));
		}
		cr_assert_arr_eq(RIG_AT(char, a), wide, sizeof(wide));
		for (int i = 0; i < 32; i++)
			cr_expect_eq(RIG_AT(uint64_t, b)[i], narrow[i], "%s %d: %llx, not %llx", *file, i,
			             (unsigned long long)RIG_AT(uint64_t, b)[i], (unsigned long long)narrow[i]);
		rig_destroy(&rig);
	}
}

struct mixed {
	int a[20];
	double d;
	char c[7];
};

static void change(struct mixed *s, int k)
{
	s->a[k] += k;
	s->d *= 2;
	s->c[k % 7] = (char)k;
}

Test(ptx_programs, structs_by_value, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		union {
			struct mixed value;
			uint64_t words[12];
		} in = {.words = {0}};
		uint64_t out = rig_alloc(&rig, 24 * sizeof(struct mixed)), params[13];
		for (int k = 0; k < 20; k++)
			in.value.a[k] = k * 11;
		in.value.d = 1.25;
		memcpy(in.value.c, "abcdefg", 7);
		memcpy(params, in.words, sizeof(in.words));
		params[12] = out;
		cr_assert_eq(rig_run(&rig, "structs", 1, 24, 0, params, 13), PTX_OK, "%s", rig.fault.message);
		for (int i = 0; i < 24; i++) {
			struct mixed expected = in.value;
			change(&expected, i % 20);
			change(&expected, 3);
			const struct mixed *got = RIG_AT(struct mixed, out) + i;
			cr_assert_arr_eq(got->a, expected.a, sizeof(expected.a));
			cr_assert_eq(got->d, expected.d);
			cr_assert_arr_eq(got->c, expected.c, sizeof(expected.c));
		}
		rig_destroy(&rig);
	}
}

Test(ptx_programs, narrow_integers, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t a = rig_alloc(&rig, 64), b = rig_alloc(&rig, 128), c = rig_alloc(&rig, 64),
			 d = rig_alloc(&rig, 64);
		signed char signs[64];
		short shorts[64];
		unsigned char bytes[64];
		bool flags[64];
		for (int i = 0; i < 64; i++) {
			signs[i] = (signed char)(i * 37);
			shorts[i] = (short)(i * 7919 - 20000);
			bytes[i] = (unsigned char)(i * 91);
		}
		memcpy(RIG_AT(char, a), signs, sizeof(signs));
		memcpy(RIG_AT(char, b), shorts, sizeof(shorts));
		memcpy(RIG_AT(char, c), bytes, sizeof(bytes));
		RUN("narrow", 1, 64, 0, a, b, c, d);
		for (int i = 0; i < 64; i++) {
			signs[i] = (signed char)(signs[i] * 3 / (shorts[i] | 1));
			shorts[i] = (short)(shorts[i] % 7 + bytes[i]);
			bytes[i] = (unsigned char)(bytes[i] ^ signs[i]);
			flags[i] = signs[i] < shorts[i];
		}
		cr_assert_arr_eq(RIG_AT(char, a), signs, sizeof(signs));
		cr_assert_arr_eq(RIG_AT(char, b), shorts, sizeof(shorts));
		cr_assert_arr_eq(RIG_AT(char, c), bytes, sizeof(bytes));
		cr_assert_arr_eq(RIG_AT(char, d), flags, sizeof(flags));
		rig_destroy(&rig);
	}
}

Test(ptx_programs, cooperative_groups, .timeout = 30)
{
	load("more.ptx");
	uint64_t data = rig_alloc(&rig, 256);
	for (int i = 0; i < 64; i++)
		RIG_AT(int, data)[i] = i;
	RUN("groups", 1, 64, 0, data);
	for (int i = 0; i < 64; i++)
		cr_assert_eq(RIG_AT(int, data)[i], 16 * (i / 16 * 16) + 120 + 32 + 16, "%d: %d", i, RIG_AT(int, data)[i]);
	rig_destroy(&rig);
}

Test(ptx_programs, async_copies, .timeout = 30)
{
	load("more.ptx");
	uint64_t in = rig_alloc(&rig, 1024), out = rig_alloc(&rig, 1024);
	for (int i = 0; i < 256; i++)
		RIG_AT(float, in)[i] = (float)i;
	RUN("pipeline", 1, 64, 0, in, out);
	for (int i = 0; i < 256; i++) {
		int from = (63 - i / 4) * 4 + i % 4;

		cr_assert_eq(RIG_AT(float, out)[i], (float)from);
	}
	rig_destroy(&rig);
}

Test(ptx_programs, halves, .timeout = 30)
{
	load("more.ptx");
	uint64_t a = rig_alloc(&rig, 64), b = rig_alloc(&rig, 128), c = rig_alloc(&rig, 64), out = rig_alloc(&rig, 128);
	for (int i = 0; i < 32; i++) {
		RIG_AT(uint16_t, a)[i] = 0x4000;     /* 2 */
		RIG_AT(uint32_t, b)[i] = 0xbc004200; /* -1, 3 */
		RIG_AT(uint16_t, c)[i] = 0x4040;     /* 3 */
	}
	RUN("halves", 1, 32, 0, a, b, c, out);
	for (int i = 0; i < 32; i++) {
		cr_assert_eq(RIG_AT(uint16_t, a)[i], 0x4600); /* 2 * 2 + 2 */
		cr_assert_eq(RIG_AT(uint32_t, b)[i], 0xbc004600);
		cr_assert_eq(RIG_AT(uint16_t, c)[i], 0x4130); /* 3 * 3 + 2 */
		cr_assert_eq(RIG_AT(float, out)[i], 17.0f);
	}
	rig_destroy(&rig);
}

Test(ptx_programs, triton_like, .timeout = 30)
{
	load("triton_like.ptx");
	uint64_t x = rig_alloc(&rig, 1000 * 4), y = rig_alloc(&rig, 1000 * 4);
	float scale = -1.5f;
	uint32_t scale_bits;
	memcpy(&scale_bits, &scale, 4);
	for (int i = 0; i < 1000; i++) {
		RIG_AT(float, x)[i] = (float)(i % 17) - 8;
		RIG_AT(float, y)[i] = (float)(i % 5);
	}
	RUN("axpy_relu", 2, 128, 0, x, y, scale_bits, 1000);
	for (int i = 0; i < 1000; i++)
		cr_assert_eq(RIG_AT(float, y)[i], fmaxf(fmaf((float)(i % 17) - 8, scale, (float)(i % 5)), 0.0f), "%d", i);
	cr_assert_eq(RIG_RUN(&rig, "axpy_relu", 2, 64, 0, x, y, scale_bits, 1000), PTX_BAD_LAUNCH);
	rig_destroy(&rig);
}

/*
 * A matrix of 16 by 16 and one of 16 by 8, row by row in shared memory, through ldmatrix (the second transposed) and
 * one mma; lane l writes its four elements of the product where the ISA says they belong.
 */
static const char matrices[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
	".shared .align 16 .b8 room[768];\n.reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %rd<8>; .reg .b32 %a<4>; .reg .b32 %b<2>;\n"
	"ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, room;\n"
	"mul.wide.u32 %rd3, %r1, 24; add.u64 %rd3, %rd1, %rd3; mad.lo.u32 %r3, %r1, 24, %r2;\n"
	"ld.global.u64 %rd4, [%rd3]; st.shared.u64 [%r3], %rd4; ld.global.u64 %rd4, [%rd3+8]; st.shared.u64 [%r3+8], %rd4;\n"
	"ld.global.u64 %rd4, [%rd3+16]; st.shared.u64 [%r3+16], %rd4; bar.sync 0;\n"
	/* A's four: rows l % 16, columns 8 (l / 16). B's two: rows l % 16. */
	"and.b32 %r4, %r1, 15; shr.u32 %r5, %r1, 4; mad.lo.u32 %r6, %r4, 32, %r2; mad.lo.u32 %r6, %r5, 16, %r6;\n"
	"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%a0, %a1, %a2, %a3}, [%r6];\n"
	"mad.lo.u32 %r7, %r4, 16, %r2; ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%b0, %b1}, [%r7+512];\n"
	"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {0f3F800000, 0f3F800000, 0f3F800000, 0f3F800000};\n"
	"shr.u32 %r8, %r1, 2; and.b32 %r9, %r1, 3; mul.wide.u32 %rd5, %r8, 32; add.u64 %rd5, %rd5, %rd2; mul.wide.u32 %rd6, %r9, 8; add.u64 %rd5, %rd5, %rd6;\n"
	"st.global.v2.f32 [%rd5], {%f0, %f1}; st.global.v2.f32 [%rd5+256], {%f2, %f3};\nret;\n}\n";

/* Small integers as f16. */
static uint16_t small_half(unsigned n)
{
	return (const uint16_t[]){0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700}[n];
}

Test(ptx_programs, matrix_product, .timeout = 20)
{
	unsigned a[16][16], b[16][8];

	rig_create(&rig);
	cr_assert_eq(rig_load(&rig, matrices), PTX_OK, "%s", rig.log);
	uint64_t in = rig_alloc(&rig, 768), out = rig_alloc(&rig, 512);
	uint16_t *halves = RIG_AT(uint16_t, in);
	for (unsigned n = 0; n < 16; n++) {
		for (unsigned k = 0; k < 16; k++)
			*halves++ = small_half(a[n][k] = (n * 5 + k * 3 + n * k) % 8);
	}
	for (unsigned k = 0; k < 16; k++) {
		for (unsigned n = 0; n < 8; n++)
			*halves++ = small_half(b[k][n] = (k * 7 + n + k * n) % 8);
	}
	cr_assert_eq(RIG_RUN(&rig, "k", 1, 32, 0, in, out), PTX_OK, "%s", rig.fault.message);
	for (unsigned row = 0; row < 16; row++)
		for (unsigned column = 0; column < 8; column++) {
			unsigned sum = 1;

			for (unsigned k = 0; k < 16; k++)
				sum += a[row][k] * b[k][column];
			cr_expect_eq(RIG_AT(float, out)[row * 8 + column], (float)sum, "row %u column %u", row, column);
		}
	rig_destroy(&rig);
}
