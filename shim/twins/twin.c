#include "shim/twins/twin.h"

#include <stddef.h>

#include "shim/hook_state.h"
#include "shim/twins/mirror.h"
#include "shim/twins/space.h"
#include "shim/twins/twin_map.h"

#define WALK 65536 /* mappings of memory that was never seen */

static struct twin_hooks hooks;
static _Atomic bool tracking; /* after twins_init(), with twins on */

void twins_init(const struct twin_hooks *given, bool on)
{
	hooks = *given;
	atomic_store_explicit(&tracking, on, memory_order_release);
}

static bool is_tracking(void)
{
	return atomic_load_explicit(&tracking, memory_order_acquire);
}

CUresult twin_last_error(void)
{
	return mirror_last_error();
}

bool twin_of(uint64_t address, uint64_t bytes, uint64_t *ret_twin)
{
	return twin_map_get(address, bytes, TWIN_ORIGINAL, ret_twin);
}

bool twin_is(uint64_t address, uint64_t bytes, uint64_t *ret_original)
{
	uint64_t original;
	if (!twin_map_get(address, bytes, TWIN_ALIAS, &original))
		return false;
	if (ret_original)
		*ret_original = original;
	return true;
}

bool twin_touched(uint64_t start, uint64_t bytes)
{
	return twin_map_touches(start, bytes, TWIN_ALIAS);
}

/* Our driver calls must not disturb a capture, nor come back into hooks. */
static CUstreamCaptureMode go_down(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	hook_thread.depth++;
	if (drv.cuThreadExchangeStreamCaptureMode)
		drv.cuThreadExchangeStreamCaptureMode(&mode);
	return mode;
}

static void come_up(CUstreamCaptureMode mode)
{
	if (drv.cuThreadExchangeStreamCaptureMode)
		drv.cuThreadExchangeStreamCaptureMode(&mode);
	hook_thread.depth--;
}

/* Tells whoever is above what has changed: a twin that is there and was not named, and one that is broken. */
static void tell(struct space *space, bool was_broken, enum twin_answer answer)
{
	if (space->twin && !space->name && hooks.made)
		space->name = hooks.made(space->twin, space->bytes, mirror_device(space));
	if (space->broken && !was_broken && hooks.broken)
		hooks.broken(answer);
}

static void end_twin(struct space *space)
{
	if (space->name && hooks.gone)
		hooks.gone(space->name);
	space->name = 0;
	mirror_end(space);
}

bool twin_is_mapping(uint64_t address)
{
	unsigned type = 0, managed = 0;
	CUcontext context = NULL;
	CUmemoryPool pool = NULL;
	return drv.cuPointerGetAttribute &&
	       drv.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS &&
	       type == CU_MEMORYTYPE_DEVICE &&
	       drv.cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, address) == CUDA_SUCCESS && !context &&
	       drv.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS &&
	       !managed &&
	       drv.cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address) == CUDA_SUCCESS && !pool;
}

static enum twin_answer why_no_handle(uint64_t address)
{
	unsigned type = 0, managed = 0;
	CUmemoryPool pool = NULL;
	if (!drv.cuPointerGetAttribute ||
	    drv.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS)
		return TWIN_NOT_DEVICE;
	if (drv.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS && managed)
		return TWIN_MANAGED;
	if (type != CU_MEMORYTYPE_DEVICE)
		return TWIN_HOST;
	if (drv.cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address) == CUDA_SUCCESS && pool)
		return TWIN_POOL;
	return TWIN_PLAIN;
}

/* The mapping that holds the address, of memory that no hook saw. */
static bool unseen_mapping(uint64_t address, uint64_t *ret_start, uint64_t *ret_bytes)
{
	CUdeviceptr start;
	size_t bytes;
	/* Not ours, and not what a twin of it would be a twin of. */
	if (space_is_known(address) || twin_is(address, 1, NULL) ||
	    drv.cuMemGetAddressRange_v2(&start, &bytes, address) != CUDA_SUCCESS || !twin_is_mapping(address))
		return false;
	*ret_start = start;
	*ret_bytes = bytes;
	return true;
}

/*
 * Mappings that no hook saw, next to each other around the address, become a space, which comes back entered. NULL:
 * none, or no memory.
 */
static struct space *find_space(uint64_t address)
{
	uint64_t low, high, start, bytes;
	if (!unseen_mapping(address, &low, &bytes))
		return NULL;
	high = low + bytes;
	for (size_t i = 0; i < WALK && low && unseen_mapping(low - 1, &start, &bytes); i++)
		low = start;
	for (size_t i = 0; i < WALK && unseen_mapping(high, &start, &bytes); i++)
		high = start + bytes;
	struct space *space = space_add(low, high - low);
	if (!space)
		return NULL;
	space->found = true;
	for (uint64_t at = low; at < high; at = start + bytes) {
		CUdeviceptr base;
		size_t length;
		if (drv.cuMemGetAddressRange_v2(&base, &length, at) != CUDA_SUCCESS ||
		    !space_add_mapping(space, base, length)) {
			space_take_out(space);
			space_free(space);
			return NULL;
		}
		start = base;
		bytes = length;
	}
	return space;
}

/*
 * For what is no space any more: its end passed us by, and a twin of it must not be taken for a twin of what lies there
 * now.
 */
static void end_space(struct space *space)
{
	CUstreamCaptureMode mode = go_down();
	space_take_out(space);
	mirror_drop(space, space->start, space_end(space));
	end_twin(space);
	space_free(space);
	come_up(mode);
}

