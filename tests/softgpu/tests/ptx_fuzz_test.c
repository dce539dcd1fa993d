/*
 * Texts cut short at every byte, and texts with bytes changed: each is refused or runs, within its limit and its
 * memory. Worth running under the sanitizers. Seeded, so that a failure comes back.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/tests/ptx_rig.h"

static uint64_t random_state;

static uint32_t random_below(uint32_t end)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(random_state >> 33) % end;
}

static struct rig rig;

/* Loads exactly these bytes, from an allocation that ends with them, and runs every kernel that came out. */
static void try_text(const char *text, size_t bytes)
{
	char *copy = malloc(bytes ? bytes : 1), log[128];
	struct ptx_module *module = NULL;

	cr_assert_not_null(copy);
	memcpy(copy, text, bytes);
	rig.used = 0;
	rig.range_count = 0;
	enum ptx_status status = ptx_load(copy, bytes, &rig.memory, log, sizeof(log), &module);
	free(copy);
	cr_assert(status == PTX_OK || status == PTX_INVALID || status == PTX_UNSUPPORTED ||
	          status == PTX_UNSUPPORTED_VERSION || status == PTX_OUT_OF_MEMORY);
	cr_assert_eq(status == PTX_OK, module != NULL);
	if (status != PTX_OK)
		cr_assert_eq(strncmp(log, "ptx line ", 9), 0, "%s", log);
	uint64_t data = rig_alloc(&rig, 4096);
	for (size_t n = 0; module && n < ptx_function_count(module); n++) {
		const struct ptx_function *function = ptx_function_at(module, n);
		size_t size = ptx_function_params_bytes(function);
		uint64_t params[4096];
		struct ptx_launch launch = {.grid = {2, 1, 1},
		                            .block = {40, 1, 1},
		                            .shared_bytes = 256,
		                            .params = params,
		                            .params_bytes = size,
		                            .instruction_limit = 20000,
		                            .host_threads = 1};

		for (size_t word = 0; word < sizeof(params) / sizeof(params[0]); word++)
			params[word] = data;
		struct ptx_fault fault = {0};
		status = ptx_run(function, &launch, &fault);
		cr_assert(status == PTX_OK || status == PTX_FAULT_ADDRESS || status == PTX_FAULT_ALIGN ||
		                  status == PTX_FAULT_TRAP || status == PTX_FAULT_BARRIER ||
		                  status == PTX_FAULT_LIMIT || status == PTX_FAULT_ASSERT || status == PTX_BAD_LAUNCH,
		          "%d", status);
		cr_assert_eq(status, status == PTX_OK ? PTX_OK : fault.status);
	}
	ptx_unload(&module);
	cr_assert_eq(rig.range_count, 1, "device memory was not given back");
}

static char *read_or_fail(const char *name)
{
	char *text = rig_read_file(name);

	cr_assert_not_null(text, "cannot read %s", name);
	return text;
}

static void cut(const char *name, size_t step)
{
	char *text = read_or_fail(name);
	size_t bytes = strlen(text);

	rig_create(&rig);
	for (size_t n = 0; n <= bytes; n += step)
		try_text(text, n);
	free(text);
	rig_destroy(&rig);
}

static void mutate(const char *name, unsigned rounds, uint64_t seed)
{
	static const char pieces[] = "%@!{}[]().,;:+-|<>0123456789abcdefrnuszx_ \n\"/*=~";
	char *text = read_or_fail(name);
	size_t bytes = strlen(text);
	char *copy = malloc(bytes + 64);

	cr_assert_not_null(copy);
	random_state = seed;
	rig_create(&rig);
	for (unsigned round = 0; round < rounds; round++) {
		size_t length = bytes;

		memcpy(copy, text, bytes);
		for (unsigned changes = 1 + random_below(4); changes; changes--) {
			uint32_t at = random_below((uint32_t)length), from = random_below((uint32_t)length),
				 run = 1 + random_below(24);

			switch (random_below(5)) {
			case 0:
				copy[at] = (char)random_below(256);
				break;
			case 1:
				copy[at] = pieces[random_below(sizeof(pieces) - 1)];
				break;
			case 2: /* a digit becomes another: registers, offsets, widths */
				while (at + 1 < length && (copy[at] < '0' || copy[at] > '9'))
					at++;
				copy[at] = (char)('0' + random_below(10));
				break;
			case 3: /* a piece is put over another place */
				run = at + run > length ? (uint32_t)length - at : run;
				run = from + run > length ? (uint32_t)length - from : run;
				memmove(copy + at, copy + from, run);
				break;
			default: /* a piece is taken out */
				run = at + run > length ? (uint32_t)length - at : run;
				memmove(copy + at, copy + at + run, length - at - run);
				length -= run;
			}
		}
		try_text(copy, length);
	}
	free(copy);
	free(text);
	rig_destroy(&rig);
}

/* The texts that are cut and changed are worth it only if they are right to begin with. */
Test(ptx_fuzz, unchanged, .timeout = 60)
{
	rig_create(&rig);
	cr_assert_eq(rig_load_file(&rig, "every.ptx"), PTX_OK, "%s", rig.log);
	uint64_t data = rig_alloc(&rig, 4096);
	cr_assert_eq(RIG_RUN(&rig, "all", 2, 40, 256, data), PTX_OK, "%s", rig.fault.message);
	rig_destroy(&rig);
}

Test(ptx_fuzz, cut_at_every_byte, .timeout = 240)
{
	cut("every.ptx", 1);
	cut("basic.ptx", 97);
}

Test(ptx_fuzz, mutate_every, .timeout = 240)
{
	mutate("every.ptx", 20000, 1);
}

Test(ptx_fuzz, mutate_nvcc, .timeout = 240)
{
	mutate("basic_90.ptx", 2000, 2);
}
