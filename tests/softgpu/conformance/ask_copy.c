/* Copies and sets: bad pointers, sizes, overlaps, shapes. */
#include <sys/mman.h>

#include "tests/softgpu/conformance/conformance.h"

static void flat(void)
{
	CUdeviceptr a = device_memory(1024), b = device_memory(1024), gone = device_memory(4096);
	char host[2048] = {1, 2, 3, 4, 5, 6, 7, 8};

	NEED(cuMemFree(gone));
	answer_status("htod", cuMemcpyHtoD(a, host, 1024));
	answer_status("htod_past_end", cuMemcpyHtoD(a, host, 1025));
	answer_status("htod_end_past", cuMemcpyHtoD(a + 1000, host, 25));
	answer_status("htod_zero", cuMemcpyHtoD(a, host, 0));
	answer_status("htod_zero_null", cuMemcpyHtoD(0, NULL, 0));
	answer_status("htod_zero_garbage", cuMemcpyHtoD(0x1234, host, 0));
	answer_status("htod_null", cuMemcpyHtoD(0, host, 4));
	answer_status("htod_freed", cuMemcpyHtoD(gone, host, 4));
	answer_status("htod_garbage", cuMemcpyHtoD(0x1234, host, 4));
	answer_status("htod_null_source", cuMemcpyHtoD(a, NULL, 4));
	answer_status("htod_to_host", cuMemcpyHtoD((CUdeviceptr)(uintptr_t)(host + 64), host, 4));
	answer_status("htod_huge", cuMemcpyHtoD(a, host, SIZE_MAX));
	answer_status("htod_from_device", cuMemcpyHtoD(a, (void *)(uintptr_t)b, 16));
	answer_status("dtoh", cuMemcpyDtoH(host, a, 1024));
	answer_status("dtoh_null", cuMemcpyDtoH(NULL, a, 4));
	answer_status("dtoh_past_end", cuMemcpyDtoH(host, a, 1025));
	answer_status("dtoh_from_host", cuMemcpyDtoH(host + 64, (CUdeviceptr)(uintptr_t)host, 4));
	answer_status("dtoh_to_device", cuMemcpyDtoH((void *)(uintptr_t)b, a, 16));
	answer_status("dtod", cuMemcpyDtoD(b, a, 1024));
	answer_status("dtod_same", cuMemcpyDtoD(a, a, 64));
	answer_status("dtod_overlap_up", cuMemcpyDtoD(a + 16, a, 64));
	answer_status("dtod_overlap_down", cuMemcpyDtoD(a, a + 16, 64));
	answer_status("dtod_past_end", cuMemcpyDtoD(b, a, 1025));
	answer_status("dtod_huge", cuMemcpyDtoD(b, a, SIZE_MAX));
	answer_status("dtod_to_host", cuMemcpyDtoD((CUdeviceptr)(uintptr_t)host, a, 16));
	answer_status("any", cuMemcpy(b, a, 16));
	answer_status("any_to_host", cuMemcpy((CUdeviceptr)(uintptr_t)host, a, 16));
	answer_status("any_from_host", cuMemcpy(a, (CUdeviceptr)(uintptr_t)host, 16));
	answer_status("any_host_to_host",
	              cuMemcpy((CUdeviceptr)(uintptr_t)(host + 64), (CUdeviceptr)(uintptr_t)host, 16));
	answer_status("any_null", cuMemcpy(0, a, 16));
	answer_status("async_null_stream", cuMemcpyHtoDAsync(a, host, 16, NULL));
	answer_status("async_past_end", cuMemcpyHtoDAsync(a, host, 1025, NULL));
	answer_status("async_any_null", cuMemcpyAsync(0, a, 16, NULL));
	CUcontext context;
	NEED(cuCtxGetCurrent(&context));
	answer_status("peer_same", cuMemcpyPeer(b, context, a, context, 16));
	answer_status("peer_null_context", cuMemcpyPeer(b, NULL, a, context, 16));
	answer_status("peer_past_end", cuMemcpyPeer(b, context, a, context, 1025));
	answer_status("peer_async", cuMemcpyPeerAsync(b, context, a, context, 16, NULL));
	answer_status("synchronize", cuCtxSynchronize());
	/*
	 * Two allocations of 2 MiB each are apart or adjacent as the driver likes: a copy over their border is an
	 * error.
	 */
	CUdeviceptr left = device_memory(2 << 20), right = device_memory(2 << 20);
	CUdeviceptr low = left < right ? left : right, high = left < right ? right : left;
	answer_status("set_across_neighbours", cuMemsetD8(low, 0, (size_t)(high - low) + 16));
}

