/*
 * The very text that goes into the library, run by the software GPU's interpreter, against reference.c: result, baseline, totals, and that no
 * byte outside the range, its baseline, its totals, its slot and the keys is touched, and none of the range stored to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/verdict/verify_internal.h"
#include "tests/softgpu/ptx.h"
#include "tests/unit/verify/reference.h"

#define AREA (128u << 10)
#define ROUNDS 60
#define PASSES 4

static const struct verify_batch *running; /* NULL: anything may be touched */
static _Atomic unsigned outside;
static uint64_t random_state = 88172645463325252ull;

struct subject {
	uint8_t *data, *baseline, *expected;
	uint64_t baseline_bytes;
};

static uint64_t random_number(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

static bool lies_in(uint64_t address, size_t bytes, uint64_t start, uint64_t size)
{
	return address >= start && address + bytes <= start + size;
}

static bool may_touch(void *data, uint64_t address, size_t bytes, bool write)
{
	(void)data;
	if (!running)
		return true;
	for (unsigned i = 0; i < running->jobs; i++) {
		const struct verify_job *job = &running->job[i];
		uint64_t size = job->end - job->start;
		bool digest = job->mode & VERIFY_DIGEST;
		uint64_t copy = digest ? job->baseline : job->baseline + job->start % VERIFY_WORD;
		uint64_t copy_size = digest ? reference_baseline_bytes(job->start, job->end, job->mode) : size;
		if ((!write && lies_in(address, bytes, job->start, size)) || lies_in(address, bytes, copy, copy_size) ||
		    lies_in(address, bytes, running->totals + job->slot * sizeof(struct verify_total),
		            sizeof(struct verify_total)) ||
		    (write && lies_in(address, bytes, running->results + job->slot * sizeof(struct verify_result),
		                      sizeof(struct verify_result))))
			return true;
	}
	if (!write && lies_in(address, bytes, running->keys, VERIFY_KEY_BYTES))
		return true;
	outside++;
	return false;
}

static void fail(const char *what, const char *detail)
{
	fprintf(stderr, "interpreted: %s: %s\n", what, detail);
	exit(1);
}

static void run(const struct ptx_function *function, uint32_t blocks, const void *parameters, size_t bytes)
{
	struct ptx_launch launch = {.grid = {blocks, 1, 1},
	                            .block = {VERIFY_BLOCK, 1, 1},
	                            .params = parameters,
	                            .params_bytes = bytes,
	                            .host_threads = 2};
	struct ptx_fault fault = {0};
	if (ptx_run(function, &launch, &fault) != PTX_OK)
		fail("fault", fault.message);
}

static void fill(uint8_t *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)random_number(256);
}

static void make(struct subject *subject, struct verify_job *job, uint32_t slot)
{
	bool digest = random_number(2);
	uint64_t bytes = 1 + random_number(digest ? 70000 : 20000);
	if (random_number(4) == 0)
		bytes = 1 + bytes % 40;
	subject->data = aligned_alloc(4096, AREA);
	fill(subject->data, AREA);
	uint64_t start = (uint64_t)(uintptr_t)subject->data + (random_number(4) ? random_number(4096) : 0);
	uint64_t unit = digest ? VERIFY_CHUNK : VERIFY_WORD, share = digest ? VERIFY_BLOCK / 32u : 1024u;
	uint64_t units = (start + bytes - start / unit * unit + unit - 1) / unit;
	*job = (struct verify_job){.start = start,
	                           .end = start + bytes,
	                           .slot = slot,
	                           .mode = digest ? VERIFY_DIGEST : 0,
	                           .blocks = (uint32_t)((units + share - 1) / share)};
	subject->baseline_bytes = reference_baseline_bytes(start, start + bytes, job->mode);
	subject->baseline = aligned_alloc(16, subject->baseline_bytes);
	subject->expected = malloc(subject->baseline_bytes);
	fill(subject->baseline, subject->baseline_bytes);
	memcpy(subject->expected, subject->baseline, subject->baseline_bytes);
	job->baseline = (uint64_t)(uintptr_t)subject->baseline;
}

