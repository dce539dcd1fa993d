/* Serving cuMemAlloc: who is served, from where, and what happens to what is freed. */
#include "shim/twins/serve.h"

#include <stdatomic.h>

#include "shim/effects/capture.h"
#include "shim/hook_state.h"
#include "shim/twins/serve_calls.h"
#include "shim/twins/serve_internal.h"
#include "shim/twins/serve_memo.h"

/* Buffer ids of ours have this bit; the driver counts its own from 1. */
#define ID_OURS (UINT64_C(1) << 62)

static _Atomic bool on;
static _Atomic uint64_t ids;

bool serve_on(void)
{
	return atomic_load_explicit(&on, memory_order_relaxed);
}

bool serve_used(void)
{
	return hook_serves();
}

void serve_init(const struct serve_events *events)
{
	bool able = drv.cuMemCreate && drv.cuMemRelease && drv.cuMemAddressReserve && drv.cuMemAddressFree &&
	            drv.cuMemMap && drv.cuMemUnmap && drv.cuMemSetAccess && drv.cuMemGetAllocationGranularity &&
	            drv.cuDeviceGetAttribute && drv.cuCtxGetCurrent && drv.cuCtxGetDevice && drv.cuCtxPushCurrent_v2 &&
	            drv.cuCtxPopCurrent_v2 && drv.cuCtxSynchronize && drv.cuMemGetAddressRange_v2 &&
	            drv.cuThreadExchangeStreamCaptureMode;

	if (events)
		serve_events = *events;
	atomic_store(&on, able);
}

static int attribute(CUdevice device, CUdevice_attribute which)
{
	int value = 0;

	return drv.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

/* What a device's memory is made like. */
static void describe(struct arena *arena)
{
	CUdevice device = arena->device;

	arena->prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
	if (!attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) ||
	    drv.cuMemGetAllocationGranularity(&arena->grain, &arena->prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) !=
	            CUDA_SUCCESS)
		return;
	arena->capable = arena->grain && SLAB_BYTES % arena->grain == 0;
	/* Plain memory can be reached by network cards and by the decompression engine without being asked for it. */
	if (attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED))
		arena->prop.allocFlags.gpuDirectRDMACapable = 1;
	if (attribute(device, CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK))
		arena->prop.allocFlags.usage |= CU_MEM_CREATE_USAGE_HW_DECOMPRESS;
}

/* With the context current. Its arena, made if there is none. */
static bool find_or_make(CUcontext context, struct view *ret_view)
{
	struct arena fresh = {.context = context}, *arena;
	struct block *taken = NULL;

	if (drv.cuCtxGetDevice(&fresh.device) != CUDA_SUCCESS)
		return false;
	lock_acquire(&serve_lock);
	arena = arena_of(context);
	/* A context that ended unseen, a green one, may have left its handle to one of another device. */
	if (arena && arena->device != fresh.device) {
		arena_remove(arena, &taken);
		arena = NULL;
	}
	if (arena)
		arena_view(arena, ret_view);
	lock_release(&serve_lock);
	serve_take_down(taken);
	if (arena)
		return true;
	describe(&fresh);
	lock_acquire(&serve_lock);
	bool there = arena_of(context) || arena_add(&fresh);
	if (there) {
		serve_memo_start();
		arena_view(arena_of(context), ret_view);
	}
	lock_release(&serve_lock);
	return there;
}

bool serve_view(struct view *ret_view)
{
	CUcontext context = NULL;

	return drv.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context && find_or_make(context, ret_view) &&
	       ret_view->capable;
}

