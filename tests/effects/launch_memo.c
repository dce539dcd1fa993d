/*
 * What was remembered of a launch must not outlive what it hangs on: launch_memo SCENE. Each scene makes a launch often enough to be answered from memory
 * (shim/effects/launch_memo.h), changes one thing, and looks whether the next one is judged anew. Most of them by the counts of verdicts, which each launch moves.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "shim/cuconst.h"

#define OFTEN 20
#define POOL ((size_t)1 << 16)
#define BYTES ((size_t)256)
#define CHECK(call) expect(!(int)(call), #call, __LINE__)
#define EXPECT(condition) expect(condition, #condition, __LINE__)

static const char text[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	/* Stores through its first pointer. */
	".visible .entry two(.param .u64 a, .param .u64 b)\n{\n.reg .b64 %rd<3>;\n"
	"ld.param.u64 %rd1, [a];\nst.global.u32 [%rd1], 7;\nret;\n}\n"
	/* Stores through an address that it loads; where the number is not 0, through its second pointer. */
	".visible .entry choice(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n.reg .b64 %rd<4>;\n.reg .u32 %r<2>;\n.reg .pred %p<2>;\n"
	"ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nld.param.u32 %r1, [n];\n"
	"setp.eq.u32 %p1, %r1, 0;\n@%p1 bra TABLE;\nst.global.u32 [%rd2], 7;\nret;\n"
	"TABLE:\nld.global.u64 %rd3, [%rd1];\nst.global.u32 [%rd3], 7;\nret;\n}\n"
	/* Stores through an address that it loads. */
	".visible .entry table(.param .u64 a)\n{\n.reg .b64 %rd<3>;\n"
	"ld.param.u64 %rd1, [a];\nld.global.u64 %rd2, [%rd1];\nst.global.u32 [%rd2], 7;\nret;\n}\n"
	/* Loads through its second word and stores through its 60th: no address is in the others. */
	".visible .entry wide(.param .align 8 .b8 p[640], .param .u32 n)\n{\n.reg .b64 %rd<3>;\n.reg .u32 %r<2>;\n"
	"ld.param.u64 %rd1, [p+8];\nld.param.u64 %rd2, [p+472];\n"
	"ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd2], %r1;\nret;\n}\n";

static CUdeviceptr pool, apart, beyond; /* by rising address */
static CUmodule module;
static CUfunction two, choice, table, wide;
static CUstream stream;

static void expect(bool holds, const char *what, int line)
{
	if (holds)
		return;
	fprintf(stderr, "launch_memo.c:%d: not so: %s\n", line, what);
	exit(1);
}

static struct cuconst_stats stats(void)
{
	struct cuconst_stats now = {.size = sizeof now};
	CHECK(cuCtxSynchronize());
	CHECK(cuconst_stats(&now));
	return now;
}

static cuconst_handle protect(CUdeviceptr at)
{
	cuconst_handle handle;
	CHECK(cuconst_protect(at, BYTES, "range", 0, NULL, &handle));
	return handle;
}

static void load(void)
{
	CHECK(cuModuleLoadData(&module, text));
	CHECK(cuModuleGetFunction(&two, module, "two"));
	CHECK(cuModuleGetFunction(&choice, module, "choice"));
	CHECK(cuModuleGetFunction(&table, module, "table"));
	CHECK(cuModuleGetFunction(&wide, module, "wide"));
}

static int by_address(const void *left, const void *right)
{
	CUdeviceptr a = *(const CUdeviceptr *)left, b = *(const CUdeviceptr *)right;
	return (a > b) - (a < b);
}

static void start(void)
{
	CUdeviceptr all[3];
	CUdevice device;
	CUcontext context;
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 3; i++) {
		CHECK(cuMemAlloc(&all[i], POOL));
		CHECK(cuMemsetD8(all[i], 0, POOL));
	}
	qsort(all, 3, sizeof all[0], by_address);
	pool = all[0];
	apart = all[1];
	beyond = all[2];
	load();
}

