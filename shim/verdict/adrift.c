#include "shim/verdict/adrift.h"

#include <stdatomic.h>
#include <stddef.h>

#include "shim/hook_state.h"

#define ROOM 64
#define ADRIFT (UINT64_C(1) << 63) /* no handle has this bit: they are addresses of the process */

enum { FREE, BUSY, KEPT };

/* Whoever makes it BUSY has the plain members to himself. */
static struct place {
	_Atomic int state;
	_Atomic uint64_t stream;
	CUcontext context;
	CUevent event;
} places[ROOM];

static _Atomic uint64_t kept;

bool adrift_is(uint64_t stream)
{
	return stream & ADRIFT;
}

static bool take(struct place *place, int from)
{
	return atomic_compare_exchange_strong(&place->state, &from, BUSY);
}

static void leave(struct place *place, int state)
{
	atomic_store_explicit(&place->state, state, memory_order_release);
}

static CUresult make_event(CUstream stream, CUevent *ret_event)
{
	CUevent event;
	if (!drv.cuEventCreate || !drv.cuEventRecord || !drv.cuEventQuery || !drv.cuEventDestroy_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
	if (result != CUDA_SUCCESS)
		return result;
	result = drv.cuEventRecord(event, stream);
	if (result != CUDA_SUCCESS)
		drv.cuEventDestroy_v2(event);
	else
		*ret_event = event;
	return result;
}

uint64_t adrift_keep(CUstream stream, CUcontext context)
{
	uint64_t name = ADRIFT | atomic_fetch_add(&kept, 1);
	for (size_t i = 0; stream && i < ROOM; i++) {
		struct place *place = &places[i];
		if (!take(place, FREE))
			continue;
		place->context = context;
		atomic_store_explicit(&place->stream, name, memory_order_relaxed);
		leave(place, make_event(stream, &place->event) == CUDA_SUCCESS ? KEPT : FREE);
		break;
	}
	return name;
}

/* Asks a place that was taken, and leaves it. */
static CUresult ask(struct place *place)
{
	CUcontext popped;
	CUresult result = CUDA_ERROR_NOT_FOUND;
	if (drv.cuCtxPushCurrent_v2(place->context) == CUDA_SUCCESS) {
		result = drv.cuEventQuery(place->event);
		if (result != CUDA_ERROR_NOT_READY)
			drv.cuEventDestroy_v2(place->event);
		drv.cuCtxPopCurrent_v2(&popped);
	}
	leave(place, result == CUDA_ERROR_NOT_READY ? KEPT : FREE);
	return result;
}

CUresult adrift_query(uint64_t stream)
{
	for (size_t i = 0; i < ROOM; i++)
		if (atomic_load_explicit(&places[i].state, memory_order_acquire) != FREE &&
		    atomic_load_explicit(&places[i].stream, memory_order_relaxed) == stream)
			/* Another thread is asking. */
			return take(&places[i], KEPT) ? ask(&places[i]) : CUDA_ERROR_NOT_READY;
	return CUDA_ERROR_NOT_FOUND;
}

void adrift_look(void (*tell)(CUcontext context, uint64_t stream, CUresult result, const char *api), const char *api)
{
	for (size_t i = 0; i < ROOM; i++) {
		if (!take(&places[i], KEPT))
			continue;
		CUcontext context = places[i].context;
		uint64_t stream = atomic_load_explicit(&places[i].stream, memory_order_relaxed);
		CUresult result = ask(&places[i]);
		if (result != CUDA_ERROR_NOT_READY && result != CUDA_ERROR_NOT_FOUND)
			tell(context, stream, result, api);
	}
}

void adrift_context_ended(CUcontext context)
{
	for (size_t i = 0; i < ROOM; i++)
		if (take(&places[i], KEPT))
			leave(&places[i], places[i].context == context ? FREE : KEPT);
}

void adrift_postfork_child(void)
{
	for (size_t i = 0; i < ROOM; i++)
		atomic_store(&places[i].state, FREE);
}
