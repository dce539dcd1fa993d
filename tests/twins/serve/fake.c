#include "tests/twins/serve/fake.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

#include "shim/effects/capture.h"
#include "shim/hook_state.h"
#include "shim/report/report.h"
#include "shim/twins/serve_blocks.h"
#include "tests/twins/serve/check.h"

enum { GRAIN = 2 << 20, ENTRIES = 4096 };

struct driver drv;
struct hook_line hook_line;

struct entry {
	uint64_t at, bytes; /* 0 bytes: free */
	uint64_t handle;    /* of a mapping, 0: only reserved */
	unsigned access;
	bool told, leaving; /* the events' state */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry entries[ENTRIES];
static struct {
	uint64_t bytes;
	unsigned uses;
} handles[ENTRIES]; /* handle h is number h - 1 */
static struct entry plain[ENTRIES];
static struct fake_state state;
static uint64_t memory = UINT64_MAX, fail_at, fail_step, next_address = UINT64_C(0x7f0000000000);
static uint64_t scattered; /* a seed; 0: not */
static CUresult fail_status, sick;
static bool capable = true;
static _Thread_local unsigned stack[8], depth;

void fake_scatter(uint64_t seed)
{
	scattered = seed;
}

void fake_next(uint64_t address)
{
	next_address = address;
}

bool capture_anywhere(void)
{
	return false;
}

void report_note(const char *format, ...)
{
	(void)format;
}

/* Begins a call: false when it fails. */
static bool enter(CUresult *ret_status)
{
#ifdef SERVE_ONE_THREAD
	CHECK(!pthread_mutex_trylock(&serve_lock.mutex));
	pthread_mutex_unlock(&serve_lock.mutex);
#endif
	pthread_mutex_lock(&lock);
	*ret_status = CUDA_SUCCESS;
	if (++state.calls == fail_at) {
		fail_at = fail_step ? fail_at + fail_step : 0;
		*ret_status = fail_status;
	} else if (sick) {
		*ret_status = sick;
	}
	return *ret_status == CUDA_SUCCESS;
}

static CUresult leave(CUresult status)
{
	pthread_mutex_unlock(&lock);
	return status;
}

static struct entry *entry_at(struct entry *list, uint64_t address)
{
	for (int i = 0; i < ENTRIES; i++)
		if (list[i].bytes && address - list[i].at < list[i].bytes)
			return &list[i];
	return NULL;
}

static bool is_free(uint64_t at, uint64_t bytes)
{
	bool taken = false;
	for (int i = 0; i < ENTRIES; i++) {
		taken |= entries[i].at < at + bytes && at < entries[i].at + entries[i].bytes;
		taken |= plain[i].at < at + bytes && at < plain[i].at + plain[i].bytes;
	}
	return !taken;
}

/* Behind all that there were, or anywhere in a small space. */
static uint64_t new_address(uint64_t bytes)
{
	uint64_t at = next_address, room = (bytes + GRAIN - 1) / GRAIN * GRAIN;
	if (!scattered) {
		next_address += room + GRAIN;
		return at;
	}
	do
		at = FAKE_SPACE + next_random(&scattered) % (FAKE_SPACE_BYTES / GRAIN) * GRAIN;
	while (!is_free(at, room));
	return at;
}

static struct entry *add(struct entry *list, uint64_t bytes)
{
	for (int i = 0; i < ENTRIES; i++)
		if (!list[i].bytes) {
			list[i] = (struct entry){.at = new_address(bytes), .bytes = bytes};
			return &list[i];
		}
	CHECK(!"the fake is full");
	return NULL;
}

static void use_handle(uint64_t handle, int change)
{
	CHECK(handle && handle <= ENTRIES && handles[handle - 1].bytes);
	handles[handle - 1].uses += (unsigned)change;
	if (!handles[handle - 1].uses) {
		state.bytes -= handles[handle - 1].bytes;
		state.handles--;
		handles[handle - 1].bytes = 0;
	}
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                       unsigned long long flags)
{
	CUresult status;
	if (!enter(&status))
		return leave(status);
	CHECK(size % GRAIN == 0 && !flags && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED);
	CHECK(prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && prop->location.id < FAKE_DEVICES);
	if (size > memory - state.bytes || state.bytes > memory)
		return leave(CUDA_ERROR_OUT_OF_MEMORY);
	for (unsigned i = 0; i < ENTRIES; i++)
		if (!handles[i].bytes) {
			handles[i].bytes = size;
			handles[i].uses = 1;
			state.handles++;
			state.bytes += size;
			*handle = i + 1;
			return leave(CUDA_SUCCESS);
		}
	CHECK(!"the fake is full");
	return leave(CUDA_ERROR_OUT_OF_MEMORY);
}

/* Ending calls may fail as well: what they leave then is the test's to know. */
static CUresult release(CUmemGenericAllocationHandle handle)
{
	CUresult status;
	if (!enter(&status))
		return leave(status);
	use_handle(handle, -1);
	return leave(CUDA_SUCCESS);
}

static CUresult reserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	CUresult status;
	(void)alignment;
	if (!enter(&status))
		return leave(status);
	CHECK(size % GRAIN == 0 && !addr && !flags);
	*ptr = add(entries, size)->at;
	state.reservations++;
	return leave(CUDA_SUCCESS);
}

