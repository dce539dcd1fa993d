/* Calls that end an address: free, unmap, the end of a context. Recorded, never refused; the protection ends with the memory. */
#include "shim/effects/frees.h"

#include <stdlib.h>

#include "shim/effects/capture.h"
#include "shim/hook_state.h"
#include "shim/kernels/function.h"
#include "shim/kernels/images.h"
#include "shim/twins/serve.h"
#include "shim/twins/twin.h"
#include "shim/verdict/allocation.h"
#include "shim/verdict/fault.h"
#include "shim/verdict/options.h"
#include "shim/verdict/protect.h"
#include "shim/verdict/verify.h"

static void end(struct call *call, CUresult result, bool freed)
{
	if (result == CUDA_SUCCESS) {
		protect_memory_ended(call, freed);
		return;
	}
	for (size_t i = 0; i < call->ended_count; i++)
		atomic_store(&call->ended[i]->ending, false);
	if (call->ended_count)
		hook_stamp_renew();
}

void frees_end(struct call *call, CUresult result)
{
	end(call, result, true);
}

void frees_end_access(struct call *call, CUresult result)
{
	end(call, result, false);
}

/*
 * Afterwards nobody could tell the memory's size, and the driver may give the addresses to another thread before it returns to this one. Without memory for
 * the list the protections go on, and their next check may meet what is not there.
 */
void frees_begin(struct call *call, uint64_t start, uint64_t end, int device)
{
	struct registry *ranges = protect_ranges();
	call->after = call->after ? call->after : frees_end;
	if (!hook_line.armed || !ranges || !registry_in_bounds(ranges, start, end))
		return;
	size_t count = registry_overlaps(ranges, start, end, NULL, 0);
	struct range **all = count ? realloc(call->ended, (call->ended_count + count) * sizeof *all) : NULL;
	if (!all)
		return;
	call->ended = all;
	struct range **found = all + call->ended_count;
	size_t total = registry_overlaps(ranges, start, end, found, count);
	for (size_t i = 0; i < total && i < count; i++) {
		struct range *range = found[i];
		if ((device == ANY_DEVICE || range_device(range) == device || range_device(range) < 0) &&
		    !atomic_exchange(&range->ending, true))
			all[call->ended_count++] = range;
		else
			range_put(range);
	}
	hook_stamp_renew();
}

/* A kernel that waits for the program, with a check behind it, must not stop the program for good. */
#define SETTLE_MS 2000

void frees_settle(const struct call *call)
{
	if (call->ended_count)
		verify_settle(call->ended, call->ended_count, SETTLE_MS);
}

void effect_free(struct call *call, uint64_t address)
{
	CUdeviceptr base;
	size_t bytes;
	if (!address || !hook_line.armed || !drv.cuMemGetAddressRange_v2 || capture_is_running(call->stream))
		return;
	if (allocation_range(&base, &bytes, address) == CUDA_SUCCESS && base == address)
		frees_begin(call, base, base + bytes, ANY_DEVICE);
}

static void unmapped_after(struct call *call, CUresult result)
{
	frees_end(call, result);
	twins_unmap_ends(call->state[0].number, call->state[1].number, result == CUDA_SUCCESS);
}

void effect_unmap(struct call *call, uint64_t address, uint64_t bytes)
{
	if (address + bytes <= address)
		return;
	if (twin_touched(address, bytes)) {
		call->refused = CUDA_ERROR_NOT_PERMITTED;
		return;
	}
	frees_begin(call, address, address + bytes, ANY_DEVICE);
	frees_settle(call);
	/* The twin goes first: it would keep the memory. */
	twins_unmap_begins(address, bytes);
	call->state[0].number = address;
	call->state[1].number = bytes;
	call->after = unmapped_after;
}

static void context_gone(struct call *call, CUcontext context)
{
	capture_context_ended(context);
	images_context_ended(context);
	protect_context_ended(call, context);
	serve_context_ended(context);
	fault_context_ended(context);
}

static void context_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		context_gone(call, call->state[0].pointer);
	else
		protect_context_ending(call->state[0].pointer, false);
}

