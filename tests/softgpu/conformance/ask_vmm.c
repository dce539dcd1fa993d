/* Virtual memory management: reserve, create, map, access, read-only aliases. */
#include "tests/softgpu/conformance/conformance.h"

static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
static const CUmemAccessDesc reading = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                                        .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
static const CUmemAccessDesc writing = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                                        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static size_t grain(void)
{
	size_t bytes = 0;

	NEED(cuMemGetAllocationGranularity(&bytes, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	return bytes;
}

/* A handle mapped writable, and mapped again read-only. */
static CUdeviceptr read_only_alias(CUdeviceptr *ret_writable, CUmemGenericAllocationHandle *ret_handle)
{
	size_t bytes = grain();
	CUdeviceptr alias = 0;

	NEED(cuMemCreate(ret_handle, bytes, &on_device, 0));
	NEED(cuMemAddressReserve(ret_writable, bytes, 0, 0, 0));
	NEED(cuMemMap(*ret_writable, bytes, 0, *ret_handle, 0));
	NEED(cuMemSetAccess(*ret_writable, bytes, &writing, 1));
	NEED(cuMemAddressReserve(&alias, bytes, 0, 0, 0));
	NEED(cuMemMap(alias, bytes, 0, *ret_handle, 0));
	NEED(cuMemSetAccess(alias, bytes, &reading, 1));
	NEED(cuMemsetD8(*ret_writable, 0, bytes));
	return alias;
}

static void reserving(void)
{
	CUdeviceptr address = 0, other = 0;
	size_t bytes = 0;
	CUmemAllocationProp bad = on_device;

	answer_status("granularity", cuMemGetAllocationGranularity(&bytes, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	answer_number("granularity_minimum", (long long)bytes);
	answer_status("granularity_recommended_status",
	              cuMemGetAllocationGranularity(&bytes, &on_device, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
	answer_number("granularity_recommended", (long long)bytes);
	answer_status("granularity_null",
	              cuMemGetAllocationGranularity(NULL, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	answer_status("granularity_option",
	              cuMemGetAllocationGranularity(&bytes, &on_device, (CUmemAllocationGranularity_flags)9));
	bad.type = CU_MEM_ALLOCATION_TYPE_INVALID;
	answer_status("granularity_type", cuMemGetAllocationGranularity(&bytes, &bad, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	size_t size = grain();
	answer_status("reserve", cuMemAddressReserve(&address, size * 2, 0, 0, 0));
	answer_yes("reserve_aligned", address % size == 0);
	answer_status("reserve_zero", cuMemAddressReserve(&other, 0, 0, 0, 0));
	answer_status("reserve_odd", cuMemAddressReserve(&other, 12345, 0, 0, 0));
	answer_status("reserve_null", cuMemAddressReserve(NULL, size, 0, 0, 0));
	answer_status("reserve_align_3", cuMemAddressReserve(&other, size, 3, 0, 0));
	answer_status("reserve_flags", cuMemAddressReserve(&other, size, 0, 0, 7));
	answer_status("reserve_taken_hint", cuMemAddressReserve(&other, size, 0, address, 0));
	answer_yes("reserve_taken_elsewhere", other != address);
	answer_status("reserved_range", cuMemGetAddressRange(&other, &bytes, address));
	answer_status("reserved_set", cuMemsetD8(address, 0, 4));
	answer_status("reserved_free_memory", cuMemFree(address));
	answer_status("unreserve_part", cuMemAddressFree(address, size));
	answer_status("unreserve_inside", cuMemAddressFree(address + size, size));
	answer_status("unreserve", cuMemAddressFree(address, size * 2));
	answer_status("unreserve_again", cuMemAddressFree(address, size * 2));
	answer_status("unreserve_null", cuMemAddressFree(0, size));
}

static void creating(void)
{
	CUmemGenericAllocationHandle handle = 0, same = 0;
	CUmemAllocationProp property = on_device, got;
	size_t size = grain();

	answer_status("create", cuMemCreate(&handle, size, &on_device, 0));
	answer_status("create_odd", cuMemCreate(&same, size + 1, &on_device, 0));
	answer_status("create_zero", cuMemCreate(&same, 0, &on_device, 0));
	answer_status("create_null", cuMemCreate(NULL, size, &on_device, 0));
	answer_status("create_null_property", cuMemCreate(&same, size, NULL, 0));
	answer_status("create_flags", cuMemCreate(&same, size, &on_device, 1));
	answer_status("create_beyond", cuMemCreate(&same, (size_t)1 << 50, &on_device, 0));
	property.location.id = 99;
	answer_status("create_no_device", cuMemCreate(&same, size, &property, 0));
	property = on_device;
	property.type = (CUmemAllocationType)77;
	answer_status("create_type", cuMemCreate(&same, size, &property, 0));
	answer_status("properties", cuMemGetAllocationPropertiesFromHandle(&got, handle));
	answer_number("properties_type", got.type);
	answer_number("properties_location", got.location.type);
	answer_status("release", cuMemRelease(handle));
	answer_status("release_again", cuMemRelease(handle));
}

static void mapping(void)
{
	CUmemGenericAllocationHandle handle, same = 0, other;
	CUdeviceptr address = 0, base = 0;
	size_t size = grain(), bytes = 0;
	unsigned long long flags = 77;

	NEED(cuMemCreate(&handle, size, &on_device, 0));
	NEED(cuMemCreate(&other, size, &on_device, 0));
	NEED(cuMemAddressReserve(&address, size * 2, 0, 0, 0));
	answer_status("map_past_handle", cuMemMap(address, size * 2, 0, handle, 0));
	answer_status("map_half", cuMemMap(address, size / 2, 0, handle, 0));
	answer_status("map_offset", cuMemMap(address, size, size, handle, 0));
	answer_status("map_flags", cuMemMap(address, size, 0, handle, 1));
	answer_status("map_unreserved", cuMemMap(address + size * 64, size, 0, handle, 0));
	answer_status("access_unmapped", cuMemSetAccess(address, size, &writing, 1));
	answer_status("map", cuMemMap(address, size, 0, handle, 0));
	answer_status("map_again", cuMemMap(address, size, 0, other, 0));
	answer_status("set_without_access", cuMemsetD8(address, 0, 4));
	answer_status("get_access_none", cuMemGetAccess(&flags, &writing.location, address));
	answer_number("get_access_none_value", (long long)flags);
	answer_status("access_part", cuMemSetAccess(address, size / 2, &writing, 1));
	answer_status("access_past", cuMemSetAccess(address, size * 2, &writing, 1));
	answer_status("access_no_entries", cuMemSetAccess(address, size, &writing, 0));
	answer_status("access_null", cuMemSetAccess(address, size, NULL, 1));
	CUmemAccessDesc odd = writing;
	odd.flags = (CUmemAccess_flags)2;
	answer_status("access_flags_2", cuMemSetAccess(address, size, &odd, 1));
	odd = writing;
	odd.location.id = 99;
	answer_status("access_no_device", cuMemSetAccess(address, size, &odd, 1));
	answer_status("access", cuMemSetAccess(address, size, &writing, 1));
	answer_status("set_with_access", cuMemsetD8(address, 0, 4));
	answer_status("range", cuMemGetAddressRange(&base, &bytes, address + 5));
	answer_yes("range_base", base == address);
	answer_yes("range_size", bytes == size);
	answer_status("retain", cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)address));
	answer_yes("retain_same", same == handle);
	answer_status("retain_inside", cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)(address + 512)));
	answer_status("retain_unmapped", cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)(address + size)));
	answer_status("free_mapped", cuMemFree(address));
	answer_status("map_second", cuMemMap(address + size, size, 0, other, 0));
	answer_status("access_two_mappings", cuMemSetAccess(address, size * 2, &writing, 1));
	answer_status("set_across_mappings", cuMemsetD8(address + size - 16, 0, 32));
	answer_status("copy_across_mappings", cuMemcpyDtoD(address + size - 16, address, 32));
	/* It is not waited for, and would lose its memory. */
	NEED(cuCtxSynchronize());
	answer_status("unreserve_mapped", cuMemAddressFree(address, size * 2));
	answer_status("unmap_part", cuMemUnmap(address, size / 2));
	answer_status("unmap_two", cuMemUnmap(address, size * 2));
	answer_status("unmap_again", cuMemUnmap(address, size));
	answer_status("release_after_unmap", cuMemRelease(other));
	answer_status("set_unmapped", cuMemsetD8(address, 0, 4));
	CUdeviceptr plain = device_memory(4096);
	answer_status("access_of_alloc", cuMemSetAccess(plain, 4096, &writing, 1));
	answer_status("access_of_alloc_grain", cuMemSetAccess(plain, size, &reading, 1));
	answer_status("retain_of_alloc", cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)plain));
	CUdeviceptr pooled = 0;
	NEED(cuMemAllocAsync(&pooled, 4096, NULL));
	NEED(cuCtxSynchronize());
	answer_status("retain_of_pool", cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)pooled));
	answer_status("retain_of_host", cuMemRetainAllocationHandle(&same, &base));
}