static void launch(CUfunction function, void **params)
{
	CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static void launch_two(CUdeviceptr a, CUdeviceptr b)
{
	void *params[] = {&a, &b};
	launch(two, params);
}

static void launch_choice(CUdeviceptr a, CUdeviceptr b, unsigned n)
{
	void *params[] = {&a, &b, &n};
	launch(choice, params);
}

static void launch_table(CUdeviceptr a)
{
	void *params[] = {&a};
	launch(table, params);
}

/* Which verdict did these launches get? Exactly one, or none; those of which it is known that they are clean are not judged. */
enum verdict { NOTHING, CLEAN, NEAR, UNKNOWN, STORES };
static enum verdict verdict(const struct cuconst_stats *before, uint64_t launches)
{
	struct cuconst_stats now = stats();
	const uint64_t more[] = {[CLEAN] = now.clean - before->clean,
	                         [NEAR] = now.near - before->near,
	                         [UNKNOWN] = now.unknown - before->unknown,
	                         [STORES] = now.stores - before->stores};
	EXPECT(now.launches - before->launches == launches);
	for (enum verdict i = CLEAN; i <= STORES; i++)
		if (more[i]) {
			EXPECT(more[i] == launches || (i == CLEAN && more[i] == 1));
			return i;
		}
	return NOTHING;
}

static enum verdict of_two(CUdeviceptr a, CUdeviceptr b, unsigned times)
{
	struct cuconst_stats before = stats();
	for (unsigned i = 0; i < times; i++)
		launch_two(a, b);
	return verdict(&before, times);
}

static enum verdict of_choice(CUdeviceptr a, CUdeviceptr b, unsigned n, unsigned times)
{
	struct cuconst_stats before = stats();
	for (unsigned i = 0; i < times; i++)
		launch_choice(a, b, n);
	return verdict(&before, times);
}

static enum verdict of_table(CUdeviceptr a, unsigned times)
{
	struct cuconst_stats before = stats();
	for (unsigned i = 0; i < times; i++)
		launch_table(a);
	return verdict(&before, times);
}

/* Its 80 words are all `elsewhere` but the nth. */
static enum verdict of_wide(CUdeviceptr elsewhere, size_t nth, CUdeviceptr at, unsigned times)
{
	struct cuconst_stats before = stats();
	uint64_t block[80];
	unsigned n = 7;
	void *params[] = {block, &n};
	for (size_t i = 0; i < 80; i++)
		block[i] = elsewhere;
	block[nth] = at;
	for (unsigned i = 0; i < times; i++)
		launch(wide, params);
	return verdict(&before, times);
}

/* What was beside a range is in one from now on. */
static void scene_protected(void)
{
	protect(pool);
	EXPECT(of_two(pool + 1024, 0, OFTEN) == NEAR);
	CHECK(cuMemsetD8(pool + 1024, 0, BYTES));
	protect(pool + 1024);
	struct cuconst_stats before = stats();
	EXPECT(of_two(pool + 1024, 0, 1) == STORES);
	EXPECT(stats().violations == before.violations + 1);
}

/* The first range of an allocation between others that have some. */
static void scene_allocation(void)
{
	protect(pool);
	protect(beyond);
	EXPECT(of_two(apart + 1024, 0, OFTEN) == NOTHING);
	cuconst_handle handle = protect(apart);
	EXPECT(of_two(apart + 1024, 0, OFTEN) == NEAR);
	CHECK(cuconst_unprotect(handle));
	EXPECT(of_two(apart + 1024, 0, OFTEN) == NOTHING);
}

/* An allocation above, or below, all that had ranges. */
static void scene_bounds(void)
{
	protect(apart);
	EXPECT(of_two(beyond + 1024, 0, OFTEN) == NOTHING);
	EXPECT(of_two(pool + 1024, 0, OFTEN) == NOTHING);
	protect(beyond);
	EXPECT(of_two(beyond + 1024, 0, OFTEN) == NEAR);
	EXPECT(of_two(pool + 1024, 0, OFTEN) == NOTHING);
	protect(pool);
	EXPECT(of_two(pool + 1024, 0, OFTEN) == NEAR);
}

/* A range that a kernel read ends, others in the allocation do not: what stores there is counted anew, and its first launch is checked. */
static void scene_ended(void)
{
	CUdeviceptr harmless = apart;
	protect(pool);
	CHECK(cuMemcpyHtoD(pool + 1024, &harmless, sizeof harmless));
	cuconst_handle handle = protect(pool + 1024);
	EXPECT(of_table(pool + 1024, OFTEN) == UNKNOWN);
	CHECK(cuconst_unprotect(handle));
	struct cuconst_stats before = stats();
	EXPECT(of_table(pool + 1024, 1) == UNKNOWN);
	EXPECT(stats().verified > before.verified);
}

/* The same address as another argument. */
static void scene_argument(void)
{
	protect(pool);
	EXPECT(of_two(pool + 1024, apart + 1024, OFTEN) == NEAR);
	EXPECT(of_two(apart + 1024, pool + 1024, OFTEN) == NOTHING);
	EXPECT(of_two(pool + 1024, apart + 1024, OFTEN) == NEAR);
	EXPECT(of_two(pool + 2048, apart + 1024, 1) == NEAR);
	EXPECT(of_two(apart + 1024, pool + 2048, 1) == NOTHING);
}

/* Words that the code takes for numbers: at first all are looked at; when its code was read, because of an address or of so many launches, only the others. */
static void scene_numbers(void)
{
	static const size_t addresses[] = {1, 59}, numbers[] = {0, 2, 3, 4, 5, 40, 58, 60, 79};
	protect(pool);
	for (int round = 0; round < 2; round++) {
		EXPECT(of_wide(apart, 79, apart, 3) == NOTHING);
		EXPECT(of_wide(apart, 1, pool, OFTEN) == (round ? NOTHING : CLEAN));
		EXPECT(of_wide(apart, 59, pool + 1024, OFTEN) == NEAR);
		for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
			EXPECT(of_wide(apart, numbers[i], pool, 3) == NOTHING);
		for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
			EXPECT(of_wide(apart, addresses[i], pool, 3) == (addresses[i] == 1 ? NOTHING : STORES));
		/* Loaded again, nobody knows it, and it is launched until that is asked. */
		CHECK(cuModuleUnload(module));
		load();
		EXPECT(of_wide(apart, 79, apart, 1000) == NOTHING);
	}
}

/* The same addresses with another number, on which the answer hangs. */
static void scene_number(void)
{
	CUdeviceptr harmless = apart;
	CHECK(cuMemcpyHtoD(pool, &harmless, sizeof harmless));
	protect(pool);
	for (int i = 0; i < 2; i++) {
		EXPECT(of_choice(pool, apart + 1024, 1, OFTEN) == (i ? NOTHING : CLEAN));
		EXPECT(of_choice(pool, apart + 1024, 0, OFTEN) == UNKNOWN);
	}
	/* More numbers than answers are kept: those that are known keep theirs. */
	for (unsigned n = 2; n < 100; n++)
		of_choice(pool, apart + 1024, n, 3);
	EXPECT(of_choice(pool, apart + 1024, 1, 3) == NOTHING);
	EXPECT(of_choice(pool, apart + 1024, 0, 3) == UNKNOWN);
}

/* The 1st, 2nd, 4th, 8th, 16th, 32nd and 64th are checked, and no other. */
static void scene_due(void)
{
	protect(pool);
	struct cuconst_stats before = stats();
	for (unsigned i = 1; i <= 100; i++) {
		struct cuconst_stats last = stats();
		launch_two(pool + 1024, 0);
		EXPECT((stats().verified > last.verified) == !(i & (i - 1)));
	}
	EXPECT(stats().near == before.near + 100);
}

/* What is captured does not run now, and the graph's launch is judged by itself. */
static void scene_capture(void)
{
	CUgraph graph;
	CUgraphExec exec;
	protect(pool);
	EXPECT(of_two(pool + 1024, 0, OFTEN) == NEAR);
	struct cuconst_stats before = stats();
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	launch_two(pool + 1024, 0);
	CHECK(cuStreamEndCapture(stream, &graph));
	EXPECT(stats().near == before.near);
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	EXPECT(of_two(pool + 1024, 0, 1) == NEAR);
}

/* Nor is what was learnt while it was captured taken for a launch: table's first one is checked. */
static void scene_captured_first(void)
{
	CUdeviceptr harmless = apart;
	CUgraph graph;
	protect(pool);
	CHECK(cuMemcpyHtoD(pool + 1024, &harmless, sizeof harmless));
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	launch_table(pool + 1024);
	CHECK(cuStreamEndCapture(stream, &graph));
	struct cuconst_stats before = stats();
	EXPECT(of_table(pool + 1024, 1) == UNKNOWN);
	EXPECT(stats().verified > before.verified);
}

/* A refused launch is the driver's answer, and leaves the thread as it was. */
static void scene_error(void)
{
	CUdeviceptr a = pool + 1024, b = 0;
	void *params[] = {&a, &b};
	protect(pool);
	EXPECT(of_two(a, b, OFTEN) == NEAR);
	EXPECT(cuLaunchKernel(two, 1, 1, 1, 4096, 1, 1, 0, stream, params, NULL) != CUDA_SUCCESS);
	EXPECT(of_two(a, b, 1) == NEAR);
	EXPECT(cuMemsetD8Async(pool, 9, 1, stream) == CUDA_SUCCESS);
	EXPECT(stats().violations == 1);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*play)(void);
	} scenes[] = {{"protected", scene_protected}, {"allocation", scene_allocation},
	              {"bounds", scene_bounds},       {"ended", scene_ended},
	              {"argument", scene_argument},   {"number", scene_number},
	              {"numbers", scene_numbers},     {"due", scene_due},
	              {"capture", scene_capture},     {"captured_first", scene_captured_first},
	              {"error", scene_error}};
	start();
	for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
		if (argc > 1 && !strcmp(argv[1], scenes[i].name)) {
			scenes[i].play();
			return 0;
		}
	return 2;
}
