/*
 * The kernels of digest.ptx on a real GPU against reference.c, bit for bit; then their times. Driver API only.
 *
 *   cc -std=gnu11 -O2 -I. -I$CUDA_HOME/include tests/gpu/digest_check.c tests/unit/verify/reference.c -lcuda \
 *      -o digest_check
 *   ./digest_check [shim/verdict/digest.ptx] [correctness|times]
 *
 * Exit status: 0 all equal, 1 something differs, 77 no GPU.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/verify/reference.h"

#define SLOTS 64u
#define SNAPSHOT_MAX 65536u
#define CHUNK 4096u
#define GUARD 4096u /* bytes on both sides of data and baseline that must stay as they are */

#define DO(call)                                                                                                       \
	do {                                                                                                           \
		CUresult result_ = (call);                                                                             \
		if (result_ != CUDA_SUCCESS)                                                                           \
			die(#call, result_);                                                                           \
	} while (0)

static CUfunction check_function, setup_function;
static CUstream stream;
static CUdeviceptr tables; /* totals, then keys */
static struct verify_result *results;
static CUdeviceptr results_device;
static uint8_t keys[VERIFY_KEY_BYTES];
static uint64_t sequence;
static unsigned failures, compared;
static uint64_t random_state = 88172645463325252ull;

static void die(const char *call, CUresult result)
{
	const char *name = "?";
	cuGetErrorName(result, &name);
	fprintf(stderr, "digest_check: %s: %s\n", call, name);
	exit(1);
}

static uint64_t random_number(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void random_bytes(uint8_t *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(random_number() >> 24);
}

static char *read_text(const char *path)
{
	FILE *file = fopen(path, "rb");
	if (!file) {
		perror(path);
		exit(1);
	}
	char *text = calloc(1, 1 << 20);
	size_t bytes = fread(text, 1, (1 << 20) - 1, file);
	fclose(file);
	return bytes ? text : NULL;
}

static void open_gpu(const char *path)
{
	CUdevice device;
	CUcontext context;
	CUmodule module;
	char name[128];
	int major, minor;
	if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) {
		fprintf(stderr, "digest_check: no GPU\n");
		exit(77);
	}
	DO(cuDevicePrimaryCtxRetain(&context, device));
	DO(cuCtxSetCurrent(context));
	DO(cuDeviceGetName(name, sizeof(name), device));
	DO(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
	DO(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
	char *text = read_text(path);
	struct timespec before, after;
	clock_gettime(CLOCK_MONOTONIC, &before);
	DO(cuModuleLoadData(&module, text));
	clock_gettime(CLOCK_MONOTONIC, &after);
	free(text);
	printf("%s, sm_%d%d, module loaded in %.1f ms\n", name, major, minor,
	       (double)(after.tv_sec - before.tv_sec) * 1e3 + (double)(after.tv_nsec - before.tv_nsec) / 1e6);
	DO(cuModuleGetFunction(&check_function, module, VERIFY_ENTRY_CHECK));
	DO(cuModuleGetFunction(&setup_function, module, VERIFY_ENTRY_SETUP));
	DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	size_t totals_bytes = SLOTS * sizeof(struct verify_total);
	void *pinned;
	DO(cuMemHostAlloc(&pinned, 65536, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	memset(pinned, 0, 65536);
	DO(cuMemHostGetDevicePointer(&results_device, pinned, 0));
	DO(cuMemAlloc(&tables, totals_bytes + VERIFY_KEY_BYTES));
	random_bytes(keys, sizeof(keys));
	memcpy((uint8_t *)pinned + totals_bytes, keys, sizeof(keys));
	uint32_t vectors = (uint32_t)((totals_bytes + VERIFY_KEY_BYTES) / VERIFY_WORD);
	void *parameters[] = {&tables, &results_device, &vectors};
	DO(cuLaunchKernel(setup_function, 32, 1, 1, VERIFY_BLOCK, 1, 1, 0, stream, parameters, NULL));
	DO(cuStreamSynchronize(stream));
	memset(pinned, 0, 65536);
	results = pinned;
}

static uint32_t mode_of(uint64_t bytes)
{
	return bytes > SNAPSHOT_MAX ? VERIFY_DIGEST : 0;
}

/* The grid as verify_home.c makes it. */
static struct verify_job make_job(uint64_t start, uint64_t end, CUdeviceptr baseline, uint32_t mode, uint32_t slot)
{
	uint64_t unit = mode & VERIFY_DIGEST ? CHUNK : VERIFY_WORD;
	uint64_t share = mode & VERIFY_DIGEST ? VERIFY_BLOCK / 32u : 1024u;
	uint64_t units = (end - start / unit * unit + unit - 1) / unit;
	uint64_t blocks = (units + share - 1) / share;
	return (struct verify_job){.start = start,
	                           .end = end,
	                           .baseline = baseline,
	                           .sequence = ++sequence,
	                           .slot = slot,
	                           .mode = mode,
	                           .blocks = blocks < 1056 ? (uint32_t)blocks : 1056};
}

static void launch(struct verify_job *jobs, uint32_t count)
{
	struct verify_batch batch = {.results = results_device,
	                             .totals = tables,
	                             .keys = tables + SLOTS * sizeof(struct verify_total),
	                             .jobs = count};
	uint32_t blocks = 0;
	for (uint32_t i = 0; i < count; i++) {
		jobs[i].first_block = blocks;
		blocks += jobs[i].blocks;
		batch.job[i] = jobs[i];
	}
	void *parameters[] = {&batch};
	DO(cuLaunchKernel(check_function, blocks, 1, 1, VERIFY_BLOCK, 1, 1, 0, stream, parameters, NULL));
}

/* ---- correctness */

/* One range on the device, with its copy here. Both have guards. */
struct subject {
	uint64_t bytes, baseline_bytes;
	unsigned shift; /* of the start from a multiple of 4096 */
	uint32_t mode;
	CUdeviceptr device, baseline_device; /* allocations */
	uint8_t *host, *baseline;            /* the same bytes */
};

static uint64_t start_of(const struct subject *subject)
{
	return subject->device + GUARD + subject->shift;
}

static size_t device_bytes(const struct subject *subject)
{
	return 2 * GUARD + subject->shift + subject->bytes;
}

static size_t baseline_device_bytes(const struct subject *subject)
{
	return 2 * GUARD + subject->baseline_bytes;
}

static void subject_open(struct subject *subject, uint64_t bytes, unsigned shift, uint32_t mode)
{
	*subject = (struct subject){.bytes = bytes, .shift = shift, .mode = mode};
	DO(cuMemAlloc(&subject->device, device_bytes(subject) + CHUNK));
	uint64_t start = start_of(subject);
	subject->baseline_bytes = reference_baseline_bytes(start, start + bytes, mode);
	DO(cuMemAlloc(&subject->baseline_device, baseline_device_bytes(subject)));
	subject->host = malloc(device_bytes(subject));
	subject->baseline = malloc(baseline_device_bytes(subject));
	if (bytes <= 1 << 24) {
		random_bytes(subject->host, device_bytes(subject));
	} else {
		random_bytes(subject->host, 1 << 20);
		for (size_t i = 1 << 20; i < device_bytes(subject); i++)
			subject->host[i] = (uint8_t)(subject->host[i - (1 << 20) + 7] + i / 4093);
	}
	random_bytes(subject->baseline, baseline_device_bytes(subject));
	DO(cuMemcpyHtoD(subject->device, subject->host, device_bytes(subject)));
	DO(cuMemcpyHtoD(subject->baseline_device, subject->baseline, baseline_device_bytes(subject)));
}

static void subject_close(struct subject *subject)
{
	DO(cuMemFree(subject->device));
	DO(cuMemFree(subject->baseline_device));
	free(subject->host);
	free(subject->baseline);
}

static void subject_write(struct subject *subject, uint64_t at, uint8_t value)
{
	subject->host[GUARD + subject->shift + at] = value;
	DO(cuMemsetD8(start_of(subject) + at, value, 1));
}

static void differ(const struct subject *subject, const char *what, const char *step)
{
	failures++;
	if (failures < 20)
		printf("DIFFERS %s: %s, %llu bytes, start %% 4096 = %u, %s\n", step, what,
		       (unsigned long long)subject->bytes, (unsigned)(start_of(subject) % CHUNK),
		       subject->mode & VERIFY_DIGEST ? "digest" : "snapshot");
}

/*
 * What the device left must be what the reference leaves: result, baseline with its guards, data, and totals of zero.
 */
static void compare(struct subject *subject, const struct verify_job *job, const char *step)
{
	struct verify_result expected = {0};
	const struct verify_result *got = &results[job->slot];
	reference_job(job, subject->host + GUARD + subject->shift, subject->baseline + GUARD, keys, &expected);
	compared++;
	if (got->sequence != job->sequence)
		differ(subject, "sequence", step);
	if (got->bytes != expected.bytes)
		differ(subject, "bytes", step);
	if (expected.bytes && (got->first != expected.first || got->last != expected.last))
		differ(subject, "extent", step);
	uint8_t *now = malloc(baseline_device_bytes(subject));
	DO(cuMemcpyDtoH(now, subject->baseline_device, baseline_device_bytes(subject)));
	if (memcmp(now, subject->baseline, baseline_device_bytes(subject)))
		differ(subject, "baseline", step);
	free(now);
	struct verify_total total, zero = {0};
	DO(cuMemcpyDtoH(&total, tables + job->slot * sizeof(total), sizeof(total)));
	if (memcmp(&total, &zero, sizeof(zero)))
		differ(subject, "totals", step);
}

static void step(struct subject *subject, uint32_t mode, const char *name)
{
	struct verify_job job = make_job(start_of(subject), start_of(subject) + subject->bytes,
	                                 subject->baseline_device + GUARD, subject->mode | mode, sequence % SLOTS);
	DO(cuCtxSynchronize());
	launch(&job, 1);
	DO(cuStreamSynchronize(stream));
	compare(subject, &job, name);
}

static void all_steps(uint64_t bytes, unsigned shift, uint32_t mode)
{
	struct subject subject;
	subject_open(&subject, bytes, shift, mode);
	/* Against a random baseline: nearly everything differs. */
	step(&subject, 0, "from garbage");
	step(&subject, 0, "unchanged");
	subject_write(&subject, 0, (uint8_t)(subject.host[GUARD + shift] + 1));
	step(&subject, 0, "first byte");
	subject_write(&subject, bytes - 1, (uint8_t)(subject.host[GUARD + shift + bytes - 1] ^ 0x80));
	step(&subject, 0, "last byte");
	for (unsigned i = 0; i < 5; i++)
		subject_write(&subject, random_number() % bytes, (uint8_t)random_number());
	step(&subject, 0, "five bytes");
	DO(cuMemsetD8(start_of(&subject) - 1, 0x11, 1));
	DO(cuMemsetD8(start_of(&subject) + bytes, 0x11, 1));
	step(&subject, 0, "neighbours");
	subject_write(&subject, bytes / 2, (uint8_t)(subject.host[GUARD + shift + bytes / 2] + 1));
	step(&subject, VERIFY_REFRESH, "refresh");
	step(&subject, 0, "after refresh");
	subject_close(&subject);
}

/* Sixteen ranges in one launch, snapshots and digests mixed. */
static void batches(void)
{
	for (unsigned round = 0; round < 20; round++) {
		struct subject subject[VERIFY_JOBS];
		struct verify_job jobs[VERIFY_JOBS];
		uint32_t count = 1 + (uint32_t)(random_number() % VERIFY_JOBS);
		for (uint32_t i = 0; i < count; i++) {
			uint64_t bytes = 1 + random_number() % (random_number() % 2 ? 3000000 : 60000);
			subject_open(&subject[i], bytes, (unsigned)(random_number() % CHUNK), mode_of(bytes));
		}
		for (unsigned pass = 0; pass < 3; pass++) {
			for (uint32_t i = 0; i < count; i++) {
				if (pass && random_number() % 2)
					subject_write(&subject[i], random_number() % subject[i].bytes,
					              (uint8_t)random_number());
				jobs[i] = make_job(start_of(&subject[i]), start_of(&subject[i]) + subject[i].bytes,
				                   subject[i].baseline_device + GUARD,
				                   subject[i].mode | (pass ? 0 : VERIFY_REFRESH), i);
			}
			DO(cuCtxSynchronize());
			launch(jobs, count);
			DO(cuStreamSynchronize(stream));
			for (uint32_t i = 0; i < count; i++)
				compare(&subject[i], &jobs[i], "batch");
		}
		for (uint32_t i = 0; i < count; i++)
			subject_close(&subject[i]);
	}
}

static void correctness(void)
{
	static const unsigned shifts[] = {0, 1, 3, 4, 7, 8, 12, 15, 16, 17, 255, 2048, 4080, 4081, 4095};
	static const uint64_t sizes[] = {1,   2,    3,    15,   16,   17,   31,    32,    33,    100,  255,
	                                 256, 4095, 4096, 4097, 8191, 8192, 16384, 16385, 65535, 65536};
	static const uint64_t large[] = {
		65537, 69632, 100000, 1 << 20, (1 << 20) + 1, (8 << 20) - 5, (64 << 20) + 12345};
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (unsigned j = 0; j < sizeof(shifts) / sizeof(*shifts); j++) {
			all_steps(sizes[i], shifts[j], 0);
			all_steps(sizes[i], shifts[j], VERIFY_DIGEST);
		}
	for (unsigned i = 0; i < sizeof(large) / sizeof(*large); i++)
		for (unsigned j = 0; j<sizeof(shifts) / sizeof(*shifts); j += large[i]> 1 << 20 ? 5 : 1)
			all_steps(large[i], shifts[j], VERIFY_DIGEST);
	all_steps(1ull << 30, 0, VERIFY_DIGEST);
	all_steps((1ull << 30) - 77, 33, VERIFY_DIGEST);
	batches();
	printf("%u launches compared with the reference, %u differences\n", compared, failures);
}

/* ---- times */

static double microseconds(struct verify_job job, unsigned rounds)
{
	CUevent before, after;
	float ms;
	DO(cuEventCreate(&before, 0));
	DO(cuEventCreate(&after, 0));
	launch(&job, 1);
	DO(cuEventRecord(before, stream));
	for (unsigned i = 0; i < rounds; i++)
		launch(&job, 1);
	DO(cuEventRecord(after, stream));
	DO(cuStreamSynchronize(stream));
	DO(cuEventElapsedTime(&ms, before, after));
	DO(cuEventDestroy(before));
	DO(cuEventDestroy(after));
	return (double)ms * 1e3 / rounds;
}

static double host_microseconds(struct verify_job job, unsigned rounds)
{
	struct timespec before, after;
	clock_gettime(CLOCK_MONOTONIC, &before);
	for (unsigned i = 0; i < rounds; i++)
		launch(&job, 1);
	clock_gettime(CLOCK_MONOTONIC, &after);
	DO(cuStreamSynchronize(stream));
	return ((double)(after.tv_sec - before.tv_sec) * 1e6 + (double)(after.tv_nsec - before.tv_nsec) / 1e3) / rounds;
}

static void times(void)
{
	CUdeviceptr data, baseline;
	uint64_t most = 4ull << 30;
	size_t free_bytes, all_bytes;
	DO(cuMemGetInfo(&free_bytes, &all_bytes));
	while (most + (most >> 7) > free_bytes)
		most /= 2;
	DO(cuMemAlloc(&data, most));
	DO(cuMemsetD8(data, 0x5a, most));
	DO(cuMemAlloc(&baseline, (most >> 8) + (1 << 20)));
	printf("%12s %10s %12s %12s %14s %12s\n", "bytes", "kind", "check us", "GB/s", "refresh us", "host us");
	for (uint64_t bytes = 1 << 10; bytes <= most; bytes *= 4) {
		uint32_t mode = mode_of(bytes);
		unsigned rounds = bytes < 1 << 24 ? 500 : 20;
		struct verify_job job = make_job(data, data + bytes, baseline, mode | VERIFY_REFRESH, 0);
		double refresh = microseconds(job, rounds);
		job.mode = mode;
		double check = microseconds(job, rounds);
		double host = host_microseconds(job, 100);
		printf("%12llu %10s %12.2f %12.1f %14.2f %12.2f\n", (unsigned long long)bytes,
		       mode ? "digest" : "snapshot", check, (double)bytes / check / 1e3, refresh, host);
	}
	DO(cuMemFree(data));
	DO(cuMemFree(baseline));
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "shim/verdict/digest.ptx";
	const char *part = argc > 2 ? argv[2] : "";
	open_gpu(path);
	if (strcmp(part, "times") != 0)
		correctness();
	if (strcmp(part, "correctness") != 0)
		times();
	return failures != 0;
}