static CUresult unreserve(CUdeviceptr ptr, size_t size)
{
	CUresult status;
	if (!enter(&status))
		return leave(status);
	struct entry *entry = entry_at(entries, ptr);
	CHECK(entry && entry->at == ptr && entry->bytes == size && !entry->leaving);
	if (entry->handle) /* the unmapping before this failed */
		return leave(CUDA_ERROR_INVALID_VALUE);
	entry->bytes = 0;
	state.reservations--;
	return leave(CUDA_SUCCESS);
}

static CUresult map(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                    unsigned long long flags)
{
	CUresult status;
	if (!enter(&status))
		return leave(status);
	struct entry *entry = entry_at(entries, ptr);
	CHECK(entry && entry->at == ptr && entry->bytes == size && !entry->handle && !offset && !flags);
	use_handle(handle, 1);
	entry->handle = handle;
	entry->access = 0;
	state.mappings++;
	return leave(CUDA_SUCCESS);
}

static CUresult unmap(CUdeviceptr ptr, size_t size)
{
	CUresult status;
	if (!enter(&status))
		return leave(status);
	struct entry *entry = entry_at(entries, ptr);
	CHECK(entry && entry->at == ptr && entry->bytes == size && entry->handle);
	CHECK(!entry->told);
	use_handle(entry->handle, -1);
	entry->handle = 0;
	state.mappings--;
	return leave(CUDA_SUCCESS);
}

static CUresult set_access(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	CUresult status;
	if (!enter(&status))
		return leave(status);
	struct entry *entry = entry_at(entries, ptr);
	CHECK(entry && entry->at == ptr && entry->bytes == size && entry->handle && count);
	for (size_t i = 0; i < count; i++) {
		unsigned bit = 1u << desc[i].location.id;
		CHECK(desc[i].location.id >= 0 && desc[i].location.id < FAKE_DEVICES);
		entry->access = desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? entry->access & ~bit
		                                                               : entry->access | bit;
	}
	return leave(CUDA_SUCCESS);
}

static CUresult granularity(size_t *ret, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
	CUresult status;
	(void)prop, (void)option;
	if (!enter(&status))
		return leave(status);
	*ret = GRAIN;
	return leave(CUDA_SUCCESS);
}

static CUresult device_attribute(int *ret, CUdevice_attribute which, CUdevice device)
{
	CUresult status;
	(void)device;
	if (!enter(&status))
		return leave(status);
	*ret = which == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ? capable : 0;
	return leave(CUDA_SUCCESS);
}

static CUresult get_current(CUcontext *ret)
{
	*ret = depth ? fake_context(stack[depth - 1]) : NULL;
	return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *ret)
{
	if (!depth || !stack[depth - 1])
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret = fake_device(stack[depth - 1]);
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
	CUresult status;
	if (!enter(&status))
		return leave(status);
	CHECK(depth < sizeof stack / sizeof *stack);
	stack[depth++] = (unsigned)(uintptr_t)context;
	return leave(CUDA_SUCCESS);
}

static CUresult pop(CUcontext *ret)
{
	CHECK(depth);
	*ret = fake_context(stack[--depth]);
	return CUDA_SUCCESS;
}

static CUresult synchronize(void)
{
	CUresult status;
	if (!enter(&status))
		return leave(status);
	state.synchronized++;
	return leave(CUDA_SUCCESS);
}

static CUresult plain_alloc(CUdeviceptr *ret, size_t bytes)
{
	CUresult status;
	if (ret)
		*ret = 0;
	if (!enter(&status))
		return leave(status);
	if (!ret || !bytes)
		return leave(CUDA_ERROR_INVALID_VALUE);
	if (state.bytes > memory || bytes > memory - state.bytes)
		return leave(CUDA_ERROR_OUT_OF_MEMORY);
	*ret = add(plain, bytes)->at;
	state.plain++;
	state.bytes += bytes;
	return leave(CUDA_SUCCESS);
}

static CUresult plain_free(CUdeviceptr at)
{
	CUresult status;
	if (!enter(&status))
		return leave(status);
	struct entry *entry = entry_at(plain, at);
	if (!entry || entry->at != at)
		return leave(CUDA_ERROR_INVALID_VALUE);
	state.plain--;
	state.bytes -= entry->bytes;
	entry->bytes = 0;
	return leave(CUDA_SUCCESS);
}

