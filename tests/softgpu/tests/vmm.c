/* Virtual memory management: one memory at several addresses, who may do what there, and memory of another process. */
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softgpu/tests/check.h"
#include "tests/softgpu/tests/kernels.h"

extern char **environ;

enum { GRAIN = 2 << 20 };

static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

static CUmemAccessDesc of(int device, CUmemAccess_flags flags)
{
	return (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
}

static CUdeviceptr map_at(CUmemGenericAllocationHandle handle, size_t bytes, CUmemAccess_flags flags)
{
	CUmemAccessDesc access = of(0, flags);
	CUdeviceptr address = 0;

	OK(cuMemAddressReserve(&address, bytes, 0, 0, 0));
	OK(cuMemMap(address, bytes, 0, handle, 0));
	OK(cuMemSetAccess(address, bytes, &access, 1));
	return address;
}

static unsigned access_at(int device, CUdeviceptr address)
{
	CUmemLocation place = {CU_MEM_LOCATION_TYPE_DEVICE, device};
	unsigned long long flags = 77;

	OK(cuMemGetAccess(&flags, &place, address));
	return (unsigned)flags;
}

static unsigned word(CUdeviceptr address)
{
	unsigned value = 0;

	OK(cuMemcpyDtoH(&value, address, 4));
	return value;
}

/* By a kernel of the current context; what its end was. */
static CUresult store(CUdeviceptr address, unsigned value)
{
	CUmodule module;
	CUfunction fill;
	unsigned n = 1;
	void *parameters[] = {&address, &value, &n};

	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuModuleGetFunction(&fill, module, "fill"));
	OK(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	return cuCtxSynchronize();
}

static void read_only_alias(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle, again;
	CUdeviceptr a = 0, b = 0;
	size_t grain = 0;
	unsigned flags = 0, back = 0;
	unsigned long long got = 0;
	CUstream s;

	enter(0);
	OK(cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CHECK(grain == 2 << 20);
	OK(cuMemCreate(&handle, grain, &prop, 0));
	OK(cuMemAddressReserve(&a, grain, 0, 0, 0));
	OK(cuMemAddressReserve(&b, grain, 0, 0, 0));
	OK(cuMemMap(a, grain, 0, handle, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemMap(a, grain, 0, handle, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a, 1, 1));
	OK(cuMemSetAccess(a, grain, &access, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(a, grain / 2, &access, 1));
	OK(cuMemMap(b, grain, 0, handle, 0));
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	OK(cuMemSetAccess(b, grain, &access, 1));
	OK(cuMemRelease(handle));
	OK(cuMemsetD32(a + 64, 0x12345678, 1));
	OK(cuMemcpyDtoH(&back, b + 64, 4));
	CHECK(back == 0x12345678);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(b, &back, 4));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(b, a, 4));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(b, 0, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(b, 8, 0, 4, 2));
	OK(cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, b));
	CHECK(flags == 1);
	OK(cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, a));
	CHECK(flags == 3);
	CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
	OK(cuMemGetAccess(&got, &here, b));
	CHECK(got == 1);
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(b + 100)));
	OK(cuMemRelease(again));
	OK(cuCtxSynchronize());
	/* A stream's write value is accepted and faults when it runs. */
	OK(cuStreamCreate(&s, 0));
	OK(cuStreamWriteValue32(s, b, 1, 0));
	STATUS(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(s));
	STATUS(CUDA_ERROR_LAUNCH_FAILED, cuMemAlloc(&a, 4));
	renew(0);
	OK(cuMemcpyDtoH(&back, b + 64, 4));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(b, grain));
	OK(cuMemUnmap(b, grain));
	OK(cuMemAddressFree(b, grain));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&back, b + 64, 4));
	CHECK(back == 0x12345678);
	leave(0);
}