static void alias_reads(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr writable, alias = read_only_alias(&writable, &handle), out = device_memory(4);
	unsigned long long access = 77;
	unsigned flags = 77;
	void *parameters[] = {&out, &alias};

	answer_status("alias_get_access", cuMemGetAccess(&access, &reading.location, alias));
	answer_number("alias_access", (long long)access);
	NEED(cuMemGetAccess(&access, &reading.location, writable));
	answer_number("writable_access", (long long)access);
	NEED(cuMemsetD32(writable, 1234, 1));
	answer_number("alias_sees_writes", word_at(alias));
	answer_status("alias_load", cuLaunchKernel(kernel("load"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	answer_status("alias_load_synchronize", cuCtxSynchronize());
	answer_number("alias_load_value", word_at(out));
	CUpointer_attribute flag = CU_POINTER_ATTRIBUTE_ACCESS_FLAGS;
	answer_status("alias_flags", cuPointerGetAttribute(&flags, flag, alias));
	answer_number("alias_flags_value", flags);
	answer_status("writable_flags", cuPointerGetAttribute(&flags, flag, writable));
	answer_number("writable_flags_value", flags);
}

static void alias_writes(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr writable, alias = read_only_alias(&writable, &handle), source = device_memory(256);
	uint32_t host[64] = {1, 2, 3};
	CUcontext context;
	CUgraph graph;
	CUgraphNode node;
	CUDA_MEMSET_NODE_PARAMS set = {.dst = alias, .elementSize = 4, .width = 1, .height = 1};
	CUDA_MEMCPY2D flat = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                      .srcDevice = source,
	                      .srcPitch = 16,
	                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                      .dstDevice = alias,
	                      .dstPitch = 16,
	                      .WidthInBytes = 16,
	                      .Height = 4};
	CUDA_MEMCPY3D deep = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                      .srcDevice = source,
	                      .srcPitch = 16,
	                      .srcHeight = 4,
	                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                      .dstDevice = alias,
	                      .dstPitch = 16,
	                      .dstHeight = 4,
	                      .WidthInBytes = 16,
	                      .Height = 4,
	                      .Depth = 1};

	NEED(cuCtxGetCurrent(&context));
	answer_status("alias_htod", cuMemcpyHtoD(alias, host, 64));
	answer_status("alias_htod_async", cuMemcpyHtoDAsync(alias, host, 64, NULL));
	answer_status("alias_dtod", cuMemcpyDtoD(alias, source, 64));
	answer_status("alias_dtod_async", cuMemcpyDtoDAsync(alias, source, 64, NULL));
	answer_status("alias_any", cuMemcpy(alias, source, 64));
	answer_status("alias_any_async", cuMemcpyAsync(alias, source, 64, NULL));
	answer_status("alias_peer", cuMemcpyPeer(alias, context, source, context, 64));
	answer_status("alias_2d", cuMemcpy2D(&flat));
	answer_status("alias_2d_unaligned", cuMemcpy2DUnaligned(&flat));
	answer_status("alias_3d", cuMemcpy3D(&deep));
	answer_status("alias_d8", cuMemsetD8(alias, 1, 4));
	answer_status("alias_d32", cuMemsetD32(alias, 1, 1));
	answer_status("alias_d8_async", cuMemsetD8Async(alias, 1, 4, NULL));
	answer_status("alias_d2d8", cuMemsetD2D8(alias, 8, 0, 4, 2));
	NEED(cuGraphCreate(&graph, 0));
	answer_status("alias_set_node", cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
	answer_status("alias_copy_node", cuGraphAddMemcpyNode(&node, graph, NULL, 0, &deep, context));
	answer_status("alias_healthy", cuCtxSynchronize());
	answer_number("alias_untouched", word_at(alias));
	answer_status("alias_access_to_write", cuMemSetAccess(alias, grain(), &writing, 1));
	answer_status("alias_write_allowed", cuMemsetD32(alias, 5, 1));
	answer_number("alias_write_seen", word_at(writable));
	answer_status("writable_to_read", cuMemSetAccess(writable, grain(), &reading, 1));
	answer_status("writable_refused", cuMemsetD32(writable, 6, 1));
	answer_status("release_mapped", cuMemRelease(handle));
	answer_status("write_after_release", cuMemsetD32(alias, 7, 1));
	answer_status("unmap_alias", cuMemUnmap(alias, grain()));
	answer_number("other_mapping_stays", word_at(writable));
}

static void alias_store(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr writable, alias = read_only_alias(&writable, &handle);
	uint32_t word;

	answer_status("alias_store", launch_store(NULL, alias, 5));
	answer_status("alias_store_synchronize", cuCtxSynchronize());
	answer_status("alias_store_sticky", cuMemcpyDtoH(&word, writable, 4));
}

static void alias_atomic(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr writable, alias = read_only_alias(&writable, &handle);
	uint32_t value = 5;
	void *parameters[] = {&alias, &value};

	answer_status("alias_atomic", cuLaunchKernel(kernel("add"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	answer_status("alias_atomic_synchronize", cuCtxSynchronize());
}

static void alias_write_value(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr writable, alias = read_only_alias(&writable, &handle), memory;
	CUstream stream;

	NEED(cuStreamCreate(&stream, 0));
	answer_status("alias_write_value", cuStreamWriteValue32(stream, alias, 5, 0));
	answer_status("alias_write_value_synchronize", cuStreamSynchronize(stream));
	answer_status("alias_write_value_sticky", cuMemAlloc(&memory, 4));
}

static void unmapped_store(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr writable, alias = read_only_alias(&writable, &handle);

	NEED(cuMemUnmap(alias, grain()));
	answer_status("unmapped_store", launch_store(NULL, alias, 5));
	answer_status("unmapped_store_synchronize", cuCtxSynchronize());
}

/* What has another answer for plain memory. */
static void not_as_plain(void)
{
	CUmemGenericAllocationHandle handle;
	CUDA_MEMSET_NODE_PARAMS set = {.elementSize = 4, .width = 4, .height = 1, .value = 9};
	CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .WidthInBytes = 4, .Height = 1};
	CUdeviceptr writable, alias = read_only_alias(&writable, &handle);
	CUcontext here = NULL;
	CUgraph graph;
	CUgraphNode node;
	unsigned one = 1;

	NEED(cuCtxGetCurrent(&here));
	answer_status("set_sync", cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, writable));
	answer_status("set_type", cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, writable));
	answer_status("set_null", cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, writable));
	NEED(cuGraphCreate(&graph, 0));
	set.dst = writable;
	answer_status("set_node_no_context", cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, NULL));
	NEED(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, here));
	answer_status("set_node_parameters", cuGraphMemsetNodeSetParams(node, &set));
	NEED(cuMemsetD32(writable, 5, 8));
	copy.srcDevice = writable;
	copy.dstDevice = writable + 64;
	copy.dstMemoryType = (CUmemorytype)9;
	answer_status("2d_type_unknown", cuMemcpy2D(&copy));
	answer_number("2d_type_unknown_value", word_at(writable + 64));
	copy.dstDevice = alias + 64;
	answer_status("2d_type_unknown_read_only", cuMemcpy2D(&copy));
	copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.dstDevice = writable + 64;
	copy.srcMemoryType = (CUmemorytype)9;
	answer_status("2d_from_unknown", cuMemcpy2D(&copy));
}

