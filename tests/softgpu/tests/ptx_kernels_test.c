/* Kernels as nvcc writes them, against the same computed in C. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/tests/ptx_rig.h"

static struct rig rig;

static const char *const files[] = {"basic.ptx", "basic_90.ptx"};
#define EACH_FILE(file) for (const char *const *file = files; file < files + 2; file++)

static void load(const char *file)
{
	rig_create(&rig);
	enum ptx_status status = rig_load_file(&rig, file);
	cr_assert_eq(status, PTX_OK, "%s: %d: %s", file, status, rig.log);
}

static uint32_t noise(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 3;
}

#define RUN(...)                                                                                                       \
	do {                                                                                                           \
		enum ptx_status status_ = RIG_RUN(&rig, __VA_ARGS__);                                                  \
		cr_assert_eq(status_, PTX_OK, "%d: %s", status_, rig.fault.message);                                   \
	} while (0)

Test(ptx_kernels, fill, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t out = rig_alloc(&rig, 4000);
		RUN("fill_u32", 4, 256, 0, out, 0xdeadbeef, 999);
		for (int i = 0; i < 1000; i++)
			cr_assert_eq(RIG_AT(uint32_t, out)[i], i < 999 ? 0xdeadbeef : 0);
		cr_assert_eq(rig.wrote_bytes, 999 * 4);
		rig_destroy(&rig);
	}
}

Test(ptx_kernels, add, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t a = rig_alloc(&rig, 4000), b = rig_alloc(&rig, 4000), out = rig_alloc(&rig, 4000);
		for (int i = 0; i < 1000; i++) {
			RIG_AT(float, a)[i] = (float)i * 0.37f;
			RIG_AT(float, b)[i] = 1e6f / (float)(i + 1);
		}
		RUN("add_f32", 3, 96, 0, a, b, out, 1000);
		for (int i = 0; i < 1000; i++)
			cr_assert_eq(RIG_AT(float, out)[i], RIG_AT(float, a)[i] + RIG_AT(float, b)[i]);
		rig_destroy(&rig);
	}
}

Test(ptx_kernels, struct_params, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t in = rig_alloc(&rig, 400), out = rig_alloc(&rig, 400);
		float two = 2.5f, three = 3.0f;
		uint32_t scale_in, scale_out;
		memcpy(&scale_in, &two, 4);
		memcpy(&scale_out, &three, 4);
		for (int i = 0; i < 100; i++)
			RIG_AT(float, in)[i] = (float)i;
		size_t at, bytes;
		cr_assert(ptx_function_param(ptx_find(rig.module, "scale_view"), 1, &at, &bytes));
		cr_assert_eq(at, 24);
		cr_assert_eq(bytes, 24);
		RUN("scale_view", 1, 128, 0, in, 100, scale_in, out, 100, scale_out);
		for (int i = 0; i < 100; i++)
			cr_assert_eq(RIG_AT(float, out)[i], fmaf((float)i, 2.5f, 3.0f));
		rig_destroy(&rig);
	}
}

Test(ptx_kernels, in_place, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t data = rig_alloc(&rig, 400);
		for (int i = 0; i < 100; i++)
			RIG_AT(int, data)[i] = i;
		RUN("inplace_add", 2, 64, 0, data, (uint32_t)-5, 99);
		for (int i = 0; i < 100; i++)
			cr_assert_eq(RIG_AT(int, data)[i], i < 99 ? i - 5 : i);
		rig_destroy(&rig);
	}
}

Test(ptx_kernels, vector_copy, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t in = rig_alloc(&rig, 1600), out = rig_alloc(&rig, 1600);
		uint32_t state = 1;
		for (int i = 0; i < 400; i++)
			RIG_AT(uint32_t, in)[i] = noise(&state);
		RUN("copy_vec", 1, 100, 0, in, out, 100);
		cr_assert_arr_eq(RIG_AT(char, in), RIG_AT(char, out), 1600);
		rig_destroy(&rig);
	}
}

Test(ptx_kernels, block_sum, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t in = rig_alloc(&rig, 40000), out = rig_alloc(&rig, 8), expected = 0;
		uint32_t state = 7;
		for (int i = 0; i < 10000; i++)
			expected += RIG_AT(uint32_t, in)[i] = noise(&state);
		RUN("block_sum", 5, 256, 0, in, out, 10000);
		cr_assert_eq(*RIG_AT(uint64_t, out), expected);
		cr_assert_eq(ptx_function_static_shared(ptx_find(rig.module, "block_sum")), 2048);
		cr_assert_eq(ptx_function_static_shared(ptx_find(rig.module, "add_f32")), 0);
		rig_destroy(&rig);
	}
}

Test(ptx_kernels, hash, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t in = rig_alloc(&rig, 4000), out = rig_alloc(&rig, 64), warps[4] = {0};
		uint32_t state = 3;
		for (int i = 0; i < 1000; i++)
			RIG_AT(uint32_t, in)[i] = noise(&state);
		for (unsigned t = 0; t < 128; t++) {
			uint64_t h = 0x9e3779b97f4a7c15ull * (t + 1);
			for (unsigned i = t; i < 1000; i += 128)
				h = h * 0xff51afd7ed558ccdull + (uint64_t)RIG_AT(uint32_t, in)[i] * 0x85ebca6bu;
			warps[t / 32] ^= h;
		}
		RUN("hash_words", 1, 128, 0, in, out, 1000);
		cr_assert_arr_eq(RIG_AT(uint64_t, out), warps, sizeof(warps));
		rig_destroy(&rig);
	}
}

Test(ptx_kernels, signal_and_extremes, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t flag = rig_alloc(&rig, 4), data = rig_alloc(&rig, 4000), low = rig_alloc(&rig, 4),
			 high = rig_alloc(&rig, 4);
		uint64_t count = rig_alloc(&rig, 4);
		RUN("signal_host", 1, 100, 0, flag, data);
		cr_assert_eq(*RIG_AT(uint32_t, flag), 1);
		for (unsigned i = 0; i < 100; i++)
			cr_assert_eq(RIG_AT(uint32_t, data)[i], i * 3);
		for (int i = 0; i < 1000; i++)
			RIG_AT(int, data)[i] = (i * 7919) % 1000 - 500;
		RUN("extremes", 10, 100, 0, data, low, high, count, 1000);
		cr_assert_eq(*RIG_AT(int, low), -500);
		cr_assert_eq(*RIG_AT(int, high), 499);
		cr_assert_eq(*RIG_AT(uint32_t, count), 1000);
		rig_destroy(&rig);
	}
}

Test(ptx_kernels, recursion, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t out = rig_alloc(&rig, 20 * 8), a = 0, b = 1;
		RUN("fibonacci", 1, 20, 0, out);
		for (int i = 0; i < 20; i++) {
			cr_assert_eq(RIG_AT(uint64_t, out)[i], a, "fib(%d) = %llu", i,
			             (unsigned long long)RIG_AT(uint64_t, out)[i]);
			b += a;
			a = b - a;
		}
		rig_destroy(&rig);
	}
}

Test(ptx_kernels, module_variables, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t out = rig_alloc(&rig, 256), ints = rig_alloc(&rig, 4), at;
		size_t bytes;
		RUN("variables", 1, 64, 256, out, ints);
		for (int i = 0; i < 64; i++)
			cr_assert_eq(RIG_AT(float, out)[i], 1.5f + (float)((63 - i) & 3));
		cr_assert_eq(*RIG_AT(int, ints), 7);
		cr_assert(ptx_global(rig.module, "table", &at, &bytes));
		cr_assert_eq(bytes, 16);
		cr_assert(!ptx_global(rig.module, "tabl", &at, &bytes));
		rig_destroy(&rig);
	}
}

Test(ptx_kernels, divergence, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t in = rig_alloc(&rig, 404), out = rig_alloc(&rig, 400);
		for (int i = 0; i < 101; i++)
			RIG_AT(int, in)[i] = (i * 5 + i / 3) % 7;
		RUN("classify", 1, 128, 0, in, out, 100);
		for (int i = 0; i < 100; i++) {
			const int *v = RIG_AT(int, in) + i;
			const int expected[] = {11, v[1] * 2, 33 - i, i * i, 55 ^ i, *v << (i & 7), -1};
			cr_assert_eq(RIG_AT(int, out)[i], expected[*v], "%s: %d", *file, i);
		}
		rig_destroy(&rig);
	}
}

Test(ptx_kernels, local_memory, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t in = rig_alloc(&rig, 400), out = rig_alloc(&rig, 256);
		uint32_t state = 9;
		for (int i = 0; i < 100; i++)
			RIG_AT(uint32_t, in)[i] = noise(&state);
		RUN("locals", 1, 64, 0, in, out, 100);
		for (unsigned t = 0; t < 64; t++) {
			uint32_t window[16], pick = RIG_AT(uint32_t, in)[t % 100] & 15;
			for (unsigned k = 0; k < 16; k++)
				window[k] = RIG_AT(uint32_t, in)[(t * 16 + k) % 100];
			for (unsigned k = 0; k < 16; k++)
				window[(k * 7 + pick) & 15] ^= window[k] >> 1;
			cr_assert_eq(RIG_AT(uint32_t, out)[t], window[pick] + window[(pick + 5) & 15]);
		}
		rig_destroy(&rig);
	}
}

Test(ptx_kernels, lock_within_a_warp, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t lock = rig_alloc(&rig, 4), sum = rig_alloc(&rig, 4);
		RUN("spinlock", 2, 64, 0, lock, sum);
		cr_assert_eq(*RIG_AT(uint32_t, sum), 2 * 64 * 65 / 2);
		rig_destroy(&rig);
	}
}

Test(ptx_kernels, doubles, .timeout = 30)
{
	EACH_FILE(file)
	{
		load(*file);
		uint64_t in = rig_alloc(&rig, 512), out = rig_alloc(&rig, 512), singles = rig_alloc(&rig, 256);
		for (int i = 0; i < 64; i++)
			RIG_AT(double, in)[i] = (i - 30) * 1.7;
		RUN("doubles", 1, 64, 0, in, out, singles, 64);
		for (int i = 0; i < 64; i++) {
			double x = RIG_AT(double, in)[i];
			cr_assert_eq(RIG_AT(double, out)[i], x / fma(x, x, 1.0));
			cr_assert_eq(RIG_AT(float, singles)[i], sqrtf((float)fabs(x)));
		}
		rig_destroy(&rig);
	}
}

Test(ptx_kernels, trap, .timeout = 30)
{
	load(files[0]);
	uint64_t data = rig_alloc(&rig, 4);
	cr_assert_eq(RIG_RUN(&rig, "never", 1, 1, 0, data), PTX_FAULT_TRAP);
	cr_assert_eq(*RIG_AT(int, data), 1);
	cr_assert_gt(rig.fault.line, 0);
	rig_destroy(&rig);
}
