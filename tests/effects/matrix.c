/*
 * Every entry point whose write is judged, once: `matrix SYMBOL hit|beside`.
 *
 * A quarter of a buffer is protected ([base + 4096, base + 8192), label "p"). "hit" makes the call write into it,
 * "beside" makes the same call write next to it. Prints: the CUresult, whether the protected bytes changed, and where
 * the write should have gone:
 *     result=0 changed=1 start=64 end=128
 * `matrix --list` prints the symbols, one a line, with "deny" behind those that are only judged, because what they need
 * (arrays, a decompression engine, managed memory, a device address as host destination, the first version of stream
 * memory operations) is not there.
 */
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cuconst.h"

#define CHECK(call)                                                                                                    \
	do {                                                                                                           \
		int result_ = (int)(call);                                                                             \
		if (result_) {                                                                                         \
			fprintf(stderr, "%s: %d\n", #call, result_);                                                   \
			exit(99);                                                                                      \
		}                                                                                                      \
	} while (0)

#define PITCH 256
#define SIZE 65536

static CUdeviceptr dst, src; /* where the call writes; what it reads */
static void *host_dst;       /* dst as a host pointer: what H calls take */
static unsigned char host[SIZE];
static CUstream stream;
static CUcontext context;
static CUdevice device;

static CUDA_MEMCPY2D *copy2d(void)
{
	static CUDA_MEMCPY2D copy;
	copy = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                       .srcDevice = src,
	                       .srcPitch = PITCH,
	                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                       .dstDevice = dst - 16,
	                       .dstXInBytes = 16,
	                       .dstPitch = PITCH,
	                       .WidthInBytes = 32,
	                       .Height = 4};
	return &copy;
}

static CUDA_MEMCPY3D *copy3d(void)
{
	static CUDA_MEMCPY3D copy;
	copy = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                       .srcDevice = src,
	                       .srcPitch = PITCH,
	                       .srcHeight = 2,
	                       .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
	                       .dstDevice = dst,
	                       .dstPitch = PITCH,
	                       .dstHeight = 2,
	                       .WidthInBytes = 32,
	                       .Height = 2,
	                       .Depth = 2};
	return &copy;
}

static CUDA_MEMCPY3D_PEER *copy3d_peer(void)
{
	static CUDA_MEMCPY3D_PEER copy;
	copy = (CUDA_MEMCPY3D_PEER){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                            .srcDevice = src,
	                            .srcPitch = PITCH,
	                            .srcHeight = 2,
	                            .srcContext = context,
	                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                            .dstDevice = dst,
	                            .dstPitch = PITCH,
	                            .dstHeight = 2,
	                            .dstContext = context,
	                            .WidthInBytes = 32,
	                            .Height = 2,
	                            .Depth = 2};
	return &copy;
}

static CUDA_MEMCPY3D_BATCH_OP *batch3d(void)
{
	static CUDA_MEMCPY3D_BATCH_OP op;
	op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	op.src.op.ptr.ptr = src;
	op.dst.op.ptr.ptr = dst;
	op.src.op.ptr.rowLength = op.dst.op.ptr.rowLength = PITCH;
	op.src.op.ptr.layerHeight = op.dst.op.ptr.layerHeight = 2;
	op.extent = (CUextent3D){32, 2, 2};
	op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	return &op;
}

