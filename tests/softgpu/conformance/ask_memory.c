/* Allocating and freeing: device, pitched, pinned, registered, managed. What pointers say of themselves. */
#include <sys/mman.h>

#include "tests/softgpu/conformance/conformance.h"

static void device(void)
{
	CUdeviceptr one = 0, two = 77, base = 0;
	size_t bytes = 0, free_bytes = 0, total = 0;

	answer_status("info", cuMemGetInfo(&free_bytes, &total));
	answer_status("info_null", cuMemGetInfo(NULL, NULL));
	answer_status("alloc_zero", cuMemAlloc(&two, 0));
	answer_number("alloc_zero_output", (long long)two);
	answer_status("alloc_null", cuMemAlloc(NULL, 16));
	two = 77;
	answer_status("alloc_beyond", cuMemAlloc(&two, total + 1));
	answer_number("alloc_beyond_output", (long long)two);
	answer_status("alloc_huge", cuMemAlloc(&two, SIZE_MAX));
	answer_status("alloc_one", cuMemAlloc(&one, 1));
	answer_yes("alloc_aligned_512", one % 512 == 0);
	answer_status("range_of_one", cuMemGetAddressRange(&base, &bytes, one));
	answer_number("range_of_one_size", (long long)bytes);
	NEED(cuMemAlloc(&two, 1000));
	answer_status("range_inside", cuMemGetAddressRange(&base, &bytes, two + 999));
	answer_yes("range_inside_base", base == two);
	answer_number("range_inside_size", (long long)bytes);
	answer_status("range_past", cuMemGetAddressRange(&base, &bytes, two + 1000));
	answer_status("range_null_outputs", cuMemGetAddressRange(NULL, NULL, two));
	answer_status("range_zero", cuMemGetAddressRange(&base, &bytes, 0));
	answer_status("range_host", cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)(uintptr_t)&base));
	answer_status("free_inside", cuMemFree(two + 4));
	answer_status("free_zero", cuMemFree(0));
	answer_status("free", cuMemFree(two));
	answer_status("free_twice", cuMemFree(two));
	answer_status("free_garbage", cuMemFree(0x1234));
	answer_status("free_host", cuMemFree((CUdeviceptr)(uintptr_t)&base));
	answer_status("range_freed", cuMemGetAddressRange(&base, &bytes, two));
	answer_status("free_one", cuMemFree(one));
	NEED(cuMemAlloc(&one, 4096));
	NEED(cuMemFree(one));
	NEED(cuMemAlloc(&two, 4096));
	answer_yes("freed_address_again", one == two);
}

/* Which memory the current context knows. Asked where there are two devices that reach each other. */
static void of_two_devices(void)
{
	CUdeviceptr own = device_memory(1000), base = 0, other, managed, pooled;
	CUcontext here, there;
	size_t bytes = 0;
	void *host;
	int devices = 0, reaches = 0;

	NEED(cuDeviceGetCount(&devices));
	if (devices < 2 || cuDeviceCanAccessPeer(&reaches, 0, 1) != CUDA_SUCCESS || !reaches)
		return;
	NEED(cuCtxGetCurrent(&here));
	NEED(cuDevicePrimaryCtxRetain(&there, 1));
	NEED(cuCtxSetCurrent(there));
	other = device_memory(1000);
	NEED(cuMemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL));
	NEED(cuMemHostAlloc(&host, 1000, 0));
	NEED(cuMemAllocAsync(&pooled, 1000, NULL));
	NEED(cuCtxSynchronize());
	answer_status("other_range_of_own", cuMemGetAddressRange(&base, &bytes, own));
	NEED(cuCtxSetCurrent(here));
	answer_status("range_of_other", cuMemGetAddressRange(&base, &bytes, other));
	answer_status("range_of_other_managed", cuMemGetAddressRange(&base, &bytes, managed));
	answer_status("range_of_other_host", cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)(uintptr_t)host));
	answer_status("range_of_other_pool", cuMemGetAddressRange(&base, &bytes, pooled));
	NEED(cuCtxEnablePeerAccess(there, 0));
	answer_status("range_of_peer", cuMemGetAddressRange(&base, &bytes, other));
	answer_status("free_of_other", cuMemFree(other));
}

