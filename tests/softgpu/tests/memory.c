/* Memory: allocation, copies, sets, pools, virtual memory management, pointers. */
#include <sys/mman.h>

#include "tests/softgpu/tests/check.h"

static void allocate(void)
{
	CUdeviceptr a = 0, b = 0, base = 0;
	size_t size = 0, before, after, total, pitch = 0;

	enter(0);
	OK(cuMemGetInfo(&before, &total));
	OK(cuMemAlloc(&a, 1000));
	OK(cuMemAlloc(&b, 1000));
	CHECK(a % 256 == 0 && b % 256 == 0 && (a + 1000 <= b || b + 1000 <= a));
	OK(cuMemGetAddressRange(&base, &size, a + 999));
	CHECK(base == a && size == 1000);
	STATUS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, a + 1000));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&base, 0));
	CHECK(base == 0);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, 16));
	STATUS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&base, total + 1));
	STATUS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&base, SIZE_MAX));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFree(a + 4));
	OK(cuMemFree(a));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFree(a));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFree(0x1234));
	OK(cuMemFree(0));
	OK(cuMemFree(b));
	OK(cuMemGetInfo(&after, &total));
	CHECK(before == after);
	OK(cuMemAllocPitch(&a, &pitch, 100, 10, 4));
	CHECK(pitch >= 100 && pitch % 256 == 0);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&a, &pitch, 100, 10, 3));
	leave(0);
}

static void copies(void)
{
	CUdeviceptr a, b;
	unsigned char host[1024], back[1024];

	enter(0);
	OK(cuMemAlloc(&a, sizeof(host)));
	OK(cuMemAlloc(&b, sizeof(host)));
	for (size_t i = 0; i < sizeof(host); i++)
		host[i] = (unsigned char)(i * 7);
	OK(cuMemcpyHtoD(a, host, sizeof(host)));
	OK(cuMemcpyDtoD(b, a, sizeof(host)));
	OK(cuMemcpyDtoH(back, b, sizeof(back)));
	CHECK(memcmp(host, back, sizeof(host)) == 0);
	OK(cuMemcpy(b, (CUdeviceptr)(uintptr_t)(host + 512), 512));
	OK(cuMemcpy((CUdeviceptr)(uintptr_t)back, b, 512));
	CHECK(memcmp(host + 512, back, 512) == 0);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a, host, sizeof(host) + 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a + 1000, host, 25));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(0, host, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD((CUdeviceptr)(uintptr_t)host, host, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(a, b, SIZE_MAX));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(NULL, a, 1));
	OK(cuMemcpyHtoD(a, host, 0));
	/* Host pages that are not there: an error, no signal. */
	void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a, gone, 16));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(gone, a, 16));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync(a, gone, 16, NULL));
	OK(cuMemFree(b));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(a, b, 16));
	OK(cuCtxSynchronize());
	leave(0);
}

static void copies_2d_3d(void)
{
	CUdeviceptr a;
	unsigned char host[64], back[4096];
	CUDA_MEMCPY2D flat;
	CUDA_MEMCPY3D deep;

	enter(0);
	OK(cuMemAlloc(&a, 4096));
	OK(cuMemsetD8(a, 0xee, 4096));
	for (size_t i = 0; i < sizeof(host); i++)
		host[i] = (unsigned char)i;
	memset(&flat, 0, sizeof(flat));
	flat.srcMemoryType = CU_MEMORYTYPE_HOST;
	flat.srcHost = host;
	flat.srcPitch = 16;
	flat.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	flat.dstDevice = a;
	flat.dstPitch = 128;
	flat.dstXInBytes = 4;
	flat.dstY = 1;
	flat.WidthInBytes = 16;
	flat.Height = 4;
	OK(cuMemcpy2D(&flat));
	OK(cuMemcpyDtoH(back, a, 4096));
	for (size_t y = 0; y < 4; y++)
		CHECK(memcmp(back + (y + 1) * 128 + 4, host + y * 16, 16) == 0 && back[(y + 1) * 128 + 3] == 0xee &&
		      back[(y + 1) * 128 + 20] == 0xee);
	flat.dstPitch = 8;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&flat));
	flat.dstPitch = 128;
	flat.dstY = 29;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&flat));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(NULL));
	memset(&deep, 0, sizeof(deep));
	deep.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	deep.srcDevice = a;
	deep.srcPitch = 128;
	deep.srcHeight = 2;
	deep.srcXInBytes = 4;
	deep.srcY = 1;
	deep.dstMemoryType = CU_MEMORYTYPE_HOST;
	deep.dstHost = back;
	deep.dstPitch = 16;
	deep.dstHeight = 1;
	deep.WidthInBytes = 16;
	deep.Height = 1;
	deep.Depth = 2;
	OK(cuMemcpy3D(&deep));
	CHECK(memcmp(back, host, 16) == 0 && memcmp(back + 16, host + 32, 16) == 0);
	deep.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&deep));
	leave(0);
}