static CUstreamBatchMemOpParams *memops(void)
{
	static CUstreamBatchMemOpParams ops[2];
	ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[0].writeValue.address = dst;
	ops[0].writeValue.value = 0x01020304;
	ops[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	ops[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	ops[1].writeValue.address = dst + 8;
	ops[1].writeValue.value64 = 0x0102030405060708;
	return ops;
}

static CUmemDecompressParams *decompress(void)
{
	static CUmemDecompressParams params;
	params.src = host;
	params.srcNumBytes = 64;
	params.dst = host_dst;
	params.dstNumBytes = 64;
	params.algo = CU_MEM_DECOMPRESS_ALGORITHM_LZ4;
	return &params;
}

static CUdeviceptr dsts[2], srcs[2];
static size_t sizes[2] = {64, 64}, attribute_index;
static CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
static CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

static CUgraphExec memset_graph(void)
{
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CUDA_MEMSET_NODE_PARAMS params = {.dst = dst, .value = 7, .elementSize = 1, .width = 64, .height = 1};
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, context));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

/* X(symbol, first byte, last byte + 1 relative to dst, judged only, call) */
#define LINE(X, symbol, bytes, ...) X(symbol, 0, bytes, 0, symbol(__VA_ARGS__))
#define PITCHED 32 + 3 * PITCH
#define BOXED 32 + PITCH + 2 * PITCH
#define CASES(X)                                                                                                       \
	LINE(X, cuMemcpy, 64, dst, src, 64)                                                                            \
	LINE(X, cuMemcpy_ptds, 64, dst, src, 64)                                                                       \
	LINE(X, cuMemcpyAsync, 64, dst, src, 64, stream)                                                               \
	LINE(X, cuMemcpyAsync_ptsz, 64, dst, src, 64, stream)                                                          \
	LINE(X, cuMemcpyDtoD_v2, 64, dst, src, 64)                                                                     \
	LINE(X, cuMemcpyDtoD_v2_ptds, 64, dst, src, 64)                                                                \
	LINE(X, cuMemcpyDtoDAsync_v2, 64, dst, src, 64, stream)                                                        \
	LINE(X, cuMemcpyDtoDAsync_v2_ptsz, 64, dst, src, 64, stream)                                                   \
	LINE(X, cuMemcpyHtoD_v2, 64, dst, host, 64)                                                                    \
	LINE(X, cuMemcpyHtoD_v2_ptds, 64, dst, host, 64)                                                               \
	LINE(X, cuMemcpyHtoDAsync_v2, 64, dst, host, 64, stream)                                                       \
	LINE(X, cuMemcpyHtoDAsync_v2_ptsz, 64, dst, host, 64, stream)                                                  \
	LINE(X, cuMemcpyPeer, 64, dst, context, src, context, 64)                                                      \
	LINE(X, cuMemcpyPeer_ptds, 64, dst, context, src, context, 64)                                                 \
	LINE(X, cuMemcpyPeerAsync, 64, dst, context, src, context, 64, stream)                                         \
	LINE(X, cuMemcpyPeerAsync_ptsz, 64, dst, context, src, context, 64, stream)                                    \
	LINE(X, cuMemcpy2D_v2, PITCHED, copy2d())                                                                      \
	LINE(X, cuMemcpy2D_v2_ptds, PITCHED, copy2d())                                                                 \
	LINE(X, cuMemcpy2DUnaligned_v2, PITCHED, copy2d())                                                             \
	LINE(X, cuMemcpy2DUnaligned_v2_ptds, PITCHED, copy2d())                                                        \
	LINE(X, cuMemcpy2DAsync_v2, PITCHED, copy2d(), stream)                                                         \
	LINE(X, cuMemcpy2DAsync_v2_ptsz, PITCHED, copy2d(), stream)                                                    \
	LINE(X, cuMemcpy3D_v2, BOXED, copy3d())                                                                        \
	LINE(X, cuMemcpy3D_v2_ptds, BOXED, copy3d())                                                                   \
	LINE(X, cuMemcpy3DAsync_v2, BOXED, copy3d(), stream)                                                           \
	LINE(X, cuMemcpy3DAsync_v2_ptsz, BOXED, copy3d(), stream)                                                      \
	LINE(X, cuMemcpy3DPeer, BOXED, copy3d_peer())                                                                  \
	LINE(X, cuMemcpy3DPeer_ptds, BOXED, copy3d_peer())                                                             \
	LINE(X, cuMemcpy3DPeerAsync, BOXED, copy3d_peer(), stream)                                                     \
	LINE(X, cuMemcpy3DPeerAsync_ptsz, BOXED, copy3d_peer(), stream)                                                \
	LINE(X, cuMemcpyBatchAsync, 192, dsts, srcs, sizes, 2, &attributes, &attribute_index, 1, NULL, stream)         \
	LINE(X, cuMemcpyBatchAsync_ptsz, 192, dsts, srcs, sizes, 2, &attributes, &attribute_index, 1, NULL, stream)    \
	LINE(X, cuMemcpyBatchAsync_v2, 192, dsts, srcs, sizes, 2, &attributes, &attribute_index, 1, stream)            \
	LINE(X, cuMemcpyBatchAsync_v2_ptsz, 192, dsts, srcs, sizes, 2, &attributes, &attribute_index, 1, stream)       \
	LINE(X, cuMemcpy3DBatchAsync, BOXED, 1, batch3d(), NULL, 0, stream)                                            \
	LINE(X, cuMemcpy3DBatchAsync_ptsz, BOXED, 1, batch3d(), NULL, 0, stream)                                       \
	LINE(X, cuMemcpy3DBatchAsync_v2, BOXED, 1, batch3d(), 0, stream)                                               \
	LINE(X, cuMemcpy3DBatchAsync_v2_ptsz, BOXED, 1, batch3d(), 0, stream)                                          \
	LINE(X, cuMemsetD8_v2, 64, dst, 9, 64)                                                                         \
	LINE(X, cuMemsetD8_v2_ptds, 64, dst, 9, 64)                                                                    \
	LINE(X, cuMemsetD8Async, 64, dst, 9, 64, stream)                                                               \
	LINE(X, cuMemsetD8Async_ptsz, 64, dst, 9, 64, stream)                                                          \
	LINE(X, cuMemsetD16_v2, 64, dst, 9, 32)                                                                        \
	LINE(X, cuMemsetD16_v2_ptds, 64, dst, 9, 32)                                                                   \
	LINE(X, cuMemsetD16Async, 64, dst, 9, 32, stream)                                                              \
	LINE(X, cuMemsetD16Async_ptsz, 64, dst, 9, 32, stream)                                                         \
	LINE(X, cuMemsetD32_v2, 64, dst, 9, 16)                                                                        \
	LINE(X, cuMemsetD32_v2_ptds, 64, dst, 9, 16)                                                                   \
	LINE(X, cuMemsetD32Async, 64, dst, 9, 16, stream)                                                              \
	LINE(X, cuMemsetD32Async_ptsz, 64, dst, 9, 16, stream)                                                         \
	LINE(X, cuMemsetD2D8_v2, PITCHED, dst, PITCH, 9, 32, 4)                                                        \
	LINE(X, cuMemsetD2D8_v2_ptds, PITCHED, dst, PITCH, 9, 32, 4)                                                   \
	LINE(X, cuMemsetD2D8Async, PITCHED, dst, PITCH, 9, 32, 4, stream)                                              \
	LINE(X, cuMemsetD2D8Async_ptsz, PITCHED, dst, PITCH, 9, 32, 4, stream)                                         \
	LINE(X, cuMemsetD2D16_v2, PITCHED, dst, PITCH, 9, 16, 4)                                                       \
	LINE(X, cuMemsetD2D16_v2_ptds, PITCHED, dst, PITCH, 9, 16, 4)                                                  \
	LINE(X, cuMemsetD2D16Async, PITCHED, dst, PITCH, 9, 16, 4, stream)                                             \
	LINE(X, cuMemsetD2D16Async_ptsz, PITCHED, dst, PITCH, 9, 16, 4, stream)                                        \
	LINE(X, cuMemsetD2D32_v2, PITCHED, dst, PITCH, 9, 8, 4)                                                        \
	LINE(X, cuMemsetD2D32_v2_ptds, PITCHED, dst, PITCH, 9, 8, 4)                                                   \
	LINE(X, cuMemsetD2D32Async, PITCHED, dst, PITCH, 9, 8, 4, stream)                                              \
	LINE(X, cuMemsetD2D32Async_ptsz, PITCHED, dst, PITCH, 9, 8, 4, stream)                                         \
	X(cuStreamWriteValue32, 0, 4, 1, cuStreamWriteValue32(stream, dst, 77, 0))                                     \
	LINE(X, cuStreamWriteValue32_v2, 4, stream, dst, 77, 0)                                                        \
	X(cuStreamWriteValue32_ptsz, 0, 4, 1, cuStreamWriteValue32_ptsz(stream, dst, 77, 0))                           \
	LINE(X, cuStreamWriteValue32_v2_ptsz, 4, stream, dst, 77, 0)                                                   \
	X(cuStreamWriteValue64, 0, 8, 1, cuStreamWriteValue64(stream, dst, 77, 0))                                     \
	LINE(X, cuStreamWriteValue64_v2, 8, stream, dst, 77, 0)                                                        \
	X(cuStreamWriteValue64_ptsz, 0, 8, 1, cuStreamWriteValue64_ptsz(stream, dst, 77, 0))                           \
	LINE(X, cuStreamWriteValue64_v2_ptsz, 8, stream, dst, 77, 0)                                                   \
	X(cuStreamBatchMemOp, 0, 16, 1, cuStreamBatchMemOp(stream, 2, memops(), 0))                                    \
	LINE(X, cuStreamBatchMemOp_v2, 16, stream, 2, memops(), 0)                                                     \
	X(cuStreamBatchMemOp_ptsz, 0, 16, 1, cuStreamBatchMemOp_ptsz(stream, 2, memops(), 0))                          \
	LINE(X, cuStreamBatchMemOp_v2_ptsz, 16, stream, 2, memops(), 0)                                                \
	LINE(X, cuGraphLaunch, 64, memset_graph(), stream)                                                             \
	LINE(X, cuGraphLaunch_ptsz, 64, memset_graph(), stream)                                                        \
	X(cuMemcpyAtoD_v2, 0, 64, 1, cuMemcpyAtoD_v2(dst, NULL, 0, 64))                                                \
	X(cuMemcpyAtoD_v2_ptds, 0, 64, 1, cuMemcpyAtoD_v2_ptds(dst, NULL, 0, 64))                                      \
	X(cuMemcpyAtoH_v2, 0, 64, 1, cuMemcpyAtoH_v2(host_dst, NULL, 0, 64))                                           \
	X(cuMemcpyAtoH_v2_ptds, 0, 64, 1, cuMemcpyAtoH_v2_ptds(host_dst, NULL, 0, 64))                                 \
	X(cuMemcpyAtoHAsync_v2, 0, 64, 1, cuMemcpyAtoHAsync_v2(host_dst, NULL, 0, 64, stream))                         \
	X(cuMemcpyAtoHAsync_v2_ptsz, 0, 64, 1, cuMemcpyAtoHAsync_v2_ptsz(host_dst, NULL, 0, 64, stream))               \
	X(cuMemcpyAtoH, 0, 64, 1, cuMemcpyAtoH(host_dst, NULL, 0, 64))                                                 \
	X(cuMemcpyAtoHAsync, 0, 64, 1, cuMemcpyAtoHAsync(host_dst, NULL, 0, 64, stream))                               \
	X(cuMemcpyDtoH, 0, 64, 1, cuMemcpyDtoH(host_dst, 0, 64))                                                       \
	X(cuMemcpyDtoHAsync, 0, 64, 1, cuMemcpyDtoHAsync(host_dst, 0, 64, stream))                                     \
	X(cuMemcpyDtoH_v2, 0, 64, 1, cuMemcpyDtoH_v2(host_dst, src, 64))                                               \
	X(cuMemcpyDtoH_v2_ptds, 0, 64, 1, cuMemcpyDtoH_v2_ptds(host_dst, src, 64))                                     \
	X(cuMemcpyDtoHAsync_v2, 0, 64, 1, cuMemcpyDtoHAsync_v2(host_dst, src, 64, stream))                             \
	X(cuMemcpyDtoHAsync_v2_ptsz, 0, 64, 1, cuMemcpyDtoHAsync_v2_ptsz(host_dst, src, 64, stream))                   \
	X(cuMemBatchDecompressAsync, 0, 64, 1, cuMemBatchDecompressAsync(decompress(), 1, 0, NULL, stream))            \
	X(cuMemBatchDecompressAsync_ptsz, 0, 64, 1, cuMemBatchDecompressAsync_ptsz(decompress(), 1, 0, NULL, stream))  \
	X(cuMemDiscardBatchAsync, 0, 192, 1, cuMemDiscardBatchAsync(dsts, sizes, 2, 0, stream))                        \
	X(cuMemDiscardBatchAsync_ptsz, 0, 192, 1, cuMemDiscardBatchAsync_ptsz(dsts, sizes, 2, 0, stream))              \
	X(cuMemDiscardAndPrefetchBatchAsync, 0, 192, 1,                                                                \
	  cuMemDiscardAndPrefetchBatchAsync(dsts, sizes, 2, &location, &attribute_index, 1, 0, stream))                \
	X(cuMemDiscardAndPrefetchBatchAsync_ptsz, 0, 192, 1,                                                           \
	  cuMemDiscardAndPrefetchBatchAsync_ptsz(dsts, sizes, 2, &location, &attribute_index, 1, 0, stream))

struct test_case {
	const char *symbol;
	unsigned start, end;
	int judged_only;
	CUresult (*call)(void);
};

#define FUNCTION(symbol, start, end, judged_only, call)                                                                \
	static CUresult call_##symbol(void)                                                                            \
	{                                                                                                              \
		return call;                                                                                           \
	}
CASES(FUNCTION)
#define ENTRY(symbol, start, end, judged_only, call) {#symbol, start, end, judged_only, call_##symbol},
static const struct test_case cases[] = {CASES(ENTRY)};
#define CASE_COUNT (sizeof cases / sizeof cases[0])

static int list(void)
{
	for (size_t i = 0; i < CASE_COUNT; i++)
		printf("%s%s\n", cases[i].symbol, cases[i].judged_only ? " deny" : "");
	return 0;
}

int main(int argc, char **argv)
{
	const struct test_case *test = NULL;
	CUdeviceptr base;
	cuconst_handle handle;
	unsigned char before[4096], after[4096];
	if (argc == 2 && !strcmp(argv[1], "--list"))
		return list();
	for (size_t i = 0; argc == 3 && i < CASE_COUNT; i++)
		if (!strcmp(cases[i].symbol, argv[1]))
			test = &cases[i];
	if (!test)
		return 98;
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuMemAlloc_v2(&base, SIZE));
	CHECK(cuMemAlloc_v2(&src, SIZE));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	memset(host, 5, sizeof host);
	CHECK(cuMemsetD8_v2(base, 1, SIZE));
	CHECK(cuMemsetD8_v2(src, 3, SIZE));
	CHECK(cuCtxSynchronize());
	CHECK(cuconst_protect(base + 4096, 4096, "p", 0, NULL, &handle));
	dst = base + (strcmp(argv[2], "hit") ? 16384 : 4096 + 64);
	host_dst = (void *)dst;
	dsts[0] = dst;
	dsts[1] = dst + 128;
	srcs[0] = src;
	srcs[1] = src + 128;
	CHECK(cuMemcpyDtoH_v2(before, base + 4096, sizeof before));
	int result = (int)test->call();
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoH_v2(after, base + 4096, sizeof after));
	printf("result=%d changed=%d start=%#llx end=%#llx\n", result, memcmp(before, after, sizeof before) != 0,
	       (unsigned long long)dst + test->start, (unsigned long long)dst + test->end);
	return 0;
}
