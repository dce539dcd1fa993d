#include "shim/verdict/view.h"

#include "shim/cuconst.h"
#include "shim/report/report.h"
#include "shim/twins/serve.h"
#include "shim/twins/twin.h"
#include "shim/verdict/allocation.h"
#include "shim/verdict/options.h"
#include "shim/verdict/protect.h"

#define API __attribute__((visibility("default")))

static cuconst_result refused(enum twin_answer answer)
{
	switch (answer) {
	case TWIN_OK:
		return CUCONST_OK;
	case TWIN_OFF:
	case TWIN_NO_DRIVER:
		return CUCONST_ERROR_TWINS_OFF;
	case TWIN_PLAIN:
		return CUCONST_ERROR_PLAIN_MEMORY;
	case TWIN_POOL:
		return CUCONST_ERROR_POOL_MEMORY;
	case TWIN_MANAGED:
		return CUCONST_ERROR_MANAGED_MEMORY;
	case TWIN_HOST:
		return CUCONST_ERROR_HOST_MEMORY;
	case TWIN_APART:
		return CUCONST_ERROR_OUT_OF_RANGE;
	case TWIN_NO_ROOM:
		return protect_cuda_failed(twin_last_error(), CUCONST_ERROR_NO_ROOM);
	case TWIN_REFUSED:
		return protect_cuda_failed(twin_last_error(), CUCONST_ERROR_CUDA);
	case TWIN_NOT_DEVICE:
		break;
	}
	return CUCONST_ERROR_NOT_DEVICE;
}

/* The first view of its memory: the driver is asked what it is, and a context made current for the mapping. */
static cuconst_result first_view(uint64_t ptr, size_t bytes, uint64_t *ret_view)
{
	struct allocation allocation;
	CUcontext context;
	CUresult result;
	bool pushed = false;
	cuconst_result answer = allocation_of(ptr, ptr + bytes, &allocation, &result);
	if (answer == CUCONST_ERROR_NOT_DEVICE) /* host memory, for one: the reason is told there */
		return refused(twin_make(ptr, bytes, ret_view));
	if (answer != CUCONST_OK)
		return protect_cuda_failed(result, answer);
	result = protect_enter_context(allocation.device, allocation.context, &context, &pushed);
	if (result != CUDA_SUCCESS)
		return protect_cuda_failed(result, CUCONST_ERROR_CUDA);
	answer = refused(twin_make(ptr, bytes, ret_view));
	if (pushed)
		drv.cuCtxPopCurrent_v2(&(CUcontext){NULL});
	return answer;
}

/* Allocations that share a mapping: the twin goes on where they end, and where one was freed. */
static bool overruns(uint64_t ptr, size_t bytes)
{
	return serve_used() && serve_overrun(ptr, ptr + bytes);
}

/* The view of memory that has a twin; 0: it has none. The view of a view is itself. */
static uint64_t known_view(uint64_t ptr, size_t bytes)
{
	uint64_t twin;
	if (twin_of(ptr, bytes, &twin))
		return twin;
	return twin_is(ptr, bytes, NULL) ? ptr : 0;
}

API cuconst_result cuconst_view(uint64_t ptr, size_t bytes, uint64_t *ret_view)
{
	if (!ptr || !bytes || ptr + bytes < ptr || !ret_view)
		return CUCONST_ERROR_INVALID_VALUE;
	if (!protect_active())
		return CUCONST_ERROR_NOT_ACTIVE;
	if (overruns(ptr, bytes))
		return overruns(ptr, 1) ? CUCONST_ERROR_NOT_DEVICE : CUCONST_ERROR_OUT_OF_RANGE;
	uint64_t known = known_view(ptr, bytes);
	if (!known)
		return first_view(ptr, bytes, ret_view);
	*ret_view = known;
	return CUCONST_OK;
}

API uint64_t cuconst_view_known(uint64_t ptr, size_t bytes)
{
	if (!ptr || !bytes || ptr + bytes < ptr || !protect_active() || overruns(ptr, bytes))
		return 0;
	return known_view(ptr, bytes);
}

void view_prepare_swap(uint64_t start, uint64_t bytes)
{
	uint64_t twin;
	enum twin_answer answer = twin_make(start, bytes, &twin);
	if (answer == TWIN_NO_ROOM || answer == TWIN_REFUSED)
		report_note("no read-only twin of some memory (CUDA error %d): its kernels are verified instead",
		            (int)twin_last_error());
}

static void broken(enum twin_answer why)
{
	report_note("memory that was added to an address range has no read-only twin (CUDA error %d): new views there fail, "
	            "kernels are verified instead",
	            why == TWIN_REFUSED || why == TWIN_NO_ROOM ? (int)twin_last_error() : 0);
}

/* What serving maps passes the hooks by: each block is a reservation with one mapping. */
static void served(CUdeviceptr base, size_t bytes, CUmemGenericAllocationHandle handle)
{
	twins_reserved(base, bytes);
	twins_mapped(base, bytes);
}

static void served_ends(CUdeviceptr base, size_t bytes)
{
	twins_unmap_begins(base, bytes);
}

static void served_ended(CUdeviceptr base, size_t bytes, bool done)
{
	twins_unmap_ends(base, bytes, done);
	if (done)
		twins_unreserve_ends(twins_unreserve_begins(base, bytes), true);
}

static void served_access(CUdeviceptr base, size_t bytes)
{
	twins_access_set(base, bytes);
}

void view_start(void)
{
	const struct serve_events events = {
		.mapped = served, .unmapping = served_ends, .unmapped = served_ended, .access_changed = served_access};
	const struct twin_hooks hooks = {.made = protect_add_twin, .gone = protect_end_twin, .broken = broken};
	twins_init(&hooks, options_get()->twins != TWINS_OFF);
	if (options_get()->twins == TWINS_ALL)
		serve_init(&events);
}
