/*
 * Random courses of protections, frees, captures and writes: write_random plain|rows SEED STEPS. With `plain` each write is one that may pass at once (shim/effects/writes.h); with `rows` it is
 * the same one as a pitched one of a single row, which never does. What is printed, and what is recorded, must be the same.
 */
#include <stdbool.h>
#include <string.h>

#include "tests/effects/random_course.h"

#define POOLS 6
#define RANGES 6
#define LONGEST ((size_t)6 << 20)
#define KIB ((size_t)1 << 10)

/*
 * The first stores through an address that it loads: what it does is checked, and its results come later. The other stores through its parameter, but not with what lies in memory here: in
 * strict it gets a twin, so that errors may be the twin's.
 */
static const char text[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .entry table(.param .u64 a, .param .u32 v)\n{\n.reg .b64 %rd<3>;\n.reg .u32 %r<2>;\n"
	"ld.param.u64 %rd1, [a];\nld.param.u32 %r1, [v];\n"
	"ld.global.u64 %rd2, [%rd1];\nst.global.u32 [%rd2], %r1;\nret;\n}\n"
	".visible .entry maybe(.param .u64 a, .param .u32 v)\n{\n.reg .b64 %rd<3>;\n.reg .pred %p<2>;\n"
	"ld.param.u64 %rd1, [a];\nld.global.u64 %rd2, [%rd1];\nsetp.eq.u64 %p1, %rd2, 0x123456789abcdef1;\n"
	"@!%p1 bra DONE;\nst.global.u64 [%rd1], 0;\nDONE:\nret;\n}\n";

/* Small ones share a granule with others, large ones reach over several. */
static const size_t sizes[POOLS] = {64 * KIB, 64 * KIB, 3 << 20, 5 << 20, 64 * KIB, 9 << 20};

static bool by_rows, harmless;
static CUdeviceptr pools[POOLS];
static size_t bytes_of[POOLS];
static CUfunction table, maybe;
static cuconst_handle handles[RANGES];
static char host[LONGEST];

/* One of them twice as often as the others, which it lies among. */
static unsigned some_pool(void)
{
	unsigned nth = below(POOLS + 1);
	return nth < POOLS ? nth : 2;
}

/* Of a write, or of a range. */
struct piece {
	CUdeviceptr at;
	size_t bytes;
};

static struct piece some_piece(void)
{
	unsigned nth = some_pool();
	size_t offset = 256 * (size_t)below((uint32_t)(bytes_of[nth] / 256)), rest = bytes_of[nth] - offset;
	size_t bytes = below(3) ? 4 + 4 * (size_t)below(64) : 4 + 4 * (size_t)below((uint32_t)(rest / 4));
	offset = below(2) ? offset : 4096 * (size_t)below(4);
	return (struct piece){pools[nth] + offset, bytes < bytes_of[nth] - offset ? bytes : bytes_of[nth] - offset};
}

/* Now and then it goes beyond the end of its allocation. */
static struct piece some_write(void)
{
	struct piece piece = some_piece();
	if (!below(12))
		piece.bytes = below(2) ? piece.bytes + (64 * KIB << below(6)) : (size_t)64 << below(30);
	if (!below(30))
		piece.bytes = 0;
	return piece;
}

static CUresult set(struct piece piece, CUstream stream, bool waits)
{
	unsigned char value = (unsigned char)below(256);
	size_t bytes = piece.bytes;
	if (by_rows)
		return waits ? cuMemsetD2D8(piece.at, bytes, value, bytes, 1)
		             : cuMemsetD2D8Async(piece.at, bytes, value, bytes, 1, stream);
	switch (bytes % 4) {
	case 0:
		return waits ? cuMemsetD32(piece.at, value * 0x01010101u, bytes / 4)
		             : cuMemsetD32Async(piece.at, value * 0x01010101u, bytes / 4, stream);
	case 2:
		return waits ? cuMemsetD16(piece.at, (unsigned short)(value * 0x0101), bytes / 2)
		             : cuMemsetD16Async(piece.at, (unsigned short)(value * 0x0101), bytes / 2, stream);
	default:
		return waits ? cuMemsetD8(piece.at, value, bytes) : cuMemsetD8Async(piece.at, value, bytes, stream);
	}
}

static CUresult copy_rows(const CUDA_MEMCPY2D *copy, CUstream stream, bool waits)
{
	return waits ? cuMemcpy2D(copy) : cuMemcpy2DAsync(copy, stream);
}

/* In device memory, from there or from the host; or to the host. */
static CUresult copy(struct piece piece, CUstream stream, bool waits, unsigned kind)
{
	CUDA_MEMCPY2D rows = {.WidthInBytes = piece.bytes, .Height = 1, .srcPitch = piece.bytes, .dstPitch = piece.bytes};
	rows.srcMemoryType = kind == 1 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	rows.dstMemoryType = kind == 2 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	rows.srcHost = rows.dstHost = host;
	rows.dstDevice = piece.at;
	rows.srcDevice = kind == 2 ? piece.at : pools[5];
	if (by_rows)
		return copy_rows(&rows, stream, waits);
	if (kind == 1)
		return waits ? cuMemcpyHtoD(piece.at, host, piece.bytes)
		             : cuMemcpyHtoDAsync(piece.at, host, piece.bytes, stream);
	if (kind == 2)
		return waits ? cuMemcpyDtoH(host, piece.at, piece.bytes)
		             : cuMemcpyDtoHAsync(host, piece.at, piece.bytes, stream);
	if (kind == 3)
		return waits ? cuMemcpy(piece.at, pools[5], piece.bytes)
		             : cuMemcpyAsync(piece.at, pools[5], piece.bytes, stream);
	return waits ? cuMemcpyDtoD(piece.at, pools[5], piece.bytes)
	             : cuMemcpyDtoDAsync(piece.at, pools[5], piece.bytes, stream);
}

static CUresult write_somewhere(CUstream stream, bool waits)
{
	struct piece piece = some_write();
	unsigned kind = below(8);
	if (harmless)
		piece.at = pools[2] + 4096 * (size_t)below((uint32_t)(bytes_of[2] / 4096));
	/* A copy of nothing has no pitch. */
	if (kind < 4 && piece.bytes && piece.bytes <= LONGEST)
		return copy(piece, stream, waits, kind);
	return set(piece, stream, waits);
}

static void some_writes(void)
{
	for (unsigned i = 1 + below(6); i; i--) {
		CUresult result = write_somewhere(streams[below(2)], below(2));
		if (result != CUDA_SUCCESS)
			printf("%" PRIu64 " write: %d\n", step, (int)result);
	}
}

/* What is captured is judged when it runs: against ranges that came in between, too. */
static void protect(void);
static void capture(void)
{
	CUgraph graph;
	CUgraphExec exec;
	CHECK(cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (unsigned i = below(4); i; i--)
		write_somewhere(streams[0], false);
	write_somewhere(streams[1], false);
	/* A write that was refused has ended it. */
	CUresult result = cuStreamEndCapture(streams[0], &graph);
	printf("%" PRIu64 " captured: %d\n", step, (int)result);
	if (result != CUDA_SUCCESS || !graph)
		return;
	protect();
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	for (unsigned i = below(3); i; i--)
		printf("%" PRIu64 " graph: %d\n", step, (int)cuGraphLaunch(exec, streams[0]));
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}

static void protect(void)
{
	unsigned nth = below(RANGES);
	struct piece piece = some_piece();
	if (handles[nth]) {
		printf("%" PRIu64 " ended: %d\n", step,
		       (int)(below(3) ? cuconst_unprotect(handles[nth]) : cuconst_release(handles[nth])));
		handles[nth] = 0;
		return;
	}
	/* What is copied is no range, and what is written where the course is to go on in strict. */
	if (piece.at - pools[5] < sizes[5] || (harmless && piece.at - pools[2] < sizes[2]))
		return;
	CHECK(cuconst_protect(piece.at, piece.bytes < 2048 ? piece.bytes : 2048, "range", 0, NULL, &handles[nth]));
}

/* Memory that is freed comes again, at the same address or another. */
static void allocate(void)
{
	unsigned nth = below(POOLS - 1);
	CHECK(cuCtxSynchronize());
	CHECK(cuMemFree(pools[nth]));
	bytes_of[nth] = below(2) ? sizes[nth] : sizes[nth] / 2;
	CHECK(cuMemAlloc(&pools[nth], bytes_of[nth]));
}

/* The table points into its own pool. Writes come before what a check has found, or behind it. */
static void launch(void)
{
	CUdeviceptr at = pools[4], pointer = pools[4] + 256 * (CUdeviceptr)below(4) + 256;
	unsigned value = below(1u << 30);
	bool stores = !harmless && below(2);
	void *params[] = {&at, &value};
	CUresult result = stores ? cuMemcpyHtoDAsync(at, &pointer, sizeof pointer, streams[0]) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		result = cuLaunchKernel(stores ? table : maybe, 1, 1, 1, 1, 1, 1, 0, streams[0], params, NULL);
	if (below(2))
		some_writes();
	CHECK(cuStreamSynchronize(streams[0]));
	printf("%" PRIu64 " launch: %d\n", step, (int)result);
}

static void play(void)
{
	uint32_t what = below(20);
	if (what < 3)
		protect();
	else if (what == 3)
		allocate();
	else if (what == 4)
		capture();
	else if (what == 5)
		launch();
	else
		some_writes();
}

static void start(void)
{
	CUmodule module;
	for (int i = 0; i < POOLS; i++) {
		bytes_of[i] = sizes[i];
		CHECK(cuMemAlloc(&pools[i], sizes[i]));
		CHECK(cuMemsetD8(pools[i], 0, sizes[i]));
	}
	CHECK(cuModuleLoadData(&module, text));
	CHECK(cuModuleGetFunction(&table, module, "table"));
	CHECK(cuModuleGetFunction(&maybe, module, "maybe"));
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	by_rows = !strcmp(argv[1], "rows");
	random_state = strtoull(argv[2], NULL, 10);
	harmless = random_state & 1;
	return course_run(strtoull(argv[3], NULL, 10), 8, start, play);
}