static void wild_host(void)
{
	CUdeviceptr a = device_memory(64);
	char *unmapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	answer_status("htod_from_unmapped", cuMemcpyHtoD(a, unmapped, 16));
}

static void wild_host_back(void)
{
	CUdeviceptr a = device_memory(64);
	char *unmapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	answer_status("dtoh_to_unmapped", cuMemcpyDtoH(unmapped, a, 16));
}

static void rectangles(void)
{
	CUdeviceptr a = device_memory(1024), b = device_memory(1024);
	char host[1024] = {0};
	CUDA_MEMCPY2D good = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                      .srcDevice = a,
	                      .srcPitch = 64,
	                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                      .dstDevice = b,
	                      .dstPitch = 64,
	                      .WidthInBytes = 32,
	                      .Height = 16};
	CUDA_MEMCPY2D c = good;

	answer_status("2d", cuMemcpy2D(&c));
	answer_status("2d_unaligned", cuMemcpy2DUnaligned(&c));
	answer_status("2d_async", cuMemcpy2DAsync(&c, NULL));
	answer_status("2d_null", cuMemcpy2D(NULL));
	c.dstPitch = 16;
	answer_status("2d_pitch_small", cuMemcpy2D(&c));
	c.dstPitch = 0;
	answer_status("2d_pitch_zero", cuMemcpy2D(&c));
	c = good;
	c.Height = 17;
	answer_status("2d_past_end", cuMemcpy2D(&c));
	c = good;
	c.dstY = 1;
	answer_status("2d_offset_past_end", cuMemcpy2D(&c));
	c.dstXInBytes = 33;
	c.dstY = 0;
	answer_status("2d_x_past_pitch", cuMemcpy2D(&c));
	c = good;
	c.WidthInBytes = 0;
	answer_status("2d_no_width", cuMemcpy2D(&c));
	c = good;
	c.Height = 0;
	answer_status("2d_no_height", cuMemcpy2D(&c));
	c = good;
	c.dstMemoryType = (CUmemorytype)0;
	answer_status("2d_type_zero", cuMemcpy2D(&c));
	c.dstMemoryType = (CUmemorytype)9;
	answer_status("2d_type_unknown", cuMemcpy2D(&c));
	c = good;
	c.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
	answer_status("2d_unified", cuMemcpy2D(&c));
	c.srcMemoryType = CU_MEMORYTYPE_HOST;
	c.srcHost = host;
	answer_status("2d_from_host", cuMemcpy2D(&c));
	c.srcHost = NULL;
	answer_status("2d_from_null", cuMemcpy2D(&c));
	c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	answer_status("2d_from_no_array", cuMemcpy2D(&c));
	c = good;
	c.dstPitch = (size_t)1 << 32;
	answer_status("2d_pitch_beyond", cuMemcpy2D(&c));

	CUDA_MEMCPY3D d = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                   .srcDevice = a,
	                   .srcPitch = 16,
	                   .srcHeight = 4,
	                   .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                   .dstDevice = b,
	                   .dstPitch = 16,
	                   .dstHeight = 4,
	                   .WidthInBytes = 16,
	                   .Height = 4,
	                   .Depth = 4};
	CUDA_MEMCPY3D e = d;
	answer_status("3d", cuMemcpy3D(&e));
	answer_status("3d_null", cuMemcpy3D(NULL));
	answer_status("3d_async", cuMemcpy3DAsync(&e, NULL));
	e.Depth = 17;
	answer_status("3d_past_end", cuMemcpy3D(&e));
	e = d;
	e.dstHeight = 2;
	answer_status("3d_height_small", cuMemcpy3D(&e));
	e = d;
	e.dstHeight = 0;
	answer_status("3d_height_zero", cuMemcpy3D(&e));
	e = d;
	e.dstLOD = 1;
	answer_status("3d_lod", cuMemcpy3D(&e));
	e = d;
	e.Depth = 0;
	answer_status("3d_no_depth", cuMemcpy3D(&e));
	answer_status("synchronize_shapes", cuCtxSynchronize());
}