static void sets(void)
{
	CUdeviceptr a;
	unsigned back[64];
	unsigned short half[16];

	enter(0);
	OK(cuMemAlloc(&a, sizeof(back)));
	OK(cuMemsetD32(a, 0x01020304, 64));
	OK(cuMemsetD16(a + 8, 0xabcd, 2));
	OK(cuMemsetD8(a + 16, 0x55, 3));
	OK(cuMemcpyDtoH(back, a, sizeof(back)));
	CHECK(back[0] == 0x01020304 && back[2] == 0xabcdabcd && back[4] == 0x01555555 && back[63] == 0x01020304);
	OK(cuMemsetD2D16(a, 32, 0x1111, 2, 3));
	OK(cuMemcpyDtoH(back, a, sizeof(back)));
	CHECK(back[0] == 0x11111111 && back[8] == 0x11111111 && back[16] == 0x11111111 && back[24] == 0x01020304 &&
	      back[1] == 0x01020304);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a + 2, 0, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a, 0, 65));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8((CUdeviceptr)(uintptr_t)half, 0, 4));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(a, 4, 0, 8, 2));
	OK(cuMemsetD8(a, 0, 0));
	leave(0);
}

static void pinned_and_registered(void)
{
	void *host = NULL;
	static char mine[8192];
	CUdeviceptr device = 0;
	unsigned flags = 0, type = 0;

	enter(0);
	OK(cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_PORTABLE));
	OK(cuMemHostGetDevicePointer(&device, host, 0));
	CHECK(device == (CUdeviceptr)(uintptr_t)host);
	OK(cuMemHostGetFlags(&flags, host));
	CHECK((flags & CU_MEMHOSTALLOC_PORTABLE) != 0);
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
	CHECK(type == CU_MEMORYTYPE_HOST);
	OK(cuMemsetD8(device, 7, 4096));
	CHECK(((char *)host)[4095] == 7);
	OK(cuMemFreeHost(host));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
	OK(cuMemHostRegister(mine, sizeof(mine), 0));
	STATUS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(mine + 100, 16, 0));
	OK(cuMemHostUnregister(mine));
	STATUS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(mine));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(NULL, 16, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister((void *)(uintptr_t)0x10000, 16, 0));
	leave(0);
}

static void pools(void)
{
	CUdeviceptr a = 0, b = 0, c = 0;
	CUmemoryPool pool = NULL, default_pool = NULL;
	CUstream s, t;
	CUmemPoolProps props;
	cuuint64_t used = 1;

	enter(0);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cuMemAllocAsync(&a, 4096, s));
	OK(cuMemsetD8Async(a, 1, 4096, s));
	OK(cuMemFreeAsync(a, s));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(a, s));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8Async(a, 1, 4096, s));
	OK(cuMemAllocAsync(&b, 4096, s));
	CHECK(a == b);
	OK(cuMemFreeAsync(b, s));
	OK(cuMemAllocAsync(&c, 4096, t));
	CHECK(c == b);
	OK(cuMemFree(c));
	OK(cuDeviceGetDefaultMemPool(&default_pool, 0));
	OK(cuMemPoolGetAttribute(default_pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	CHECK(used == 0);
	memset(&props, 0, sizeof(props));
	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemAllocFromPoolAsync(&a, 100, pool, s));
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	CHECK(used >= 100);
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ};
	STATUS(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolSetAccess(pool, &access, 1));
	OK(cuMemFreeAsync(a, s));
	OK(cuStreamSynchronize(s));
	OK(cuMemPoolTrimTo(pool, 0));
	OK(cuMemPoolDestroy(pool));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(default_pool));
	leave(0);
}