bool serve_view_of(CUcontext context, struct view *ret_view)
{
	if (drv.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return false;
	bool found = find_or_make(context, ret_view);
	drv.cuCtxPopCurrent_v2(&(CUcontext){NULL});
	return found;
}

bool serve_unrestricted(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	if (!capture_anywhere())
		return true;
	if (drv.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
		return false;
	CUstreamCaptureMode was = mode;
	drv.cuThreadExchangeStreamCaptureMode(&mode);
	return was == CU_STREAM_CAPTURE_MODE_RELAXED;
}

static CUresult wait_for(CUcontext context)
{
	CUcontext current = NULL;

	if (drv.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context)
		return drv.cuCtxSynchronize();
	CUresult result = drv.cuCtxPushCurrent_v2(context);
	if (result != CUDA_SUCCESS)
		return result;
	result = drv.cuCtxSynchronize();
	drv.cuCtxPopCurrent_v2(&(CUcontext){NULL});
	return result;
}

/* The current context, where it is another one of the same device: it needed no leave to use the memory. */
static void wait_for_neighbour(CUcontext context, CUdevice device)
{
	CUcontext current = NULL;
	CUdevice here;

	if (drv.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current && current != context &&
	    drv.cuCtxGetDevice(&here) == CUDA_SUCCESS && here == device)
		wait_for(current);
}

#define WAIT_PEERS 64 /* contexts; of more the work is not waited for */

CUresult serve_synchronize(CUcontext context, CUdeviceptr own)
{
	CUcontext peers[WAIT_PEERS];
	CUdevice device = 0;
	size_t peer_count = 0;
	uint32_t limit = 0;
	uint64_t serial = 0;
	struct block *taken = NULL;
	struct place place;

	lock_acquire(&serve_lock);
	struct arena *arena = arena_of(context);
	if (arena) {
		serial = arena->serial;
		device = arena->device;
		limit = arena->epoch++;
		if (!arena->epoch)
			arena->epoch = 1;
		for (; peer_count < arena->peer_count && peer_count < WAIT_PEERS; peer_count++)
			peers[peer_count] = arena->peers[peer_count].context;
	}
	lock_release(&serve_lock);
	CUresult result = wait_for(context);
	if (result != CUDA_SUCCESS)
		return result;
	/* Another context's trouble is not this one's. */
	wait_for_neighbour(context, device);
	for (size_t i = 0; i < peer_count; i++)
		wait_for(peers[i]);
	lock_acquire(&serve_lock);
	arena = serial ? arena_numbered(serial) : NULL;
	if (arena && own && piece_retired_at(own, &place) && piece_before(place.piece, limit))
		piece_give(&place, &taken);
	if (arena && arena->waiting)
		arena_reclaim(arena, limit, &taken);
	lock_release(&serve_lock);
	serve_take_down(taken);
	return CUDA_SUCCESS;
}

/* A context of this device in which memory waits for a synchronisation; NULL: none. With the lock. */
static CUcontext waiting_context(CUdevice device, uint64_t after)
{
	for (struct arena *arena = serve_arenas; arena; arena = arena->next)
		if (arena->device == device && arena->waiting && arena->serial < after)
			return arena->context;
	return NULL;
}

/* Gives back to the device what is mapped and not in use. True: that was something. */
static bool trim(CUdevice device)
{
	struct block *taken = NULL;
	bool any = false;
	uint64_t after = UINT64_MAX;

	for (;;) {
		lock_acquire(&serve_lock);
		CUcontext context = capture_anywhere() ? NULL : waiting_context(device, after);
		after = context ? arena_of(context)->serial : 0;
		lock_release(&serve_lock);
		if (!context)
			break;
		any |= serve_synchronize(context, 0) == CUDA_SUCCESS;
	}
	lock_acquire(&serve_lock);
	for (struct arena *arena = serve_arenas; arena; arena = arena->next)
		if (arena->device == device && arena->kept)
			block_remove(arena->kept, &taken);
	lock_release(&serve_lock);
	any |= taken != NULL;
	serve_take_down(taken);
	return any;
}

static CUresult map_or_trim(struct view *view, size_t bytes, CUdeviceptr *ret_base,
                            CUmemGenericAllocationHandle *ret_handle)
{
	CUresult result = serve_map(view, bytes, ret_base, ret_handle);

	if (result == CUDA_ERROR_OUT_OF_MEMORY && trim(view->device))
		result = serve_map(view, bytes, ret_base, ret_handle);
	if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY ||
	    !(view->prop.allocFlags.gpuDirectRDMACapable || view->prop.allocFlags.usage))
		return result;
	/* Perhaps it is what was asked for beyond plain memory that this device refuses. */
	struct view plainer = *view;
	plainer.prop.allocFlags.gpuDirectRDMACapable = 0;
	plainer.prop.allocFlags.usage = 0;
	result = serve_map(&plainer, bytes, ret_base, ret_handle);
	lock_acquire(&serve_lock);
	struct arena *arena = result == CUDA_SUCCESS ? arena_numbered(view->serial) : NULL;
	if (arena)
		arena->prop = plainer.prop;
	lock_release(&serve_lock);
	return result;
}

/*
 * With the lock: the mapping becomes the arena's. The access may be another one by now: *ret_view is what it should be.
 */
static bool add_mapping(struct view *view, const struct block *made, size_t bytes, uint64_t id, struct place *ret_place,
                        bool *ret_access)
{
	struct arena *arena = arena_numbered(view->serial);
	struct piece piece = {.id = id, .bytes = bytes};
	struct block *block = arena ? block_add(arena, made->base, made->bytes, made->handle, made->slab, &piece) : NULL;

	if (!block)
		return false;
	if (made->slab)
		piece_take(arena, bytes, id, ret_place);
	else
		*ret_place = (struct place){block, &block->piece, block->base};
	*ret_access = arena->access_version != view->access_version;
	if (*ret_access) {
		arena_view(arena, view);
		serve_hold(block);
	}
	return true;
}

/* A mapping for this piece alone, or a new slab with the piece in it. */
static bool take_from_driver(struct view *view, size_t bytes, uint64_t id, CUdeviceptr *ret_start)
{
	bool small = bytes <= SLAB_PIECE_MAX, access = false;
	struct block made = {.bytes = small ? SLAB_BYTES : (bytes + view->grain - 1) / view->grain * view->grain};
	struct block *taken = NULL;
	struct place place = {.start = 0};

	if (made.bytes < bytes)
		return false;
	made.slab = small ? slab_create() : NULL;
	if (small && !made.slab)
		return false;
	if (map_or_trim(view, made.bytes, &made.base, &made.handle) != CUDA_SUCCESS) {
		slab_destroy(made.slab);
		return false;
	}
	/* Told before another thread can be given a piece of it. */
	if (serve_events.mapped)
		serve_events.mapped(made.base, made.bytes, made.handle);
	lock_acquire(&serve_lock);
	bool added = add_mapping(view, &made, bytes, id, &place, &access);
	lock_release(&serve_lock);
	if (!added) {
		serve_drop_mapping(&made);
		return false;
	}
	if (access) {
		serve_set_access(place.block, view, -1);
		lock_acquire(&serve_lock);
		serve_let_go(place.block, &taken);
		lock_release(&serve_lock);
		serve_take_down(taken);
	}
	*ret_start = place.start;
	return true;
}

/*
 * Nothing that is kept here tells whether the context is healthy: the driver does, when it is asked for this address.
 */
static bool healthy(CUdeviceptr address)
{
	CUdeviceptr base;
	size_t bytes;

	return drv.cuMemGetAddressRange_v2(&base, &bytes, address) == CUDA_SUCCESS;
}

/* Undoes an allocation that the program never saw. */
static void put_back(CUdeviceptr start)
{
	struct place place;
	struct block *taken = NULL;

	lock_acquire(&serve_lock);
	if (piece_at(start, &place)) {
		piece_mark(&place, place.block->arena->epoch);
		piece_give(&place, &taken);
	}
	lock_release(&serve_lock);
	serve_take_down(taken);
}

bool serve_take(size_t bytes, CUdeviceptr *ret_start)
{
	struct view view;
	struct place place = {.start = 0};
	uint64_t id = ID_OURS | atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed);

	if (!bytes || !serve_on() || !serve_unrestricted() || !serve_view(&view))
		return false;
	lock_acquire(&serve_lock);
	struct arena *arena = bytes <= SLAB_PIECE_MAX ? arena_numbered(view.serial) : NULL;
	bool taken = arena && piece_take(arena, bytes, id, &place);
	lock_release(&serve_lock);
	if (!taken && !take_from_driver(&view, bytes, id, &place.start))
		return false;
	if (!healthy(place.start)) {
		put_back(place.start);
		return false;
	}
	*ret_start = place.start;
	return true;
}