static void compare(const struct subject *subject, const struct verify_job *job, const uint8_t *keys,
                    const struct verify_result *got, const struct verify_total *total)
{
	struct verify_result wanted = {0};
	static const struct verify_total zero;
	reference_job(job, (const uint8_t *)(uintptr_t)job->start, subject->expected, keys, &wanted);
	char where[96];
	snprintf(where, sizeof(where), "start %% 4096 = %u, %u bytes, mode %u", (unsigned)(job->start % 4096),
	         (unsigned)(job->end - job->start), job->mode);
	if (got->sequence != job->sequence)
		fail("no result", where);
	if (got->bytes != wanted.bytes || (wanted.bytes && (got->first != wanted.first || got->last != wanted.last)))
		fail("another result", where);
	if (memcmp(subject->baseline, subject->expected, subject->baseline_bytes) != 0)
		fail("another baseline", where);
	if (memcmp(total, &zero, sizeof(zero)) != 0)
		fail("totals left", where);
}

int main(void)
{
	struct ptx_memory memory = {.check = may_touch};
	struct ptx_module *module;
	char log[512];
	if (ptx_load(verify_ptx, strlen(verify_ptx), &memory, log, sizeof(log), &module) != PTX_OK)
		fail("load", log);
	struct ptx_function *check = ptx_find(module, VERIFY_ENTRY_CHECK), *setup = ptx_find(module, VERIFY_ENTRY_SETUP);
	if (!check || !setup || ptx_function_params_bytes(check) != sizeof(struct verify_batch))
		fail("entries", "missing, or with other parameters");

	/* Keys and totals arrive as the library brings them: by the set-up kernel. */
	static _Alignas(16) struct {
		struct verify_total totals[VERIFY_JOBS];
		uint8_t keys[VERIFY_KEY_BYTES];
	} from, to;
	static struct verify_result results[VERIFY_JOBS];
	fill(from.keys, sizeof(from.keys));
	memset(&to, 0xee, sizeof(to));
	struct {
		uint64_t to, from;
		uint32_t vectors;
	} copy = {(uint64_t)(uintptr_t)&to, (uint64_t)(uintptr_t)&from, sizeof(from) / VERIFY_WORD};
	run(setup, 3, &copy, ptx_function_params_bytes(setup));
	if (memcmp(&from, &to, sizeof(to)) != 0)
		fail("set-up", "copied something else");

	uint64_t sequence = 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct subject subject[VERIFY_JOBS];
		struct verify_batch batch = {.results = (uint64_t)(uintptr_t)results,
		                             .totals = (uint64_t)(uintptr_t)to.totals,
		                             .keys = (uint64_t)(uintptr_t)to.keys,
		                             .jobs = 1 + (uint32_t)random_number(round % 8 ? 3 : VERIFY_JOBS)};
		uint32_t blocks = 0;
		for (uint32_t i = 0; i < batch.jobs; i++) {
			make(&subject[i], &batch.job[i], VERIFY_JOBS - 1 - i);
			batch.job[i].first_block = blocks;
			blocks += batch.job[i].blocks;
		}
		for (unsigned pass = 0; pass < PASSES; pass++) {
			for (uint32_t i = 0; i < batch.jobs; i++) {
				struct verify_job *job = &batch.job[i];
				job->sequence = ++sequence;
				job->mode = (job->mode & VERIFY_DIGEST) | (pass == 2 ? VERIFY_REFRESH : 0);
				for (uint64_t writes = pass ? random_number(4) : 0; writes; writes--)
					*(uint8_t *)(uintptr_t)(job->start + random_number(job->end - job->start)) ^= 0x10;
			}
			running = &batch;
			run(check, blocks, &batch, sizeof(batch));
			running = NULL;
			for (uint32_t i = 0; i < batch.jobs; i++)
				compare(&subject[i], &batch.job[i], from.keys, &results[batch.job[i].slot],
				        &to.totals[batch.job[i].slot]);
		}
		for (uint32_t i = 0; i < batch.jobs; i++) {
			free(subject[i].data);
			free(subject[i].baseline);
			free(subject[i].expected);
		}
	}
	ptx_unload(&module);
	if (outside)
		fail("memory", "something outside was touched");
	printf("%llu jobs\n", (unsigned long long)sequence);
	return 0;
}