static enum twin_answer make(uint64_t address, uint64_t bytes, uint64_t *ret_twin)
{
	struct space *space = space_enter(address);
	if (!space)
		space = find_space(address);
	if (!space)
		space = space_enter(address); /* another thread found it first */
	if (!space)
		return twin_is_mapping(address) ? TWIN_NO_ROOM : why_no_handle(address);
	bool fits = bytes <= space_end(space) - address;
	bool was_broken = space->broken;
	enum twin_answer answer = fits ? mirror_complete(space) : TWIN_APART;
	tell(space, was_broken, answer);
	if (answer == TWIN_POOL && !space->twin) /* it never was one */
		end_space(space);
	else
		space_leave(space);
	if (answer != TWIN_OK)
		return answer;
	return twin_of(address, bytes, ret_twin) ? TWIN_OK : TWIN_NOT_DEVICE;
}

enum twin_answer twin_make(uint64_t address, uint64_t bytes, uint64_t *ret_twin)
{
	if (twin_of(address, bytes, ret_twin))
		return TWIN_OK;
	if (!is_tracking())
		return TWIN_OFF;
	if (!mirror_possible())
		return TWIN_NO_DRIVER;
	if (!bytes || address + bytes < address)
		return TWIN_NOT_DEVICE;
	CUstreamCaptureMode mode = go_down();
	enum twin_answer answer = make(address, bytes, ret_twin);
	come_up(mode);
	return answer;
}

void twins_reserved(uint64_t start, uint64_t bytes)
{
	struct space *space;
	if (!is_tracking() || start + bytes < start)
		return;
	while ((space = space_enter_next(start, start + bytes)))
		end_space(space);
	space = space_add(start, bytes); /* not added: it is found by its memory when it is asked for */
	if (space)
		space_leave(space);
}

/* As end_space(), for mappings that overlap a new one. */
static void end_mappings(struct space *space, uint64_t start, uint64_t end)
{
	uint64_t low = start, high = end;
	for (size_t i = 0; i < space->count; i++) {
		uint64_t from = space->mappings[i].start, to = from + space->mappings[i].bytes;
		if (from < end && to > start) {
			low = from < low ? from : low;
			high = to > high ? to : high;
		}
	}
	CUstreamCaptureMode mode = go_down();
	mirror_drop(space, low, high);
	come_up(mode);
	space_remove_mappings(space, low, high);
}

void twins_mapped(uint64_t start, uint64_t bytes)
{
	struct space *space = is_tracking() ? space_enter(start) : NULL;
	if (!space)
		return;
	if (start + bytes <= space_end(space) && !space_add_mapping(space, start, bytes)) {
		end_mappings(space, start, start + bytes);
		space_add_mapping(space, start, bytes); /* no memory: it has no twin, and no lookup finds one */
	}
	space_leave(space);
}

static void follow_access(struct space *space, uint64_t start, uint64_t end)
{
	CUstreamCaptureMode mode = go_down();
	bool was_broken = space->broken;
	tell(space, was_broken, mirror_follow_access(space, start, end));
	come_up(mode);
}

/*
 * One call may be for the mappings of several reservations next to each other: the next one, entered, and *at behind
 * it. NULL: there is none (any more).
 */
static struct space *next_space(uint64_t *at, uint64_t end)
{
	struct space *space = is_tracking() && *at < end ? space_enter_next(*at, end) : NULL;
	if (space)
		*at = space_end(space);
	return space;
}

void twins_access_set(uint64_t start, uint64_t bytes)
{
	uint64_t at = start, end = start + bytes;
	struct space *space;
	while ((space = next_space(&at, end))) {
		if (space->twin)
			follow_access(space, start, end);
		space_leave(space);
	}
}

/* Memory that is found, not seen, has no reservation whose end would be the twin's. */
static void leave_or_end(struct space *space)
{
	if (!space->found || space->count) {
		space_leave(space);
		return;
	}
	end_space(space);
}

void twins_unmap_begins(uint64_t start, uint64_t bytes)
{
	uint64_t at = start, end = start + bytes;
	struct space *space;
	while ((space = next_space(&at, end))) {
		CUstreamCaptureMode mode = go_down();
		mirror_drop(space, start, end);
		come_up(mode);
		space_leave(space);
	}
}

/* The driver did not unmap it after all. */
static void stays(struct space *space, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < space->count; i++)
		if (space->mappings[i].state == MAPPING_LEAVING && space->mappings[i].start >= start &&
		    space->mappings[i].start < end)
			space->mappings[i].state = MAPPING_PLAIN;
}

/* What could not be mirrored may be gone now, or what was dropped is there after all. */
static void mend(struct space *space)
{
	CUstreamCaptureMode mode = go_down();
	bool was_broken = space->broken;
	tell(space, was_broken, mirror_complete(space));
	come_up(mode);
}

void twins_unmap_ends(uint64_t start, uint64_t bytes, bool done)
{
	uint64_t at = start, end = start + bytes;
	struct space *space;
	while ((space = next_space(&at, end))) {
		if (done)
			space_remove_mappings(space, start, end);
		else
			stays(space, start, end);
		if (space->twin && (!done || space->broken))
			mend(space);
		leave_or_end(space);
	}
}

void *twins_unreserve_begins(uint64_t start, uint64_t bytes)
{
	struct space *space = is_tracking() ? space_enter(start) : NULL;
	if (!space)
		return NULL;
	if (space->start != start || space->bytes != bytes || space->count) {
		space_leave(space); /* the driver will refuse it */
		return NULL;
	}
	space_take_out(space);
	return space;
}

void twins_unreserve_ends(void *ending, bool done)
{
	struct space *space = ending;
	if (!space)
		return;
	if (!done) {
		space_put_back(space);
		return;
	}
	CUstreamCaptureMode mode = go_down();
	end_twin(space);
	come_up(mode);
	space_free(space);
}

void twins_postfork_child(void)
{
	atomic_store(&tracking, false);
	spaces_reset();
}
