/* Stream-ordered allocation: pools and the addresses they hand out. */
#include "tests/softgpu/conformance/conformance.h"

static void addresses(void)
{
	CUstream s, t;
	CUdeviceptr one = 0, two = 0, three = 0;

	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	answer_status("alloc", cuMemAllocAsync(&one, 4096, s));
	answer_status("free", cuMemFreeAsync(one, s));
	answer_status("alloc_same_stream", cuMemAllocAsync(&two, 4096, s));
	answer_yes("same_stream_same_address", one == two);
	answer_status("free_same_stream", cuMemFreeAsync(two, s));
	NEED(cuStreamSynchronize(s));
	answer_status("alloc_after_synchronize", cuMemAllocAsync(&three, 4096, s));
	answer_yes("after_synchronize_same_address", one == three);
	answer_status("set_on_own_stream", cuMemsetD8Async(three, 1, 4096, s));
	answer_status("set_on_other_stream", cuMemsetD8Async(three, 1, 4096, t));
	NEED(cuCtxSynchronize());
	answer_status("free_by_cuMemFree", cuMemFree(three));
	answer_status("free_async_of_alloc", cuMemFreeAsync(device_memory(4096), s));
	NEED(cuMemAllocAsync(&one, 4096, NULL));
	answer_status("free_on_other_stream", cuMemFreeAsync(one, s));
	NEED(cuCtxSynchronize());
	answer_status("alloc_zero", cuMemAllocAsync(&one, 0, s));
	answer_status("alloc_null", cuMemAllocAsync(NULL, 4096, s));
	answer_status("alloc_huge", cuMemAllocAsync(&one, (size_t)1 << 50, s));
	answer_status("free_null", cuMemFreeAsync(0, s));
	answer_status("free_garbage", cuMemFreeAsync(0x1234, s));
	NEED(cuMemAllocAsync(&one, 4096, s));
	answer_status("free_inside", cuMemFreeAsync(one + 512, s));
	answer_status("free_once", cuMemFreeAsync(one, s));
	answer_status("free_twice", cuMemFreeAsync(one, s));
	answer_status("set_after_free", cuMemsetD8Async(one, 1, 16, s));
	answer_status("synchronize", cuCtxSynchronize());
}

static void alignments(void)
{
	CUdeviceptr one = 0, two = 0, base = 0;
	size_t bytes = 0;

	NEED(cuMemAllocAsync(&one, 1, NULL));
	NEED(cuMemAllocAsync(&two, 1, NULL));
	answer_yes("aligned_512", one % 512 == 0 && two % 512 == 0);
	answer_status("range", cuMemGetAddressRange(&base, &bytes, one));
	answer_number("range_size", (long long)bytes);
	answer_yes("range_base", base == one);
}

static void pools(void)
{
	CUmemoryPool pool = NULL, standard = NULL, current = NULL;
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                             .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUmemPoolProps bad = properties;
	cuuint64_t value = 77;
	int flag = 77;
	CUdeviceptr memory = 0;
	CUmemoryPool got = NULL;

	answer_status("default", cuDeviceGetDefaultMemPool(&standard, 0));
	answer_status("current", cuDeviceGetMemPool(&current, 0));
	answer_yes("current_is_default", current == standard);
	answer_status("create", cuMemPoolCreate(&pool, &properties));
	answer_status("create_null", cuMemPoolCreate(NULL, &properties));
	bad.location.id = 99;
	answer_status("create_no_device", cuMemPoolCreate(&current, &bad));
	bad = properties;
	bad.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
	answer_status("create_type", cuMemPoolCreate(&current, &bad));
	answer_status("threshold", cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
	answer_number("threshold_value", (long long)value);
	value = UINT64_MAX;
	answer_status("threshold_set", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
	answer_status("follow_events",
	              cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &flag));
	answer_number("follow_events_value", flag);
	answer_status("opportunistic", cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag));
	answer_number("opportunistic_value", flag);
	answer_status("used", cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
	answer_number("used_value", (long long)value);
	answer_status("used_set", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
	value = 1;
	answer_status("used_high_set_one", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
	answer_status("attribute_unknown", cuMemPoolGetAttribute(pool, (CUmemPool_attribute)99, &value));
	answer_status("alloc_from", cuMemAllocFromPoolAsync(&memory, 1000, pool, NULL));
	NEED(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
	answer_number("used_after_1000", (long long)value);
	NEED(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
	answer_number("reserved_after_1000", (long long)value);
	answer_status("pool_of", cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
	answer_yes("pool_of_is", got == pool);
	CUmemAccessDesc access = {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
	CUmemAccess_flags flags = (CUmemAccess_flags)77;
	answer_status("access", cuMemPoolGetAccess(&flags, pool, &properties.location));
	answer_number("access_value", flags);
	answer_status("access_read", cuMemPoolSetAccess(pool, &access, 1));
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	answer_status("access_none", cuMemPoolSetAccess(pool, &access, 1));
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	answer_status("access_write", cuMemPoolSetAccess(pool, &access, 1));
	access.location.id = 99;
	answer_status("access_no_device", cuMemPoolSetAccess(pool, &access, 1));
	answer_status("trim", cuMemPoolTrimTo(pool, 0));
	answer_status("set_current", cuDeviceSetMemPool(0, pool));
	answer_status("set_current_back", cuDeviceSetMemPool(0, standard));
	answer_status("destroy_default", cuMemPoolDestroy(standard));
	answer_status("destroy_in_use", cuMemPoolDestroy(pool));
	answer_status("free_of_destroyed", cuMemFreeAsync(memory, NULL));
	answer_status("synchronize_pools", cuCtxSynchronize());
}

static const struct topic topics[] = {
	{.name = "addresses", .ask = addresses},
	{.name = "alignments", .ask = alignments},
	{.name = "pools", .ask = pools, .alone = true},
	{.name = NULL},
};
const struct family pool_family = {.name = "pool", .topics = topics};