/* Functions are forgotten before the call: when it returns, another thread may have been given their handles already. */
void effect_context_end(struct call *call, CUcontext context)
{
	function_forget();
	fault_context_ends(context, call->entry->name, options_get()->exit_wait_ms);
	protect_context_ending(context, true);
	call->state[0].pointer = context;
	call->after = context_after;
}

/* The primary context of a device, if it is there. Its handle is only told with a reference, which is given back at once. */
static CUcontext primary_context(CUdevice device)
{
	CUcontext context = NULL;
	unsigned flags;
	int active = 0;
	if (!drv.cuDevicePrimaryCtxGetState || !drv.cuDevicePrimaryCtxRetain || !drv.cuDevicePrimaryCtxRelease_v2 ||
	    drv.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || !active ||
	    drv.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS)
		return NULL;
	drv.cuDevicePrimaryCtxRelease_v2(device);
	return context;
}

/* A release ends the primary context only when it was the last: its state tells afterwards. */
static void primary_after(struct call *call, CUresult result)
{
	unsigned flags;
	int active = 1;
	if (result == CUDA_SUCCESS &&
	    drv.cuDevicePrimaryCtxGetState((CUdevice)call->state[1].number, &flags, &active) == CUDA_SUCCESS && !active)
		context_gone(call, call->state[0].pointer);
}

/* Is there anything that ends with a context? */
static bool anything_kept(void)
{
	return protect_used() || capture_anywhere() || images_any() || serve_used() || fault_noted();
}

void effect_primary_end(struct call *call, CUdevice device)
{
	function_forget();
	CUcontext context = anything_kept() ? primary_context(device) : NULL;
	if (!context) {
		fault_look_everywhere(call->entry->name); /* after a fault the driver tells nobody's handle */
		return;
	}
	fault_context_ends(context, call->entry->name, 0); /* perhaps others hold it: no wait that nobody asked for */
	call->state[0].pointer = context;
	call->state[1].number = (uint64_t)device;
	call->after = primary_after;
}

/* A reset takes all memory and modules away, however many hold the context: it is there again, empty, when it is retained again. */
void effect_primary_reset(struct call *call, CUdevice device)
{
	function_forget();
	CUcontext context = anything_kept() ? primary_context(device) : NULL;
	if (!context) {
		fault_look_everywhere(call->entry->name); /* after a fault the driver tells nobody's handle */
		return;
	}
	fault_context_ends(context, call->entry->name, options_get()->exit_wait_ms);
	protect_context_ending(context, true);
	call->state[0].pointer = context;
	call->after = context_after;
}

/* The device of a context that need not be current. False: not told. */
static bool device_of(CUcontext context, CUdevice *ret_device)
{
	if (!drv.cuCtxPushCurrent_v2 || !drv.cuCtxPopCurrent_v2 || !drv.cuCtxGetDevice ||
	    drv.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return false;
	bool told = drv.cuCtxGetDevice(ret_device) == CUDA_SUCCESS;
	drv.cuCtxPopCurrent_v2(&(CUcontext){NULL});
	return told;
}

static void green_after(struct call *call, CUresult result)
{
	if (result != CUDA_SUCCESS)
		return;
	/* Whether what was loaded there lives on in the primary context is not known: unseen code is never clean. */
	images_context_ended(call->state[2].pointer);
	if (call->state[0].pointer)
		primary_after(call, result);
}

/* A green context holds its device's primary context, which ends with the last that holds it. */
void effect_green_end(struct call *call, CUgreenCtx green)
{
	CUcontext context = NULL;
	CUdevice device;
	function_forget();
	if (!anything_kept() || !drv.cuCtxFromGreenCtx || drv.cuCtxFromGreenCtx(&context, green) != CUDA_SUCCESS)
		return;
	call->state[0].pointer = NULL;
	call->state[2].pointer = context;
	if (device_of(context, &device)) {
		call->state[0].pointer = primary_context(device);
		call->state[1].number = (uint64_t)device;
	}
	call->after = green_after;
}