static void batches(void)
{
	CUdeviceptr a = device_memory(1024), b = device_memory(1024);
	CUdeviceptr to[2] = {b, b + 512}, from[2] = {a, a + 512};
	size_t sizes[2] = {64, 64}, first = 0, second_first[2] = {0, 0};
	CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	CUmemcpyAttributes both[2] = {how, how}, bad = {.srcAccessOrder = (CUmemcpySrcAccessOrder)77};
	CUstream stream;

	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	answer_status("batch", cuMemcpyBatchAsync(to, from, sizes, 2, &how, &first, 1, stream));
	answer_status("batch_null_stream", cuMemcpyBatchAsync(to, from, sizes, 2, &how, &first, 1, NULL));
	answer_status("batch_none", cuMemcpyBatchAsync(to, from, sizes, 0, &how, &first, 1, stream));
	answer_status("batch_no_attributes", cuMemcpyBatchAsync(to, from, sizes, 2, NULL, NULL, 0, stream));
	answer_status("batch_indices_equal", cuMemcpyBatchAsync(to, from, sizes, 2, both, second_first, 2, stream));
	answer_status("batch_bad_order", cuMemcpyBatchAsync(to, from, sizes, 2, &bad, &first, 1, stream));
	sizes[1] = 1024;
	answer_status("batch_past_end", cuMemcpyBatchAsync(to, from, sizes, 2, &how, &first, 1, stream));
	sizes[1] = 0;
	answer_status("batch_zero_size", cuMemcpyBatchAsync(to, from, sizes, 2, &how, &first, 1, stream));
	answer_status("batch_synchronize", cuStreamSynchronize(stream));
}

static const struct topic topics[] = {
	{.name = "flat", .ask = flat},
	{.name = "rectangles", .ask = rectangles},
	{.name = "batches", .ask = batches},
	{.name = "wild_host", .ask = wild_host, .alone = true},
	{.name = "wild_host_back", .ask = wild_host_back, .alone = true},
	{.name = NULL},
};
const struct family copy_family = {.name = "copy", .topics = topics};

static void sets(void)
{
	CUdeviceptr a = device_memory(1024);
	char host[64] = {0};
	void *pinned = NULL;

	answer_status("d8", cuMemsetD8(a, 1, 1024));
	answer_status("d8_past_end", cuMemsetD8(a, 1, 1025));
	answer_status("d8_zero", cuMemsetD8(a, 1, 0));
	answer_status("d8_zero_null", cuMemsetD8(0, 1, 0));
	answer_status("d8_null", cuMemsetD8(0, 1, 1));
	answer_status("d8_garbage", cuMemsetD8(0x1234, 1, 1));
	answer_status("d8_host", cuMemsetD8((CUdeviceptr)(uintptr_t)host, 1, 1));
	answer_status("d16_odd", cuMemsetD16(a + 1, 1, 1));
	answer_status("d32_odd", cuMemsetD32(a + 2, 1, 1));
	answer_status("d32_past_end", cuMemsetD32(a, 1, 257));
	NEED(cuMemHostAlloc(&pinned, 64, 0));
	answer_status("d8_pinned", cuMemsetD8((CUdeviceptr)(uintptr_t)pinned, 7, 64));
	answer_status("d2d8", cuMemsetD2D8(a, 64, 1, 32, 16));
	answer_status("d2d8_past_end", cuMemsetD2D8(a, 64, 1, 32, 17));
	answer_status("d2d8_pitch_small", cuMemsetD2D8(a, 16, 1, 32, 2));
	answer_status("d2d8_pitch_zero", cuMemsetD2D8(a, 0, 1, 32, 1));
	answer_status("d2d8_no_width", cuMemsetD2D8(a, 64, 1, 0, 2));
	answer_status("d2d8_no_height", cuMemsetD2D8(a, 64, 1, 32, 0));
	answer_status("d2d32_pitch_odd", cuMemsetD2D32(a, 66, 1, 8, 2));
	answer_status("d2d32_odd", cuMemsetD2D32(a + 1, 64, 1, 8, 2));
	answer_status("async", cuMemsetD32Async(a, 1, 16, NULL));
	answer_status("async_past_end", cuMemsetD32Async(a, 1, 257, NULL));
	answer_status("synchronize", cuCtxSynchronize());
}

static void sets_beyond(void)
{
	CUdeviceptr a = device_memory(1024);

	answer_status("d32_huge", cuMemsetD32(a, 1, SIZE_MAX));
	answer_status("d32_wraps", cuMemsetD32(a, 1, SIZE_MAX / 4 + 2));
	answer_status("beyond_synchronize", cuCtxSynchronize());
}

static const struct topic set_topics[] = {
	{.name = "sets", .ask = sets},
	{.name = "sets_beyond", .ask = sets_beyond, .alone = true},
	{.name = NULL},
};
const struct family set_family = {.name = "set", .topics = set_topics};
