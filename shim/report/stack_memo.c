#include "shim/report/stack_memo.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define PLACES 512

/*
 * Guarded by a sequence number, odd while it is written; every member is atomic, so a torn read is seen, not undefined.
 */
static struct place {
	_Atomic uint32_t sequence;
	_Atomic int count;
	_Atomic unsigned way;
	_Atomic uintptr_t caller, top;
	_Atomic uintptr_t frame[SITE_NATIVE_FRAMES];
	_Atomic uint32_t slot[SITE_NATIVE_FRAMES];
} places[PLACES];

__thread struct own_stack own_stack;

/* Once for each thread. Of the main thread glibc reads /proc/self/maps. */
__attribute__((noinline, cold)) void stack_find_own(void)
{
	pthread_attr_t attributes;
	void *start;
	size_t bytes;
	int saved = errno, cancel;

	own_stack.start = own_stack.end = 1;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (!pthread_getattr_np(pthread_self(), &attributes)) {
		if (!pthread_attr_getstack(&attributes, &start, &bytes)) {
			own_stack.start = (uintptr_t)start;
			own_stack.end = (uintptr_t)start + bytes;
		}
		pthread_attr_destroy(&attributes);
	}
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

static struct place *place_of(uintptr_t caller, uintptr_t top, unsigned way)
{
	return &places[((caller ^ top << 7 ^ way) * 0x9e3779b97f4a7c15u) >> 32 & (PLACES - 1)];
}

static bool read_place(struct place *place, struct stack_shape *ret_shape)
{
	uint32_t sequence = atomic_load_explicit(&place->sequence, memory_order_acquire);
	int count = atomic_load_explicit(&place->count, memory_order_acquire);

	if (sequence & 1 || count <= 0 || count > SITE_NATIVE_FRAMES ||
	    atomic_load_explicit(&place->caller, memory_order_acquire) != ret_shape->caller ||
	    atomic_load_explicit(&place->top, memory_order_acquire) != ret_shape->top ||
	    atomic_load_explicit(&place->way, memory_order_acquire) != ret_shape->way)
		return false;
	for (int i = 0; i < count; i++) {
		ret_shape->frame[i] = atomic_load_explicit(&place->frame[i], memory_order_acquire);
		ret_shape->slot[i] = atomic_load_explicit(&place->slot[i], memory_order_acquire);
	}
	ret_shape->count = count;
	/* All loads before are acquire loads and stay before it. */
	return atomic_load_explicit(&place->sequence, memory_order_relaxed) == sequence;
}

/*
 * From the inside out: where a frame's return address lies follows from the frames inside it, so as long as those are
 * the same, the next slot is part of this stack too, whatever has become of the stack that was kept. Not so with frames
 * of no fixed size: hence the look at where the stack ends.
 */
bool stack_memo_find(uintptr_t caller, uintptr_t top, unsigned way, struct stack_shape *ret_shape)
{
	size_t room = stack_room(top);

	ret_shape->caller = caller;
	ret_shape->top = top;
	ret_shape->way = way;
	if (!room || !read_place(place_of(caller, top, way), ret_shape))
		return false;
	for (int i = 0; i < ret_shape->count; i++)
		if (ret_shape->slot[i] > room - sizeof(uintptr_t) ||
		    stack_word(top + ret_shape->slot[i]) != ret_shape->frame[i])
			return false;
	return true;
}

void stack_memo_keep(const struct stack_shape *shape)
{
	struct place *place = place_of(shape->caller, shape->top, shape->way);
	uint32_t sequence = atomic_load_explicit(&place->sequence, memory_order_relaxed);

	if (!stack_room(shape->top) || sequence & 1 ||
	    !atomic_compare_exchange_strong_explicit(&place->sequence, &sequence, sequence + 1, memory_order_acquire,
	                                             memory_order_relaxed))
		return;
	atomic_store_explicit(&place->caller, shape->caller, memory_order_release);
	atomic_store_explicit(&place->top, shape->top, memory_order_release);
	atomic_store_explicit(&place->way, shape->way, memory_order_release);
	atomic_store_explicit(&place->count, shape->count, memory_order_release);
	for (int i = 0; i < shape->count; i++) {
		atomic_store_explicit(&place->frame[i], shape->frame[i], memory_order_release);
		atomic_store_explicit(&place->slot[i], shape->slot[i], memory_order_release);
	}
	atomic_store_explicit(&place->sequence, sequence + 2, memory_order_release);
}