static void answer_access(const char *question, const CUmemLocation *location, CUdeviceptr address)
{
	unsigned long long access = 77;
	char value[64];

	answer_status(question, cuMemGetAccess(&access, location, address));
	snprintf(value, sizeof value, "%s_value", question);
	answer_number(value, (long long)access);
}

/* What is said of memory that cuMemMap did not map. What is gone is asked about last: it may end the process. */
static void access_of_plain(void)
{
	CUdeviceptr small = device_memory(1000), large = device_memory((size_t)3 << 20), pooled = 0;
	CUmemLocation here = reading.location, host = {.type = CU_MEM_LOCATION_TYPE_HOST, .id = 0},
		      none = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 99};
	unsigned long long access;

	answer_access("plain_access", &here, small);
	answer_access("plain_access_inside", &here, small + 500);
	answer_access("plain_access_past", &here, small + 1000);
	answer_access("plain_access_large", &here, large);
	answer_access("plain_access_large_inside", &here, large + ((size_t)2 << 20) + 5);
	answer_access("plain_access_host", &host, small);
	answer_access("plain_access_no_device", &none, small);
	answer_status("plain_access_null", cuMemGetAccess(NULL, &here, small));
	answer_status("plain_access_nowhere", cuMemGetAccess(&access, NULL, small));
	NEED(cuMemAllocAsync(&pooled, 4096, NULL));
	NEED(cuCtxSynchronize());
	answer_access("plain_access_of_pool", &here, pooled);
	answer_access("plain_access_of_host", &here, (CUdeviceptr)(uintptr_t)&access);
	NEED(cuMemFree(small));
	NEED(cuMemFree(large));
	answer_access("plain_access_freed", &here, small);
	answer_access("plain_access_large_freed", &here, large);
}