/* Whatever cannot be served is the driver's to answer: its memory, or its error. */
CUresult serve_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	CUdeviceptr start;

	if (!dptr || !serve_take(bytesize, &start))
		return drv.cuMemAlloc_v2(dptr, bytesize);
	*dptr = start;
	return CUDA_SUCCESS;
}

/* Who frees what: enough to undo it. */
struct freed {
	CUcontext context;
	uint64_t id;
};

/* From here on the address means nothing to the program. False: no allocation of ours starts there. */
static bool retire(CUdeviceptr start, struct freed *ret_freed)
{
	struct place place;

	lock_acquire(&serve_lock);
	bool ours = piece_at(start, &place) && place.start == start;
	if (ours) {
		*ret_freed = (struct freed){place.block->arena->context, place.piece->id};
		piece_mark(&place, place.block->arena->epoch);
	}
	lock_release(&serve_lock);
	return ours;
}

static void restore(CUdeviceptr start, const struct freed *freed)
{
	struct place place;

	lock_acquire(&serve_lock);
	if (piece_retired_at(start, &place) && place.piece->id == freed->id)
		piece_mark(&place, 0);
	lock_release(&serve_lock);
}

/* Would the driver free memory now, in spite of a capture? A refusal ends the capture, as it would have. */
static CUresult refusal(void)
{
	CUdeviceptr probe;

	if (serve_unrestricted())
		return CUDA_SUCCESS;
	CUresult result = drv.cuMemAlloc_v2(&probe, 1);
	if (result == CUDA_SUCCESS)
		result = drv.cuMemFree_v2(probe);
	return result == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : result;
}