/* Of what cuMemMap did not map only the access is told. */
static void calls_for_plain_memory(void)
{
	CUmemGenericAllocationHandle handle;
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ};
	unsigned long long flags;
	CUdeviceptr a;

	enter(0);
	OK(cuMemAlloc(&a, 2 << 20));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)a));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(a, 2 << 20, &access, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemRelease(0xdead));
	CHECK(access_at(0, a) == 0 && access_at(0, a + (2 << 20) - 1) == 0 && access_at(1, a) == 0);
	OK(cuMemFree(a));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(&flags, &access.location, a));
	leave(0);
}

/* An alias mirrors its original's mappings, one by one and as they come; access is set over all of them at once. */
static void mirror(void)
{
	CUmemGenericAllocationHandle handles[3], found;
	CUmemAccessDesc reading = of(0, CU_MEM_ACCESS_FLAGS_PROT_READ),
			writing = of(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemAllocationProp prop;
	CUdeviceptr segment = 0, alias = 0, base = 0;
	size_t bytes = 0;

	enter(0);
	OK(cuMemAddressReserve(&segment, 4 * GRAIN, 0, 0, 0));
	OK(cuMemAddressReserve(&alias, 4 * GRAIN, 0, 0, 0));
	for (int i = 0; i < 3; i++) {
		OK(cuMemCreate(&handles[i], GRAIN, &on_device, 0));
		OK(cuMemMap(segment + (size_t)i * GRAIN, GRAIN, 0, handles[i], 0));
		OK(cuMemRelease(handles[i]));
	}
	OK(cuMemSetAccess(segment, 3 * GRAIN, &writing, 1));
	for (int i = 0; i < 3; i++) {
		OK(cuMemRetainAllocationHandle(&found, (void *)(uintptr_t)(segment + (size_t)i * GRAIN + 4096)));
		CHECK(found == handles[i]);
		OK(cuMemGetAllocationPropertiesFromHandle(&prop, found));
		CHECK(prop.location.id == 0 && prop.type == CU_MEM_ALLOCATION_TYPE_PINNED);
		OK(cuMemMap(alias + (size_t)i * GRAIN, GRAIN, 0, found, 0));
		OK(cuMemRelease(found));
	}
	OK(cuMemSetAccess(alias, 3 * GRAIN, &reading, 1));
	OK(cuMemGetAddressRange(&base, &bytes, alias + GRAIN + 5));
	CHECK(base == alias + GRAIN && bytes == GRAIN);
	/* Across mappings, and the last byte. */
	OK(cuMemsetD8(segment, 0, 3 * GRAIN));
	OK(cuMemsetD32(segment + GRAIN - 4, 11, 2));
	CHECK(word(alias + GRAIN - 4) == 11 && word(alias + GRAIN) == 11 && word(alias + GRAIN + 4) == 0);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(alias + 3 * GRAIN - 1, 1, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(segment + GRAIN - 1, 1, 2 * GRAIN + 2));
	/* A part in the middle goes away in both; the rest stays, and the same bytes. */
	OK(cuMemUnmap(alias + GRAIN, GRAIN));
	OK(cuMemUnmap(segment + GRAIN, GRAIN));
	STATUS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &bytes, alias + GRAIN));
	CHECK(word(alias + GRAIN - 4) == 11);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(segment + GRAIN, 1, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(alias, 3 * GRAIN));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(alias, 4 * GRAIN));
	OK(cuMemUnmap(alias, GRAIN));
	OK(cuMemUnmap(alias + 2 * GRAIN, GRAIN));
	OK(cuMemUnmap(alias, GRAIN)); /* nothing there: the driver does not mind */
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(alias + 64 * (CUdeviceptr)GRAIN, GRAIN));
	OK(cuMemAddressFree(alias, 4 * GRAIN));
	leave(0);
}

