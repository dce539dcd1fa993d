/*
 * What a program sees when the library gets no host memory: errors from cuconst_*, its own calls and results as ever.
 * no_memory.c is preloaded.
 */
#include "tests/faults/scene.h"

#include <dlfcn.h>
#include <stdbool.h>

static void no_memory(void)
{
	void (*from_now)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "no_memory_from_now");
	EXPECT(from_now);
	from_now();
}

/* In order with everything else: what comes of it must not depend on chance. */
static void write_p(unsigned char value, size_t bytes)
{
	CHECK(cuMemsetD8(p, value, bytes));
	CHECK(cuCtxSynchronize());
}

/*
 * Every kind of call once, with a copy into p if it is protected. All results are checked against what a driver without
 * us gives.
 */
static void work(void)
{
	CUdeviceptr other;
	int count = COUNT;
	void *params[] = {&p, &q, &count};
	CUgraph graph;
	CUgraphExec exec;
	CHECK(cuMemAlloc(&other, SIZE));
	write_p(5, 16);
	EXPECT(byte_at(p) == 5 && byte_at(p + 16) == 1);
	write_p(1, 16);
	launch("copy", COUNT, stream, params);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(q) == 1);
	fill(p, 7, COUNT);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(p) == 7);
	write_p(1, SIZE);
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	launch("copy", COUNT, stream, params);
	CHECK(cuMemsetD8Async(p, 3, SIZE, stream));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(q) == 1 && byte_at(p) == 3);
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
	write_p(1, SIZE);
	CHECK(cuMemFree(other));
}

static bool try_protect(cuconst_handle *ret_handle)
{
	cuconst_result answer = cuconst_protect(p, SIZE, "p", 0, NULL, ret_handle);
	EXPECT(answer == CUCONST_OK || answer == CUCONST_ERROR_OUT_OF_MEMORY || answer == CUCONST_ERROR_NOT_ACTIVE);
	return answer == CUCONST_OK;
}

/* For a test that wants to know how many allocations there are to fail. */
static void tell(const char *argument)
{
	long (*calls)(void) = (long (*)(void))dlsym(RTLD_DEFAULT, "no_memory_calls");
	if (argument && !strcmp(argument, "count"))
		printf("%ld\n", calls());
}

/* From the very first call on. */
static void play_from_start(const char *argument)
{
	cuconst_handle handle = 0;
	no_memory();
	start();
	bool held = try_protect(&handle);
	work();
	if (held)
		cuconst_unprotect(handle);
	tell(argument);
}

/* With a range protected. */
static void play_protected(const char *argument)
{
	cuconst_handle handle = 0, more = 0;
	start();
	EXPECT(try_protect(&handle));
	no_memory();
	work();
	bool held = try_protect(&more);
	work();
	if (held)
		cuconst_unprotect(more);
	cuconst_unprotect(handle);
	EXPECT(stats().ranges == 0);
	tell(argument);
}

/*
 * The first launch of a kernel reads its code. Without memory for that it is unknown, never clean; and either refused
 * or run, nothing between.
 */
static void play_judged(const char *argument)
{
	cuconst_handle handle = 0;
	start();
	EXPECT(try_protect(&handle));
	kernel("fill");
	no_memory();
	CUresult result = try_fill(p, 7, COUNT);
	struct cuconst_stats now = stats();
	EXPECT(result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_PERMITTED);
	EXPECT(now.clean == 0 && now.near == 0 && now.denied == (result != CUDA_SUCCESS));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(p) == (result ? 1 : 7));
	cuconst_unprotect(handle);
	printf("%s\n", result ? "refused" : now.unknown ? "unknown" : "unjudged");
	tell(argument);
}

int main(int argc, char **argv)
{
	static const struct scene scenes[] = {
		{"judged", play_judged}, {"from_start", play_from_start}, {"protected", play_protected}, {NULL, NULL}};
	return scene_main(argc, argv, scenes);
}
