/*
 * Ground truth for answers that hold for some values of the parameters: random kernels run on the software GPU with a log of every byte that they wrote, with the
 * values that an answer was given for and with others that are alike where it says that it depends on them. What was written must be a store of the answer's, or
 * the answer must not be clear. With cubins (what ptxas makes of `values_truth print FIRST COUNT`) the analysis of machine code is held against the same log.
 *
 * usage: values_truth [FIRST_SEED COUNT [FILE.cubin ...]] | print FIRST_SEED COUNT
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/paths.h"
#include "tests/kernels/file.h"
#include "tests/kernels/ptx_text.h"
#include "tests/kernels/random_text.h"
#include "tests/kernels/values_generate.h"
#include "tests/kernels/write_log.h"

#define BUFFERS (VALUES_POINTERS + 3) /* then the table, and what it points to */
#define BUFFER 4096
#define ANALYSERS 8
#define BLOCKS 4 /* of values for each kernel */
#define OTHERS 4 /* that are alike, for each answer */
#define PARAM_BYTES sizeof(struct values_block)

struct region {
	struct write_log log;
	uint64_t random;
};

struct analyser {
	const char *name;
	void *image; /* NULL: PTX */
	size_t bytes;
	unsigned kernels, asked, better, cleared, runs, misses, exact, small;
};

static unsigned pick(struct region *region, unsigned below)
{
	return random_below(&region->random, below);
}

static struct values_block any_block(struct region *region)
{
	static const uint64_t wide[] = {0, 1, 5, (uint64_t)1 << 32, ((uint64_t)1 << 32) + 5, UINT64_MAX};
	struct values_block block = {
		.a = pick(region, 6), .b = pick(region, 4), .c = pick(region, 9), .f = (uint8_t)pick(region, 3)};
	for (unsigned i = 0; i < VALUES_POINTERS; i++)
		block.pointers[i] = write_log_address(&region->log, i);
	if (pick(region, 2))
		block.pointers[VALUES_POINTERS - 1] = 0;
	block.table = write_log_address(&region->log, VALUES_POINTERS);
	block.d = wide[pick(region, sizeof(wide) / sizeof(wide[0]))];
	memset(block.gap, (int)pick(region, 256), sizeof(block.gap));
	if (pick(region, 8) == 0)
		block.a = UINT32_MAX - pick(region, 3);
	return block;
}

static void run(struct region *region, struct ptx_function *function, const struct values_block *block)
{
	struct ptx_fault fault = {.status = PTX_OK};
	struct ptx_launch launch = {.grid = {1, 1, 1},
	                            .block = {4, 1, 1},
	                            .params = block,
	                            .params_bytes = ptx_function_params_bytes(function),
	                            .instruction_limit = 1 << 14,
	                            .host_threads = 1};
	uint64_t *table = (uint64_t *)(uintptr_t)write_log_address(&region->log, VALUES_POINTERS);
	write_log_forget(&region->log);
	table[0] = write_log_address(&region->log, VALUES_POINTERS + 1);
	table[1] = write_log_address(&region->log, VALUES_POINTERS + 2);
	/* A loop that a parameter makes long, or a null pointer, ends some: what was written until then counts. */
	(void)ptx_run(function, &launch, &fault);
}

static void miss(struct analyser *analyser, uint64_t seed, const struct values_block *block, const char *what,
                 const char *text)
{
	if (analyser->misses++ < 5)
		fprintf(stderr, "%s: seed %" PRIu64 ", a %u b %u c %u f %u d %" PRIx64 " p3 %d: %s is missed\n%s\n",
		        analyser->name, seed, block->a, block->b, block->c, block->f, block->d, block->pointers[3] != 0,
		        what, analyser->misses == 1 ? text : "");
}

static void judge(struct region *region, struct analyser *analyser, uint64_t seed, const struct kernel_paths *paths,
                  const struct values_block *block, const char *text)
{
	analyser->runs++;
	if (paths->reason != PATHS_CLEAR)
		return;
	for (unsigned i = 0; i < VALUES_POINTERS; i++)
		if (region->log.wrote[i] && paths->slots[i].use != SLOT_STORE)
			miss(analyser, seed, block, "a store through a parameter", text);
	/* The table itself is not written by any of these kernels, what it points to may be. */
	if (region->log.wrote[VALUES_POINTERS + 1] || region->log.wrote[VALUES_POINTERS + 2])
		miss(analyser, seed, block, "a store through the table", text);
}

/* Other values, but alike where the answer depends on them. */
static struct values_block alike(struct region *region, const struct values_block *block, const uint8_t *used)
{
	struct values_block other = any_block(region);
	uint8_t *bytes = (uint8_t *)&other;
	for (size_t i = 0; i < PARAM_BYTES; i++)
		if (used[i] == VALUE_EXACT)
			bytes[i] = ((const uint8_t *)block)[i];
	for (size_t i = 0; i < PARAM_BYTES; i += 4) {
		uint32_t word = pick(region, 3) ? pick(region, 8) : pick(region, PATHS_SMALL);
		if (used[i] == VALUE_SMALL)
			memcpy(bytes + i, &word, sizeof(word));
	}
	return other;
}