/* What a real driver answers otherwise for mapped memory than for plain one. */
static void not_as_plain(void)
{
	CUmemGenericAllocationHandle handle;
	CUDA_MEMSET_NODE_PARAMS set = {.elementSize = 4, .width = 4, .height = 1, .value = 9};
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .dstMemoryType = (CUmemorytype)9, .WidthInBytes = 4, .Height = 1};
	CUdeviceptr plain;
	CUcontext context = enter(0);
	CUgraph graph;
	CUgraphNode node;
	unsigned one = 1;

	OK(cuMemCreate(&handle, GRAIN, &on_device, 0));
	CUdeviceptr mapped = map_at(handle, GRAIN, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemAlloc(&plain, 64));
	OK(cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, plain));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, plain));
	STATUS(CUDA_ERROR_NOT_SUPPORTED, cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, mapped));
	STATUS(CUDA_ERROR_NOT_SUPPORTED, cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mapped));
	OK(cuGraphCreate(&graph, 0));
	set.dst = plain;
	OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, NULL));
	set.dst = mapped;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, NULL));
	OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
	OK(cuGraphMemsetNodeSetParams(node, &set));
	OK(cuGraphDestroy(graph));
	OK(cuMemsetD32(plain, 5, 1));
	copy.srcDevice = plain;
	copy.dstDevice = plain + 32;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy));
	copy.dstDevice = mapped;
	OK(cuMemcpy2D(&copy));
	CHECK(word(mapped) == 5);
	leave(0);
}

/*
 * A store and an atomic through a read-only mapping end the context; a load does not, and the bytes are as they were.
 */
static void stores_fault(void)
{
	CUmemGenericAllocationHandle handle;

	enter(0);
	OK(cuMemCreate(&handle, GRAIN, &on_device, 0));
	CUdeviceptr a = map_at(handle, GRAIN, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
		    b = map_at(handle, GRAIN, CU_MEM_ACCESS_FLAGS_PROT_READ);
	OK(cuMemsetD32(a, 5, 16));
	OK(store(a + 4, 6));
	CHECK(word(b + 4) == 6);
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, store(b + 8, 7));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemsetD32(a, 0, 1));
	renew(0);
	CHECK(word(a + 8) == 5);
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, store(b + GRAIN - 4, 7));
	renew(0);
	/* Without any access a load faults too; given back, all is well. */
	CUmemAccessDesc none = of(0, CU_MEM_ACCESS_FLAGS_PROT_NONE), writing = of(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemSetAccess(b, GRAIN, &none, 1));
	unsigned value;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&value, b, 4));
	OK(cuMemSetAccess(b, GRAIN, &writing, 1));
	OK(store(b + 8, 9));
	CHECK(word(a + 8) == 9);
	leave(0);
}

/* Each device has an access of its own, and setting one leaves the others. */
static void access_of_devices(void)
{
	CUmemGenericAllocationHandle handle;
	CUmemAccessDesc both[] = {of(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), of(1, CU_MEM_ACCESS_FLAGS_PROT_READ)};
	unsigned flags = 77;

	enter(0);
	OK(cuMemCreate(&handle, GRAIN, &on_device, 0));
	CUdeviceptr a = map_at(handle, GRAIN, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CHECK(access_at(0, a) == 3 && access_at(1, a) == 0);
	OK(cuMemSetAccess(a, GRAIN, both, 2));
	CHECK(access_at(0, a) == 3 && access_at(1, a) == 1);
	OK(store(a, 1));
	enter(1);
	OK(cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, a));
	CHECK(flags == 1);
	CHECK(word(a) == 1);
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, store(a, 2));
	renew(1);
	both[0].flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	both[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	OK(cuMemSetAccess(a, GRAIN, &both[1], 1));
	CHECK(access_at(0, a) == 3 && access_at(1, a) == 3);
	OK(store(a, 3));
	OK(cuMemSetAccess(a, GRAIN, both, 1));
	CHECK(access_at(0, a) == 1 && access_at(1, a) == 3);
	OK(store(a, 4));
	leave(1);
	enter(0);
	CHECK(word(a) == 4);
	OK(cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, a));
	CHECK(flags == 1);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a, 0, 1));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, store(a, 5));
	renew(0);
	/* One entry that is wrong, and nothing changes. */
	both[0].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	both[1].location.id = 99;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(a, GRAIN, both, 2));
	CHECK(access_at(0, a) == 1);
	leave(0);
}

/*
 * A call reaches memory by the access of its own device, not of the one that holds the memory; a copy between peers by
 * those of both.
 */
