/* Contexts that reach each other's memory, and contexts that end. */
#include <stdlib.h>

#include "shim/twins/serve_calls.h"
#include "shim/twins/serve_internal.h"

/* The blocks of an arena, held for work without the lock. NULL: no memory. */
static struct block **hold_all(const struct arena *arena, size_t *ret_count)
{
	struct block **held = malloc((block_count() + 1) * sizeof(struct block *));
	size_t count = 0;

	for (size_t i = 0; held && i < block_count(); i++)
		if (block_number(i)->arena == arena) {
			held[count++] = block_number(i);
			serve_hold(block_number(i));
		}
	*ret_count = count;
	return held;
}

static CUresult set_access_of_all(struct block **held, size_t count, const struct view *view, CUdevice revoked)
{
	struct block *taken = NULL;
	CUresult first = CUDA_SUCCESS;

	for (size_t i = 0; i < count; i++) {
		CUresult result = serve_set_access(held[i], view, revoked);

		if (first == CUDA_SUCCESS)
			first = result;
	}
	lock_acquire(&serve_lock);
	for (size_t i = 0; i < count; i++)
		serve_let_go(held[i], &taken);
	lock_release(&serve_lock);
	serve_take_down(taken);
	free(held);
	return first;
}

/* The context comes to reach what `serial`'s arena holds and will hold. */
static CUresult let_in(uint64_t serial, CUcontext context, CUdevice device)
{
	struct block **held = NULL;
	struct view view;
	size_t count = 0;

	lock_acquire(&serve_lock);
	struct arena *arena = arena_numbered(serial);
	bool known = arena && arena_add_peer(arena, context, device);
	if (known) {
		arena_view(arena, &view);
		held = hold_all(arena, &count);
	}
	lock_release(&serve_lock);
	if (!held)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return set_access_of_all(held, count, &view, -1);
}

/* The context no longer reaches it; its device loses access, unless another context there has it. */
static void shut_out(uint64_t serial, CUcontext context, CUdevice device)
{
	struct block **held = NULL;
	struct view view;
	size_t count = 0;

	lock_acquire(&serve_lock);
	struct arena *arena = arena_numbered(serial);
	bool known = arena && arena_remove_peer(arena, context);
	if (known) {
		arena_view(arena, &view);
		for (size_t i = 0; i < view.access_count; i++)
			known &= view.access[i].location.id != device;
	}
	if (known)
		held = hold_all(arena, &count);
	lock_release(&serve_lock);
	/* Without memory for the list the device keeps an access that nobody uses. */
	if (held)
		set_access_of_all(held, count, &view, device);
}

CUresult serve_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	CUresult result = drv.cuCtxEnablePeerAccess(peerContext, Flags);
	CUcontext context = NULL;
	struct view view = {.serial = 0};
	CUdevice device;

	if (result != CUDA_SUCCESS || !serve_on() || drv.cuCtxGetCurrent(&context) != CUDA_SUCCESS ||
	    drv.cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return result;
	result = serve_view_of(peerContext, &view) ? let_in(view.serial, context, device) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		return result;
	/* Half an access would fault in some later kernel. */
	shut_out(view.serial, context, device);
	drv.cuCtxDisablePeerAccess(peerContext);
	return result;
}

CUresult serve_cuCtxDisablePeerAccess(CUcontext peerContext)
{
	CUresult result = drv.cuCtxDisablePeerAccess(peerContext);
	CUcontext context = NULL;
	CUdevice device;

	if (result != CUDA_SUCCESS || !serve_on() || drv.cuCtxGetCurrent(&context) != CUDA_SUCCESS ||
	    drv.cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return result;
	lock_acquire(&serve_lock);
	const struct arena *arena = arena_of(peerContext);
	uint64_t serial = arena ? arena->serial : 0;
	lock_release(&serve_lock);
	shut_out(serial, context, device);
	return result;
}

/* An arena, older than number `before`, that the context reaches as a peer; 0: none. */
static uint64_t reached_by(CUcontext context, uint64_t before, CUdevice *ret_device)
{
	uint64_t serial = 0;

	lock_acquire(&serve_lock);
	for (const struct arena *arena = serve_arenas; arena && !serial; arena = arena->next)
		for (size_t i = 0; i < arena->peer_count && arena->serial < before; i++)
			if (arena->peers[i].context == context) {
				serial = arena->serial;
				*ret_device = arena->peers[i].device;
			}
	lock_release(&serve_lock);
	return serial;
}

void serve_context_ended(CUcontext context)
{
	struct block *taken = NULL;
	CUdevice device = 0;

	if (!serve_on())
		return;
	lock_acquire(&serve_lock);
	struct arena *arena = arena_of(context);
	if (arena)
		arena_remove(arena, &taken);
	lock_release(&serve_lock);
	serve_take_down(taken);
	for (uint64_t serial = UINT64_MAX; (serial = reached_by(context, serial, &device));)
		shut_out(serial, context, device);
}