static void batches(void)
{
	CUdeviceptr a, to[2], from[2];
	size_t sizes[2] = {16, 16}, index = 0;
	CUmemcpyAttributes attributes;
	char host[32] = "0123456789abcdefFEDCBA9876543210", back[32];
	CUstream s;

	enter(0);
	OK(cuMemAlloc(&a, 64));
	OK(cuStreamCreate(&s, 0));
	memset(&attributes, 0, sizeof(attributes));
	attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	to[0] = a;
	to[1] = a + 32;
	from[0] = (CUdeviceptr)(uintptr_t)host;
	from[1] = (CUdeviceptr)(uintptr_t)(host + 16);
	OK(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, s));
	OK(cuStreamSynchronize(s));
	OK(cuMemcpyDtoH(back, a, 16));
	OK(cuMemcpyDtoH(back + 16, a + 32, 16));
	CHECK(memcmp(host, back, 32) == 0);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, NULL));
	leave(0);
}

/* The 32-bit forms are judged like the others; no address of theirs is live. */
static void first_api(void)
{
	CUresult (*set)(unsigned, unsigned char, unsigned) = NULL;
	CUresult (*copy)(unsigned, const void *, unsigned) = NULL;
	unsigned value = 0;

	enter(0);
	OK(cuGetProcAddress("cuMemsetD8", (void **)&set, 2000, 0, NULL));
	OK(cuGetProcAddress("cuMemcpyHtoD", (void **)&copy, 2000, 0, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, set(0x1000, 0, 4));
	STATUS(CUDA_ERROR_INVALID_VALUE, copy(0x1000, &value, 4));
	CHECK(softgpu_calls("cuMemsetD8") == 1 && softgpu_calls("cuMemcpyHtoD") == 1);
	leave(0);
}

static int range(CUdeviceptr address, CUmem_range_attribute attribute)
{
	int value = 77;

	OK(cuMemRangeGetAttribute(&value, sizeof(value), attribute, address, 64));
	return value;
}

static void advice(void)
{
	CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}, host = {.type = CU_MEM_LOCATION_TYPE_HOST};
	CUmemLocation no_device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 9}, places[2] = {device, host};
	CUdeviceptr a, b, plain, both[2];
	size_t sizes[2] = {64, 64}, first[2] = {0, 1};
	int list[3] = {0}, one = 0;

	enter(0);
	OK(cuMemAllocManaged(&a, 4096, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemAllocManaged(&b, 4096, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemAlloc(&plain, 4096));
	CHECK(range(a, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
	CHECK(range(a, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_INVALID);
	OK(cuMemAdvise(a, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
	OK(cuMemAdvise(a, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
	OK(cuMemAdvise(a, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
	OK(cuMemAdvise(a, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, host));
	CHECK(range(a, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 1 && range(b, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
	CHECK(range(a, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == 1);
	CHECK(range(a, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE) == CU_MEM_LOCATION_TYPE_DEVICE);
	OK(cuMemRangeGetAttribute(list, sizeof(list), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, a, 4096));
	CHECK(list[0] == 1 && list[1] == CU_DEVICE_CPU && list[2] == CU_DEVICE_INVALID);
	OK(cuMemAdvise(a, 4096, CU_MEM_ADVISE_UNSET_READ_MOSTLY, device));
	CHECK(range(a, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(plain, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(a, 4097, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(a, 64, (CUmem_advise)99, device));
	STATUS(CUDA_ERROR_INVALID_DEVICE, cuMemAdvise(a, 64, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, no_device));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(&one, 3, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, a, 64));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(list, 12, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, a, 64));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(&one, 4, (CUmem_range_attribute)99, a, 64));
	both[0] = a;
	both[1] = b;
	OK(cuMemPrefetchBatchAsync(both, sizes, 2, places, first, 2, 0, NULL));
	CHECK(range(a, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == 1);
	CHECK(range(b, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == CU_DEVICE_CPU);
	OK(cuMemDiscardBatchAsync(both, sizes, 2, 0, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemDiscardBatchAsync(both, sizes, 2, 1, NULL));
	both[1] = plain;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchBatchAsync(both, sizes, 2, places, first, 2, 0, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemDiscardBatchAsync(both, sizes, 2, 0, NULL));
	OK(cuCtxSynchronize());
	leave(0);
}

MAIN(T(advice), T(first_api), T(allocate), T(copies), T(copies_2d_3d), T(sets), T(pinned_and_registered), T(pools),
     T(batches))