static void pitched(void)
{
	CUdeviceptr memory = 0;
	size_t pitch = 0;

	answer_status("pitch", cuMemAllocPitch(&memory, &pitch, 100, 10, 4));
	answer_number("pitch_100", (long long)pitch);
	answer_status("pitch_513", cuMemAllocPitch(&memory, &pitch, 513, 10, 4));
	answer_number("pitch_513_value", (long long)pitch);
	answer_status("pitch_element_3", cuMemAllocPitch(&memory, &pitch, 100, 10, 3));
	answer_status("pitch_element_16", cuMemAllocPitch(&memory, &pitch, 100, 10, 16));
	answer_status("pitch_no_width", cuMemAllocPitch(&memory, &pitch, 0, 10, 4));
	answer_status("pitch_no_height", cuMemAllocPitch(&memory, &pitch, 100, 0, 4));
	answer_status("pitch_null", cuMemAllocPitch(&memory, NULL, 100, 10, 4));
}

static void pinned(void)
{
	void *host = NULL;
	CUdeviceptr mapped = 0;
	unsigned flags = 99;
	char *mine = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	answer_status("host_zero", cuMemHostAlloc(&host, 0, 0));
	answer_status("host_alloc_zero", cuMemAllocHost(&host, 0));
	answer_status("host_null", cuMemHostAlloc(NULL, 16, 0));
	answer_status("host_bad_flags", cuMemHostAlloc(&host, 16, 0x100));
	answer_status("host", cuMemHostAlloc(&host, 1000, 0));
	answer_status("host_pointer", cuMemHostGetDevicePointer(&mapped, host, 0));
	answer_yes("host_pointer_same", mapped == (CUdeviceptr)(uintptr_t)host);
	answer_status("host_pointer_inside", cuMemHostGetDevicePointer(&mapped, (char *)host + 10, 0));
	answer_status("host_pointer_flags", cuMemHostGetDevicePointer(&mapped, host, 1));
	answer_status("host_pointer_of_stack", cuMemHostGetDevicePointer(&mapped, &flags, 0));
	answer_status("host_flags", cuMemHostGetFlags(&flags, host));
	answer_number("host_flags_value", flags);
	answer_status("host_flags_of_stack", cuMemHostGetFlags(&flags, &flags));
	answer_status("host_free_inside", cuMemFreeHost((char *)host + 8));
	answer_status("host_free_as_device", cuMemFree((CUdeviceptr)(uintptr_t)host));
	answer_status("host_free", cuMemFreeHost(host));
	answer_status("host_free_null", cuMemFreeHost(NULL));
	answer_status("host_free_stack", cuMemFreeHost(&flags));
	NEED(mine == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
	answer_status("register", cuMemHostRegister(mine, 8192, 0));
	answer_status("register_again", cuMemHostRegister(mine, 8192, 0));
	answer_status("register_overlap", cuMemHostRegister(mine + 4096, 8192, 0));
	answer_status("register_flags_got", cuMemHostGetFlags(&flags, mine));
	answer_number("register_flags_value", flags);
	answer_status("register_pointer", cuMemHostGetDevicePointer(&mapped, mine, 0));
	answer_status("register_free", cuMemFreeHost(mine));
	answer_status("unregister_inside", cuMemHostUnregister(mine + 64));
	answer_status("unregister", cuMemHostUnregister(mine));
	answer_status("unregister_again", cuMemHostUnregister(mine));
	answer_status("register_null", cuMemHostRegister(NULL, 16, 0));
	answer_status("register_zero", cuMemHostRegister(mine, 0, 0));
	answer_status("register_bad_flags", cuMemHostRegister(mine, 4096, 0x1000));
	answer_status("register_unmapped", cuMemHostRegister((void *)(uintptr_t)0x10000, 4096, 0));
	answer_status("register_odd", cuMemHostRegister(mine + 100, 200, CU_MEMHOSTREGISTER_PORTABLE));
	answer_status("unregister_odd", cuMemHostUnregister(mine + 100));
	answer_status("register_read_only", cuMemHostRegister(mine, 4096, CU_MEMHOSTREGISTER_READ_ONLY));
	munmap(mine, 16384);
}

static void managed(void)
{
	CUdeviceptr memory = 0;
	int value = 0;

	answer_status("managed_zero", cuMemAllocManaged(&memory, 0, CU_MEM_ATTACH_GLOBAL));
	answer_status("managed_no_flags", cuMemAllocManaged(&memory, 64, 0));
	answer_status("managed_single", cuMemAllocManaged(&memory, 64, CU_MEM_ATTACH_SINGLE));
	answer_status("managed", cuMemAllocManaged(&memory, 4096, CU_MEM_ATTACH_GLOBAL));
	NEED(launch_store(NULL, memory, 42));
	NEED(cuCtxSynchronize());
	answer_number("managed_host_sees", *(volatile int *)(uintptr_t)memory);
	*(volatile int *)(uintptr_t)memory = 43;
	answer_number("managed_device_sees", word_at(memory));
	CUmemLocation gpu = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
	CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST}, nowhere = {.type = (CUmemLocationType)77};
	answer_status("advise_read_mostly", cuMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, gpu));
	answer_status("range_read_mostly",
	              cuMemRangeGetAttribute(&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, 4096));
	answer_number("range_read_mostly_value", value);
	answer_status("range_bad_size",
	              cuMemRangeGetAttribute(&value, 3, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, 4096));
	answer_status("range_unknown",
	              cuMemRangeGetAttribute(&value, sizeof(value), (CUmem_range_attribute)99, memory, 4096));
	answer_status("range_preferred", cuMemRangeGetAttribute(&value, sizeof(value),
	                                                        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory, 4096));
	answer_number("range_preferred_value", value);
	answer_status("advise_preferred", cuMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, gpu));
	answer_status(
		"range_preferred_set",
		cuMemRangeGetAttribute(&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory, 4096));
	answer_number("range_preferred_set_value", value);
	answer_status("advise_unknown", cuMemAdvise(memory, 4096, (CUmem_advise)99, gpu));
	answer_status("advise_nowhere", cuMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, nowhere));
	answer_status("prefetch_device", cuMemPrefetchAsync(memory, 4096, gpu, 0, NULL));
	answer_status("range_prefetched",
	              cuMemRangeGetAttribute(&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
	                                     memory, 4096));
	answer_number("range_prefetched_value", value);
	answer_status("prefetch_host", cuMemPrefetchAsync(memory, 4096, host, 0, NULL));
	answer_status("prefetch_flags", cuMemPrefetchAsync(memory, 4096, gpu, 1, NULL));
	answer_status("prefetch_zero", cuMemPrefetchAsync(memory, 0, gpu, 0, NULL));
	answer_status("prefetch_past", cuMemPrefetchAsync(memory, 1 << 26, gpu, 0, NULL));
	CUdeviceptr plain = device_memory(4096);
	answer_status("advise_device_memory", cuMemAdvise(plain, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, gpu));
	answer_status("prefetch_device_memory", cuMemPrefetchAsync(plain, 4096, gpu, 0, NULL));
	answer_status("synchronize", cuCtxSynchronize());
	answer_status("managed_attach", cuStreamAttachMemAsync(NULL, memory, 0, CU_MEM_ATTACH_GLOBAL));
	answer_status("managed_free", cuMemFree(memory));
}

static const struct topic topics[] = {
	{.name = "device", .ask = device},
	{.name = "pitched", .ask = pitched},
	{.name = "pinned", .ask = pinned},
	{.name = "managed", .ask = managed},
	{.name = "of_two_devices", .ask = of_two_devices, .alone = true},
	{.name = NULL},
};
const struct family memory_family = {.name = "memory", .topics = topics};