static void calls_need_access(void)
{
	CUmemGenericAllocationHandle handle;
	CUmemAccessDesc reading = of(1, CU_MEM_ACCESS_FLAGS_PROT_READ),
			writing = of(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), none = of(0, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	CUdeviceptr plain = 0, base = 0;
	CUcontext here, there;
	CUstream other;
	size_t bytes = 0;
	unsigned value = 0;

	enter(0);
	OK(cuCtxGetCurrent(&here));
	OK(cuMemCreate(&handle, GRAIN, &on_device, 0));
	CUdeviceptr a = map_at(handle, GRAIN, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemsetD32(a, 5, 32));
	OK(cuMemAlloc(&plain, 128));
	enter(1);
	OK(cuCtxGetCurrent(&there));
	OK(cuStreamCreate(&other, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&value, a, 4));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a, &value, 4));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a, 1, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(plain, a, 4));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(other, a, 1, 0));
	OK(cuMemcpyPeer(plain, there, a, here, 4));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyPeer(plain, there, a, there, 4));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyPeer(plain, there, a, NULL, 4));
	STATUS(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer(plain, there, a, (CUcontext)&value, 4));
	CHECK(word(plain) == 5);
	OK(cuMemSetAccess(a, GRAIN, &reading, 1));
	CHECK(word(a) == 5);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a, 1, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyPeer(a, there, plain, here, 4));
	OK(cuMemSetAccess(a, GRAIN, &writing, 1));
	OK(cuMemSetAccess(a, GRAIN, &none, 1));
	OK(cuMemsetD32(a, 6, 1));
	CHECK(word(a) == 6);
	OK(cuCtxSetCurrent(here));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&value, a, 4));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a, 7, 1));
	/* A stream's work is that of its context's device. */
	OK(cuMemsetD32Async(a, 8, 1, other));
	OK(cuStreamSynchronize(other));
	STATUS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &bytes, 0));
	OK(cuMemGetAddressRange(&base, &bytes, plain));
	OK(cuCtxSetCurrent(there));
	CHECK(word(a) == 8);
	STATUS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &bytes, plain));
	leave(1);
	OK(cuCtxSetCurrent(here));
	leave(0);
}

/* This program again, as another process: what it is to do with what it is given, and its status. */
static int in_other_process(const char *what, const char *given)
{
	char self[] = "/proc/self/exe", order[16], argument[160];
	char *arguments[] = {self, order, argument, NULL};
	int status = -1;
	pid_t child;

	snprintf(order, sizeof(order), "%s", what);
	snprintf(argument, sizeof(argument), "%s", given);
	OK(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) == 0 ? CUDA_SUCCESS
	                                                                              : CUDA_ERROR_UNKNOWN);
	waitpid(child, &status, 0);
	return status;
}

/* Memory made to be shared goes to another process as a descriptor. */
static void shareable(void)
{
	CUmemAllocationProp prop = on_device;
	CUmemGenericAllocationHandle handle, same = 0, plain;
	CUmemAllocationHandleType by_descriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	unsigned long long allowed = 77;
	size_t before = 0, after = 0, total;
	int fd = -1;
	char number[16];

	enter(0);
	prop.requestedHandleTypes = by_descriptor;
	OK(cuMemGetInfo(&before, &total));
	OK(cuMemCreate(&handle, GRAIN, &prop, 0));
	OK(cuMemGetInfo(&after, &total));
	CHECK(before - after == GRAIN);
	CUdeviceptr a = map_at(handle, GRAIN, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuPointerGetAttribute(&allowed, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, a));
	CHECK(allowed == by_descriptor);
	OK(cuMemExportToShareableHandle(&fd, handle, by_descriptor, 0));
	OK(cuMemsetD32(a, 21, 2));
	/* In this process, too: one more alias. */
	OK(cuMemImportFromShareableHandle(&same, (void *)(intptr_t)fd, by_descriptor));
	CUdeviceptr b = map_at(same, GRAIN, CU_MEM_ACCESS_FLAGS_PROT_READ);
	CHECK(word(b) == 21);
	OK(cuMemRelease(same));
	int kept = dup(fd); /* without close-on-exec */
	snprintf(number, sizeof(number), "%d", kept);
	CHECK(in_other_process("import", number) == 0);
	CHECK(word(b) == 22 && word(a + 4) == 21);
	OK(cuMemCreate(&plain, GRAIN, &on_device, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, plain, by_descriptor, 0));
	STATUS(CUDA_ERROR_UNKNOWN, cuMemImportFromShareableHandle(&same, (void *)(intptr_t)0, by_descriptor));
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	STATUS(CUDA_ERROR_NOT_SUPPORTED, cuMemCreate(&plain, GRAIN, &prop, 0));
	OK(cuMemUnmap(a, GRAIN));
	OK(cuMemUnmap(b, GRAIN));
	OK(cuMemRelease(handle));
	OK(cuMemGetInfo(&after, &total));
	CHECK(before - after == GRAIN); /* the one that is not shared */
	leave(0);
}