static CUresult address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr at)
{
	CUresult status;
	if (!enter(&status))
		return leave(status);
	struct entry *entry = entry_at(entries, at);
	if (!entry)
		entry = entry_at(plain, at);
	if (!entry)
		return leave(CUDA_ERROR_NOT_FOUND);
	*base = entry->at;
	*bytes = entry->bytes;
	return leave(CUDA_SUCCESS);
}

static CUresult change_peer(void)
{
	CUresult status;
	enter(&status);
	return leave(status);
}

static CUresult enable_peer(CUcontext context, unsigned flags)
{
	(void)context, (void)flags;
	return change_peer();
}

static CUresult disable_peer(CUcontext context)
{
	(void)context;
	return change_peer();
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
	(void)stream;
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
	*mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	return CUDA_SUCCESS;
}

static void mapped(CUdeviceptr base, size_t bytes, CUmemGenericAllocationHandle handle)
{
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_at(entries, base);
	CHECK(entry && entry->at == base && entry->bytes == bytes && entry->handle == handle && !entry->told &&
	      entry->access);
	entry->told = true;
	state.told++;
	pthread_mutex_unlock(&lock);
}

static void unmapping(CUdeviceptr base, size_t bytes)
{
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_at(entries, base);
	CHECK(entry && entry->at == base && entry->bytes == bytes && entry->told);
	entry->told = false;
	entry->leaving = true;
	state.told--;
	pthread_mutex_unlock(&lock);
}

static void unmapped(CUdeviceptr base, size_t bytes, bool done)
{
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_at(entries, base);
	CHECK(entry && entry->at == base && entry->bytes == bytes && entry->leaving && done == !entry->handle);
	entry->leaving = false;
	pthread_mutex_unlock(&lock);
}

static void access_changed(CUdeviceptr base, size_t bytes)
{
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_at(entries, base);
	CHECK(entry && entry->at == base && entry->bytes == bytes && entry->told);
	pthread_mutex_unlock(&lock);
}

void fake_start(void)
{
	const struct serve_events events = {
		.mapped = mapped, .unmapping = unmapping, .unmapped = unmapped, .access_changed = access_changed};

	drv = (struct driver){.cuMemCreate = create,
	                      .cuMemRelease = release,
	                      .cuMemAddressReserve = reserve,
	                      .cuMemAddressFree = unreserve,
	                      .cuMemMap = map,
	                      .cuMemUnmap = unmap,
	                      .cuMemSetAccess = set_access,
	                      .cuMemGetAllocationGranularity = granularity,
	                      .cuDeviceGetAttribute = device_attribute,
	                      .cuCtxGetCurrent = get_current,
	                      .cuCtxGetDevice = get_device,
	                      .cuCtxPushCurrent_v2 = push,
	                      .cuCtxPopCurrent_v2 = pop,
	                      .cuCtxSynchronize = synchronize,
	                      .cuMemAlloc_v2 = plain_alloc,
	                      .cuMemFree_v2 = plain_free,
	                      .cuMemGetAddressRange_v2 = address_range,
	                      .cuCtxEnablePeerAccess = enable_peer,
	                      .cuCtxDisablePeerAccess = disable_peer,
	                      .cuStreamIsCapturing = is_capturing,
	                      .cuThreadExchangeStreamCaptureMode = exchange_mode};
	serve_init(&events);
}

struct fake_state fake_state(void)
{
	pthread_mutex_lock(&lock);
	struct fake_state now = state;
	pthread_mutex_unlock(&lock);
	return now;
}

void fake_fail(uint64_t nth, uint64_t step, CUresult status)
{
	pthread_mutex_lock(&lock);
	fail_at = nth ? state.calls + nth : 0;
	fail_step = step;
	fail_status = status;
	pthread_mutex_unlock(&lock);
}

void fake_forget(void)
{
	memset(entries, 0, sizeof entries);
	memset(handles, 0, sizeof handles);
	state.reservations = state.handles = state.mappings = 0;
	state.bytes = 0;
}

void fake_set_memory(uint64_t bytes)
{
	memory = bytes;
}

void fake_set_capable(bool now)
{
	capable = now;
}

void fake_set_sick(CUresult status)
{
	sick = status;
}

void fake_enter(unsigned context)
{
	depth = context ? 1 : 0;
	stack[0] = context;
}

CUcontext fake_context(unsigned context)
{
	return (CUcontext)(uintptr_t)context;
}

unsigned fake_access(CUdeviceptr address)
{
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_at(entries, address);
	unsigned access = entry ? entry->access : 0;
	pthread_mutex_unlock(&lock);
	return access;
}