/* Access is for each device. Asked where there are two that reach each other. */
static void two_devices(void)
{
	CUmemGenericAllocationHandle handle;
	CUmemAccessDesc other = reading;
	CUdeviceptr writable, alias = read_only_alias(&writable, &handle), plain = device_memory(4096);
	CUcontext here, there;
	unsigned long long access = 77;
	unsigned flags = 77;
	int devices = 0, reaches = 0;

	NEED(cuDeviceGetCount(&devices));
	if (devices < 2 || cuDeviceCanAccessPeer(&reaches, 1, 0) != CUDA_SUCCESS || !reaches)
		return;
	other.location.id = 1;
	answer_status("other_get_access", cuMemGetAccess(&access, &other.location, writable));
	answer_number("other_access_at_first", (long long)access);
	NEED(cuCtxGetCurrent(&here));
	NEED(cuDevicePrimaryCtxRetain(&there, 1));
	NEED(cuCtxSetCurrent(there));
	answer_status("other_set_without_access", cuMemsetD32(writable, 1, 1));
	answer_status("other_copy_without_access", cuMemcpyDtoH(&flags, writable, 4));
	answer_status("other_flags_without_access",
	              cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, writable));
	answer_number("other_flags_without_access_value", flags);
	answer_status("other_give_read", cuMemSetAccess(writable, grain(), &other, 1));
	NEED(cuMemGetAccess(&access, &other.location, writable));
	answer_number("other_access_now", (long long)access);
	NEED(cuMemGetAccess(&access, &writing.location, writable));
	answer_number("own_access_stays", (long long)access);
	NEED(cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, writable));
	answer_number("other_flags_value", flags);
	answer_status("other_set_reading", cuMemsetD32(writable, 1, 1));
	answer_status("other_copy_reading", cuMemcpyDtoH(&flags, writable, 4));
	other.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	answer_status("other_give_write", cuMemSetAccess(alias, grain(), &other, 1));
	answer_status("other_set_of_reader", cuMemsetD32(alias, 6, 1));
	answer_number("other_set_seen", word_at(alias));
	CUdeviceptr base = 0;
	size_t bytes = 0;
	answer_status("other_range_of_mapping", cuMemGetAddressRange(&base, &bytes, alias));
	NEED(cuCtxSetCurrent(here));
	answer_status("own_set_of_reader", cuMemsetD32(alias, 7, 1));
	answer_status("own_peer_copy_of_reader", cuMemcpyPeer(alias, here, alias + 64, here, 16));
	answer_status("own_peer_copy_for_other", cuMemcpyPeer(alias, there, alias + 64, here, 16));
	answer_access("plain_access_other", &other.location, plain);
	NEED(cuCtxSetCurrent(there));
	answer_access("plain_access_asked_by_other", &writing.location, plain);
	NEED(cuCtxEnablePeerAccess(here, 0));
	answer_access("plain_access_peer", &other.location, plain);
}

static const struct topic topics[] = {
	{.name = "reserving", .ask = reserving},
	{.name = "creating", .ask = creating},
	{.name = "mapping", .ask = mapping},
	{.name = "alias_reads", .ask = alias_reads},
	{.name = "alias_writes", .ask = alias_writes},
	{.name = "two_devices", .ask = two_devices, .alone = true},
	{.name = "alias_store", .ask = alias_store, .alone = true},
	{.name = "alias_atomic", .ask = alias_atomic, .alone = true},
	{.name = "alias_write_value", .ask = alias_write_value, .alone = true},
	{.name = "unmapped_store", .ask = unmapped_store, .alone = true},
	{.name = "not_as_plain", .ask = not_as_plain},
	{.name = "access_of_plain", .ask = access_of_plain, .alone = true},
	{.name = NULL},
};
const struct family vmm_family = {.name = "vmm", .topics = topics};
