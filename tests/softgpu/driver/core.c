#include "tests/softgpu/driver/core.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/arena.h"
#include "tests/softgpu/driver/context.h"
#include "tests/softgpu/driver/probe.h"

__thread struct sg_thread sg_thread;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static _Atomic bool initialised;
/* Set in the child of a fork, for ever: the driver's threads and memory stayed with the parent. */
static _Atomic bool forked;

void sg_lock(void)
{
	pthread_mutex_lock(&lock);
}

void sg_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void sg_wait_changed(void)
{
	pthread_cond_wait(&changed, &lock);
}

void sg_changed(void)
{
	pthread_cond_broadcast(&changed);
}

uint64_t sg_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	if (text == NULL || *text < '0' || *text > '9')
		return otherwise;
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	return errno != 0 || *end != '\0' ? otherwise : value;
}

static void after_fork_in_child(void)
{
	if (atomic_load(&initialised))
		atomic_store(&forked, true);
}

CUresult sg_initialise(void)
{
	CUresult status = CUDA_SUCCESS;

	if (atomic_load(&forked))
		return CUDA_ERROR_NOT_INITIALIZED;
	sg_lock();
	if (!atomic_load(&initialised)) {
		status = sg_arena_create();
		if (status == CUDA_SUCCESS && pthread_atfork(NULL, NULL, after_fork_in_child) != 0)
			status = CUDA_ERROR_OUT_OF_MEMORY;
		if (status == CUDA_SUCCESS)
			atomic_store(&initialised, true);
	}
	sg_unlock();
	return status;
}

CUresult sg_enter(size_t index, enum sg_needs needs)
{
	CUresult status = sg_probe_call(index);

	if (status != CUDA_SUCCESS)
		return status;
	if (needs == SG_NEEDS_NOTHING)
		return CUDA_SUCCESS;
	if (!atomic_load_explicit(&initialised, memory_order_acquire) ||
	    atomic_load_explicit(&forked, memory_order_relaxed))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (sg_thread.in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	return needs == SG_NEEDS_INIT ? CUDA_SUCCESS : sg_context_health(needs == SG_NEEDS_CONTEXT);
}

/* The handle table: open addressing, linear probing, no tombstones (removal shifts the cluster back). */
struct slot {
	const void *handle;
	enum sg_kind kind;
};

static struct slot *slots;
static size_t slot_count, slots_used;

static size_t home_of(const void *handle)
{
	return (size_t)((uint64_t)(uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (slot_count - 1);
}

static size_t find(const void *handle)
{
	size_t at = home_of(handle);

	while (slots[at].handle != NULL && slots[at].handle != handle)
		at = (at + 1) & (slot_count - 1);
	return at;
}

static bool grow(void)
{
	struct slot *old = slots;
	size_t old_count = slot_count;
	struct slot *fresh = calloc(old_count == 0 ? 256 : old_count * 2, sizeof(*fresh));

	if (fresh == NULL)
		return false;
	slots = fresh;
	slot_count = old_count == 0 ? 256 : old_count * 2;
	for (size_t i = 0; i < old_count; i++)
		if (old[i].handle != NULL)
			slots[find(old[i].handle)] = old[i];
	free(old);
	return true;
}

bool sg_add(const void *handle, enum sg_kind kind)
{
	if (slots_used * 2 >= slot_count && !grow())
		return false;
	slots[find(handle)] = (struct slot){handle, kind};
	slots_used++;
	return true;
}

void sg_remove(const void *handle)
{
	if (slot_count == 0 || handle == NULL)
		return;
	size_t hole = find(handle);
	if (slots[hole].handle == NULL)
		return;
	slots[hole] = (struct slot){NULL, SG_NONE};
	slots_used--;
	for (size_t at = (hole + 1) & (slot_count - 1); slots[at].handle != NULL; at = (at + 1) & (slot_count - 1)) {
		struct slot moved = slots[at];
		slots[at] = (struct slot){NULL, SG_NONE};
		slots[find(moved.handle)] = moved;
	}
}

bool sg_is(const void *handle, enum sg_kind kind)
{
	return handle != NULL && slot_count != 0 && slots[find(handle)].handle != NULL &&
	       slots[find(handle)].kind == kind;
}

void sg_each(enum sg_kind kind, void (*visit)(void *handle, void *data), void *data)
{
	for (size_t i = 0; i < slot_count; i++)
		if (slots[i].handle != NULL && slots[i].kind == kind)
			visit((void *)(uintptr_t)slots[i].handle, data);
}