/*
 * While a capture runs nothing may wait for a context, which would end the capture: the memory is used again after a
 * later free.
 */
CUresult serve_cuMemFree_v2(CUdeviceptr dptr)
{
	struct freed freed;

	if (!serve_used() || !retire(dptr, &freed))
		return drv.cuMemFree_v2(dptr);
	CUresult result = capture_anywhere() ? refusal() : serve_synchronize(freed.context, dptr);
	if (result != CUDA_SUCCESS)
		restore(dptr, &freed);
	return result;
}

/*
 * The driver takes plain memory here too. What is freed in a stream's order is used again when somebody waits for the
 * whole context, at a later free.
 */
static CUresult free_async(CUdeviceptr dptr, CUstream stream, __typeof__(cuMemFreeAsync) *driver, bool per_thread)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	struct freed freed;

	if (!serve_used() || !serve_fact(dptr).live)
		return driver(dptr, stream);
	CUresult result = drv.cuStreamIsCapturing(!stream && per_thread ? CU_STREAM_PER_THREAD : stream, &status);
	if (result != CUDA_SUCCESS)
		return result;
	if (status != CU_STREAM_CAPTURE_STATUS_NONE || !retire(dptr, &freed))
		return driver(dptr, stream);
	return CUDA_SUCCESS;
}

CUresult serve_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	return free_async(dptr, hStream, drv.cuMemFreeAsync, false);
}

CUresult serve_cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
	return free_async(dptr, hStream, drv.cuMemFreeAsync_ptsz, true);
}

/* With the lock. */
static struct serve_fact find_fact(CUdeviceptr address)
{
	struct block *block = block_at(address);
	struct serve_fact fact = {.inside = block != NULL, .slab = block && block->slab};
	struct place place;

	fact.live = fact.inside && piece_at(address, &place);
	if (fact.live) {
		fact.context = place.block->arena->context;
		fact.start = place.start;
		fact.piece = *place.piece;
	}
	return fact;
}

struct serve_fact serve_fact(CUdeviceptr address)
{
	lock_acquire(&serve_lock);
	struct serve_fact fact = find_fact(address);
	lock_release(&serve_lock);
	return fact;
}

/* With the lock: the next write there is answered without it. */
static void keep_fact(CUdeviceptr address, const struct serve_fact *fact)
{
	CUdeviceptr start = fact->start, end = fact->start + fact->piece.bytes;

	if (!fact->inside)
		block_gap(address, &start, &end);
	if (fact->live || !fact->inside)
		serve_memo_keep(address, start, end, fact->slab);
}

bool serve_overrun(CUdeviceptr start, CUdeviceptr end)
{
	if (!serve_used())
		return false;
	lock_acquire(&serve_lock);
	struct serve_fact fact = find_fact(start);
	keep_fact(start, &fact);
	lock_release(&serve_lock);
	return fact.inside && (!fact.live || end - fact.start > fact.piece.bytes);
}

CUcontext serve_context(CUdeviceptr address)
{
	return serve_used() ? serve_fact(address).context : NULL;
}

static void count_block(const struct block *block, struct serve_counts *counts)
{
	uint32_t start = 0;

	counts->blocks++;
	counts->block_bytes += block->bytes;
	if (block->arena->kept == block)
		counts->kept_bytes += block->bytes;
	if (!block->slab && !block->piece.mark)
		counts->piece_bytes += block->piece.bytes;
	counts->pieces += block->pieces;
	for (unsigned left = block->slab ? slab_pieces(block->slab) : 0, at = 0; left; left--, at = start + SLAB_UNIT) {
		const struct piece *piece = slab_next(block->slab, at, &start);

		counts->piece_bytes += piece->mark ? 0 : piece->bytes;
	}
}

struct serve_counts serve_counts(void)
{
	struct serve_counts counts = {0};

	lock_acquire(&serve_lock);
	for (size_t i = 0; i < block_count(); i++)
		count_block(block_number(i), &counts);
	for (const struct arena *arena = serve_arenas; arena; arena = arena->next)
		counts.waiting += arena->waiting;
	lock_release(&serve_lock);
	return counts;
}

void serve_prefork(void)
{
	lock_acquire(&serve_lock);
}

void serve_postfork_parent(void)
{
	lock_release(&serve_lock);
}

void serve_postfork_child(void)
{
	lock_reset_in_child(&serve_lock);
}