/* The other process: reads, writes, and sees what it may not. */
static int imported(const char *number)
{
	CUmemGenericAllocationHandle handle = 0;

	enter(0);
	OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)atoi(number),
	                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	CUdeviceptr a = map_at(handle, GRAIN, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CHECK(word(a) == 21);
	OK(store(a, 22));
	leave(0);
	return failures != 0;
}

/* cuMemAlloc's memory, by a handle of bytes. */
static void legacy_ipc(void)
{
	CUipcMemHandle handle;
	CUdeviceptr a, opened;
	char text[2 * sizeof(handle) + 1];

	enter(0);
	OK(cuMemAlloc(&a, 512)); /* so that the next does not start a page */
	OK(cuMemAlloc(&a, 6000));
	OK(cuMemsetD32(a, 31, 1500));
	OK(cuIpcGetMemHandle(&handle, a));
	STATUS(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(a));
	for (size_t i = 0; i < sizeof(handle); i++)
		snprintf(text + 2 * i, 3, "%02x", (unsigned char)handle.reserved[i]);
	CHECK(in_other_process("open", text) == 0);
	CHECK(word(a) == 32 && word(a + 5996) == 33 && word(a + 4) == 31);
	/* Only what cuMemAlloc gave. */
	CUmemGenericAllocationHandle physical;
	OK(cuMemCreate(&physical, GRAIN, &on_device, 0));
	CUdeviceptr mapped = map_at(physical, GRAIN, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, mapped));
	leave(0);
}

static int opened(const char *text)
{
	CUipcMemHandle handle;
	CUdeviceptr a = 0, again = 0, base = 0;
	size_t bytes = 0;

	enter(0);
	for (size_t i = 0; i < sizeof(handle); i++) {
		unsigned byte = 0;
		sscanf(text + 2 * i, "%2x", &byte);
		handle.reserved[i] = (char)byte;
	}
	OK(cuIpcOpenMemHandle(&a, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	CHECK(a == again);
	OK(cuMemGetAddressRange(&base, &bytes, a + 100));
	CHECK(base == a && bytes == 6000);
	CHECK(word(a) == 31);
	OK(store(a, 32));
	OK(cuMemsetD32(a + 5996, 33, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a + 5996, 33, 2));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFree(a));
	OK(cuIpcCloseMemHandle(a));
	CHECK(word(a) == 32);
	OK(cuIpcCloseMemHandle(a));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(a));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a, 0, 1));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, store(a, 34));
	leave(0);
	return failures != 0;
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		T(read_only_alias),   T(calls_for_plain_memory), T(mirror),    T(not_as_plain), T(stores_fault),
		T(access_of_devices), T(calls_need_access),      T(shareable), T(legacy_ipc)};

	if (argc == 3 && strcmp(argv[1], "import") == 0)
		return imported(argv[2]);
	if (argc == 3 && strcmp(argv[1], "open") == 0)
		return opened(argv[2]);
	return run_tests(tests, sizeof(tests) / sizeof(*tests), argc, argv);
}
