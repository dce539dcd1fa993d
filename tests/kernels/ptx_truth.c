/*
 * Ground truth: random kernels run on the software GPU with a log of every byte that they wrote, one buffer per pointer. Each byte must lie in a
 * buffer whose slot the analysis calls a store, or the kernel must not be clear. With cubins (what ptxas made of `ptx_differ print FIRST COUNT`) the
 * analysis of machine code is held against the same log.
 *
 * usage: ptx_truth [FIRST_SEED COUNT [FILE.cubin ...]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/paths.h"
#include "tests/kernels/file.h"
#include "tests/kernels/ptx_generate.h"
#include "tests/kernels/ptx_text.h"
#include "tests/kernels/write_log.h"

#define ANALYSERS 16
#define MISSES_SHOWN 20
#define GAP 4096

struct totals {
	unsigned kernels, clear, faults, misses;
	unsigned slots, stored,
		extra; /* pointer slots of clear kernels; of them written; called a store but not written */
	unsigned reasons[PATHS_LIMIT + 1];
};

/* Twice, with other numbers, so that other branches are taken. */
static void run(struct write_log *log, const struct generated *kernel, uint64_t seed, struct totals *totals)
{
	struct ptx_memory memory = write_log_memory(log);
	struct ptx_module *module;
	struct ptx_function *function;
	struct ptx_fault fault = {.status = PTX_OK};
	uint64_t params[GENERATED_SLOTS + 2] = {0};
	char message[512];

	if (ptx_load(kernel->text, kernel->bytes, &memory, message, sizeof(message), &module) != PTX_OK) {
		fprintf(stderr, "seed %" PRIu64 " does not load: %s\n%s\n", seed, message, kernel->text);
		exit(1);
	}
	function = ptx_find(module, "k");
	for (uint64_t n = 0; n < 2; n++) {
		struct ptx_launch launch = {.grid = {1, 1, 1},
		                            .block = {32, 1, 1},
		                            .params = params,
		                            .instruction_limit = 1 << 20,
		                            .host_threads = 1};

		launch.params_bytes = ptx_function_params_bytes(function);
		memset(log->bytes, 0, write_log_bytes(log));
		for (unsigned i = 0; i < kernel->pointers; i++)
			params[i] = write_log_address(log, i);
		params[kernel->pointers] = (seed + n) % 4;
		params[kernel->pointers + 1] = (seed / 4 + n) % 4;
		if (ptx_run(function, &launch, &fault) != PTX_OK) {
			totals->faults++;
			if (totals->faults <= 3)
				fprintf(stderr, "seed %" PRIu64 ": line %d: %s\n", seed, fault.line, fault.message);
		}
	}
	ptx_unload(&module);
}

/* An analysis that is held against the log: of PTX, or of machine code in a cubin. */
struct analyser {
	const char *name;
	void *image; /* NULL: PTX */
	size_t bytes;
	struct totals totals;
};

static int ask(const struct analyser *analyser, const struct generated *kernel, uint64_t seed, struct kernel_paths *paths)
{
	char name[32];

	if (!analyser->image)
		return paths_of_ptx(kernel->text, kernel->bytes, "k", paths);
	snprintf(name, sizeof(name), "k%" PRIu64, seed);
	return paths_of_cubin(analyser->image, analyser->bytes, name, paths);
}

static void judge(const struct write_log *log, const struct generated *kernel, uint64_t seed, struct analyser *analyser)
{
	struct totals *totals = &analyser->totals;
	struct kernel_paths paths;
	bool missed = false;
	char found[1024];

	if (ask(analyser, kernel, seed, &paths) != 0 || paths.slot_count != kernel->slots) {
		fprintf(stderr, "%s: seed %" PRIu64 ": no answer\n", analyser->name, seed);
		totals->misses++;
		return;
	}
	totals->kernels++;
	totals->reasons[paths.reason]++;
	if (paths.reason == PATHS_CLEAR) {
		totals->clear++;
		for (unsigned i = 0; i < kernel->pointers; i++) {
			bool store = paths.slots[i].use == SLOT_STORE;

			totals->slots++;
			totals->stored += log->wrote[i];
			totals->extra += store && !log->wrote[i];
			missed |= log->wrote[i] && !store;
		}
	} else if (paths.reason >= PATHS_CALL) {
		missed = true; /* all of these kernels can be read */
	}
	if (missed) {
		ptx_paths_spell(&paths, found, sizeof(found));
		fprintf(stderr, "%s: seed %" PRIu64 " is missed: %s (at %u)\n%s\n", analyser->name, seed, found,
		        paths.reason_offset, totals->misses ? "" : kernel->text);
		totals->misses++;
	}
	kernel_paths_free(&paths);
}

/* False where a store was missed, or where so little was written, or clear, that it would show nothing. */
static bool tell(const struct analyser *analyser, uint64_t count)
{
	const struct totals *totals = &analyser->totals;

	printf("%s: %u kernels, %u clear, %u launches ended by a fault, %u misses\n", analyser->name, totals->kernels,
	       totals->clear, totals->faults, totals->misses);
	printf("clear kernels: %u pointer slots, %u written, %u called a store but not written in two launches (%.1f %%)\n",
	       totals->slots, totals->stored, totals->extra, totals->slots ? 100.0 * totals->extra / totals->slots : 0.0);
	for (int i = 1; i <= PATHS_LIMIT; i++)
		if (totals->reasons[i])
			printf("not clear: %u %s\n", totals->reasons[i], ptx_reason_word((enum paths_reason)i));
	return !totals->misses && totals->kernels == count && totals->clear >= count / 4 &&
	       totals->stored >= totals->slots / 8 && totals->faults <= count / 10;
}

int main(int argc, char **argv)
{
	uint64_t first = argc >= 3 ? strtoull(argv[1], NULL, 10) : 1,
		 count = argc >= 3 ? strtoull(argv[2], NULL, 10) : 400;
	struct write_log log = {.buffers = GENERATED_SLOTS, .each = GENERATED_BUFFER, .gap = GAP};
	struct analyser analysers[ANALYSERS] = {{.name = "ptx"}};
	unsigned analyser_count = 1, misses = 0;
	bool good = true;

	if (!write_log_open(&log) || argc - 3 > ANALYSERS - 1)
		return 1;
	for (int i = 3; i < argc; i++) {
		struct analyser *analyser = &analysers[analyser_count++];

		analyser->name = argv[i];
		analyser->image = read_whole(argv[i], &analyser->bytes);
		if (!analyser->image) {
			fprintf(stderr, "%s cannot be read\n", argv[i]);
			return 1;
		}
	}
	for (uint64_t seed = first; seed < first + count && misses < MISSES_SHOWN; seed++) {
		struct generated kernel = ptx_generate(seed);

		write_log_forget(&log);
		run(&log, &kernel, seed, &analysers[0].totals);
		misses = 0;
		for (unsigned i = 0; i < analyser_count; i++) {
			judge(&log, &kernel, seed, &analysers[i]);
			misses += analysers[i].totals.misses;
		}
		free(kernel.text);
	}
	free(log.bytes);
	for (unsigned i = 0; i < analyser_count; i++) {
		good &= tell(&analysers[i], count);
		free(analysers[i].image);
	}
	return !good;
}