static void ask(struct region *region, struct analyser *analyser, uint64_t seed, const char *text,
                struct ptx_function *function, const struct values_block *block)
{
	uint8_t known[PARAM_BYTES], used[PARAM_BYTES] = {0};
	struct paths_values values = {(const uint8_t *)block, known, used, PARAM_BYTES, NULL};
	struct kernel_paths paths;
	bool better;
	char name[32];
	int err;
	memset(known, VALUE_EXACT, sizeof(known));
	memset(known + offsetof(struct values_block, gap), VALUE_UNKNOWN, sizeof(block->gap));
	snprintf(name, sizeof(name), "k%" PRIu64, seed);
	err = analyser->image ? paths_for_cubin(analyser->image, analyser->bytes, name, &values, &paths, &better)
	                      : paths_for_ptx(text, strlen(text), "k", &values, &paths, &better);
	analyser->asked++;
	if (err)
		miss(analyser, seed, block, "the answer", text);
	if (err || !better)
		return;
	analyser->better++;
	analyser->cleared += paths.reason == PATHS_CLEAR;
	for (size_t i = 0; i < PARAM_BYTES; i++) {
		analyser->exact += used[i] == VALUE_EXACT;
		analyser->small += used[i] == VALUE_SMALL;
	}
	run(region, function, block);
	judge(region, analyser, seed, &paths, block, text);
	for (unsigned i = 0; i < OTHERS; i++) {
		struct values_block other = alike(region, block, used);
		run(region, function, &other);
		judge(region, analyser, seed, &paths, &other, text);
	}
	kernel_paths_free(&paths);
}

static void one(struct region *region, struct analyser *analysers, unsigned count, uint64_t seed)
{
	struct ptx_memory memory = write_log_memory(&region->log);
	struct values_kernel kernel = values_generate(seed);
	struct ptx_module *module;
	char log[512], *text;
	if (asprintf(&text, "%s%s", values_head, kernel.text) < 0 ||
	    ptx_load(text, strlen(text), &memory, log, sizeof(log), &module) != PTX_OK) {
		fprintf(stderr, "seed %" PRIu64 " does not load: %s\n%s\n", seed, log, kernel.text);
		exit(1);
	}
	region->random = seed * 0x9e3779b97f4a7c15ull + 7;
	for (unsigned i = 0; i < BLOCKS; i++) {
		struct values_block block = any_block(region);
		for (unsigned k = 0; k < count; k++)
			ask(region, &analysers[k], seed, text, ptx_find(module, "k"), &block);
	}
	for (unsigned k = 0; k < count; k++)
		analysers[k].kernels++;
	ptx_unload(&module);
	free(text);
	free(kernel.text);
}

static int print(uint64_t first, uint64_t count)
{
	static const char entry[] = ".visible .entry k(";
	fputs(values_head, stdout);
	for (uint64_t seed = first; seed < first + count; seed++) {
		struct values_kernel kernel = values_generate(seed);
		printf(".visible .entry k%" PRIu64 "(%s", seed, kernel.text + sizeof(entry) - 1);
		free(kernel.text);
	}
	return 0;
}

/* False where something was missed, or so little was decided that it would show nothing. */
static bool tell(const struct analyser *analyser)
{
	printf("%s: %u kernels, %u asked for values, %u better for them, %u of these clear; %u runs, %u misses; on %.1f bytes exactly and %.1f in size\n",
	       analyser->name, analyser->kernels, analyser->asked, analyser->better, analyser->cleared, analyser->runs,
	       analyser->misses, (double)analyser->exact / (analyser->better + 1),
	       (double)analyser->small / (analyser->better + 1));
	return !analyser->misses && analyser->cleared >= analyser->asked / (analyser->image ? 32 : 8);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "print"))
		return print(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
	uint64_t first = argc >= 3 ? strtoull(argv[1], NULL, 10) : 1,
		 count = argc >= 3 ? strtoull(argv[2], NULL, 10) : 400;
	struct region region = {.log = {.buffers = BUFFERS, .each = BUFFER}};
	struct analyser analysers[ANALYSERS] = {{.name = "ptx"}};
	unsigned analyser_count = 1;
	bool good = true;
	if (!write_log_open(&region.log) || argc - 3 > ANALYSERS - 1)
		return 1;
	memset(region.log.bytes, 0, write_log_bytes(&region.log));
	for (int i = 3; i < argc; i++) {
		struct analyser *analyser = &analysers[analyser_count++];
		analyser->name = argv[i];
		analyser->image = read_whole(argv[i], &analyser->bytes);
		if (!analyser->image) {
			fprintf(stderr, "%s cannot be read\n", argv[i]);
			return 1;
		}
	}
	for (uint64_t seed = first; seed < first + count; seed++)
		one(&region, analysers, analyser_count, seed);
	free(region.log.bytes);
	for (unsigned i = 0; i < analyser_count; i++) {
		good &= tell(&analysers[i]);
		free(analysers[i].image);
	}
	return !good;
}
