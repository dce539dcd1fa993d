#include "shim/verdict/protect.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cuconst.h"
#include "shim/effects/call.h"
#include "shim/effects/capture.h"
#include "shim/effects/launch_memo.h"
#include "shim/effects/told.h"
#include "shim/hash.h"
#include "shim/hook_state.h"
#include "shim/looks.h"
#include "shim/report/report.h"
#include "shim/twins/serve.h"
#include "shim/verdict/allocation.h"
#include "shim/verdict/fault.h"
#include "shim/verdict/judge.h"
#include "shim/verdict/lifecycle.h"
#include "shim/verdict/neighbours.h"
#include "shim/verdict/options.h"
#include "shim/verdict/verify.h"
#include "shim/verdict/view.h"

#define API __attribute__((visibility("default")))
#define KNOWN_FLAGS (CUCONST_NO_BASELINE | CUCONST_STREAM | CUCONST_VERIFY_ONLY)
#define LAST_LOOK 64 /* ranges whose last check is one launch */

/* Which context a range's memory belongs to, to end it with that context, and where it is. */
struct home {
	registry_handle handle;
	uint64_t start;
	CUcontext context;
	UT_hash_handle hh;
};

static struct registry *_Atomic ranges HOOK_DATA; /* set once, when all that a protection needs is there */
static struct home *homes;
static pthread_mutex_t homes_lock = PTHREAD_MUTEX_INITIALIZER; /* nothing is called under it */
static _Atomic uint64_t ranges_ever, ended_unverified;
static __thread CUresult last_cuda_error;

HOOK_HOT struct registry *protect_ranges(void)
{
	return atomic_load_explicit(&ranges, memory_order_acquire);
}

int protect_start(void)
{
	const struct registry_hooks hooks = {.release = verify_release};
	struct registry *made;
	if (protect_ranges())
		return 0;
	memo_start();
	told_start();
	int error = neighbours_start();
	if (!error)
		error = registry_create(&hooks, &made);
	if (!error)
		atomic_store_explicit(&ranges, made, memory_order_release);
	return error;
}

cuconst_result protect_cuda_failed(CUresult result, cuconst_result answer)
{
	last_cuda_error = result;
	return answer;
}

CUresult protect_enter_context(int device, CUcontext context, CUcontext *ret_context, bool *ret_pushed)
{
	CUcontext now = NULL;
	CUdevice current = -1;
	CUresult result = drv.cuCtxGetCurrent(&now);
	*ret_pushed = false;
	if (result != CUDA_SUCCESS)
		return result;
	if (now && (context == now || (!context && drv.cuCtxGetDevice(&current) == CUDA_SUCCESS && current == device))) {
		*ret_context = now;
		return CUDA_SUCCESS;
	}
	if (!context) {
		unsigned flags;
		int active = 0;
		result = drv.cuDevicePrimaryCtxGetState(device, &flags, &active);
		if (result != CUDA_SUCCESS || !active)
			return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_CONTEXT;
		/* Alive by somebody's reference; ours is given back as soon as the address is known. */
		result = drv.cuDevicePrimaryCtxRetain(&context, device);
		if (result != CUDA_SUCCESS)
			return result;
		drv.cuDevicePrimaryCtxRelease_v2(device);
	}
	result = drv.cuCtxPushCurrent_v2(context);
	*ret_pushed = result == CUDA_SUCCESS;
	*ret_context = context;
	return result;
}

static void remember_home(registry_handle handle, CUcontext context, uint64_t start)
{
	struct home *home = calloc(1, sizeof *home);
	if (!home)
		return; /* here and below: the range then outlives its context, and ends with the process; its neighbourhood stays */
	home->handle = handle;
	home->start = start;
	home->context = context;
	pthread_mutex_lock(&homes_lock);
	HASH_ADD(hh, homes, handle, sizeof home->handle, home);
	bool added = hash_took(home);
	pthread_mutex_unlock(&homes_lock);
	if (!added)
		free(home);
}

static void forget_home(registry_handle handle)
{
	struct home *home;
	pthread_mutex_lock(&homes_lock);
	HASH_FIND(hh, homes, &handle, sizeof handle, home);
	if (home)
		HASH_DEL(homes, home);
	pthread_mutex_unlock(&homes_lock);
	if (home)
		neighbours_leave(home->start);
	free(home);
}

/* Removes a range; *ret_range as registry_remove(). Disarms the hooks with the last one. */
static int end_protection(registry_handle handle, struct range **ret_range)
{
	int error = registry_remove(ranges, handle, ret_range);
	if (error)
		return error;
	hook_stamp_renew();
	forget_home(handle);
	if (registry_empty(ranges))
		atomic_store(&hook_line.armed, false);
	if (!registry_empty(ranges)) /* a protect() in another thread came between */
		atomic_store(&hook_line.armed, !atomic_load(&hook_disabled));
	return 0;
}

static cuconst_result insert(uint64_t start, uint64_t end, const char *label, unsigned flags, int device,
                             const struct cuconst_protect_info *info, void *baseline, registry_handle *ret_handle)
{
	struct site site;
	struct registry_spec spec = {.start = start,
	                             .end = end,
	                             .flags = flags | (uint32_t)(device + 1) << 16,
	                             .label = info->label ? info->label : label,
	                             .owner = info->owner,
	                             .site = {info->file, info->function, info->line},
	                             .attachment = baseline};
	if (!info->file) {
		site_capture_python(&site);
		const struct site_frame *frame = site_user_frame(&site);
		if (frame)
			spec.site = (struct registry_site){frame->file, frame->function, frame->line};
	}
	struct range *range;
	if (registry_insert(ranges, &spec, ret_handle, &range))
		return CUCONST_ERROR_OUT_OF_MEMORY;
	hook_stamp_renew();
	judge_looks(range, look_next());
	range_put(range);
	return CUCONST_OK;
}

bool protect_active(void)
{
	return ranges && !atomic_load_explicit(&hook_disabled, memory_order_relaxed) && drv.cuPointerGetAttribute &&
	       drv.cuMemGetAddressRange_v2 && drv.cuCtxGetCurrent;
}

API cuconst_result cuconst_protect(uint64_t ptr, size_t bytes, const char *label, unsigned flags,
                                   const struct cuconst_protect_info *info, cuconst_handle *ret_handle)
{
	struct cuconst_protect_info facts = {0};
	CUcontext context;
	bool pushed = false;
	void *baseline = NULL;
	registry_handle handle;
	bool joined;
	struct allocation allocation;
	CUresult result;
	if (info)
		memcpy(&facts, info, info->size < sizeof facts ? info->size : sizeof facts);
	if (!ptr || !bytes || ptr + bytes < ptr || flags & ~KNOWN_FLAGS || !ret_handle)
		return CUCONST_ERROR_INVALID_VALUE;
	if (!protect_active())
		return CUCONST_ERROR_NOT_ACTIVE;
	cuconst_result answer = allocation_of(ptr, ptr + bytes, &allocation, &result);
	if (answer != CUCONST_OK)
		return protect_cuda_failed(result, answer);
	result = protect_enter_context(allocation.device, allocation.context, &context, &pushed);
	if (result != CUDA_SUCCESS)
		return protect_cuda_failed(result, CUCONST_ERROR_CUDA);
	lifecycle_arm();
	if (!(flags & CUCONST_NO_BASELINE) && lifecycle_can_verify()) {
		hook_thread.depth++;
		result = verify_attach(ptr, ptr + bytes, flags & CUCONST_STREAM, facts.stream, &baseline);
		hook_thread.depth--;
	}
	/* Before the range: addresses outside all neighbourhoods are not looked up. */
	joined = result == CUDA_SUCCESS && neighbours_join(allocation.start, allocation.end);
	if (joined)
		answer = insert(ptr, ptr + bytes, label, flags, allocation.device, &facts, baseline, &handle);
	else if (result == CUDA_SUCCESS)
		answer = CUCONST_ERROR_OUT_OF_MEMORY;
	else
		answer = protect_cuda_failed(result, result == CUDA_ERROR_OUT_OF_MEMORY ? CUCONST_ERROR_OUT_OF_MEMORY
		                                                                        : CUCONST_ERROR_CUDA);
	if (answer == CUCONST_OK && options_get()->mode == MODE_STRICT && !(flags & CUCONST_VERIFY_ONLY))
		view_prepare_swap(ptr, bytes);
	if (pushed)
		drv.cuCtxPopCurrent_v2(&(CUcontext){NULL});
	if (answer != CUCONST_OK) {
		if (baseline)
			verify_release(baseline);
		if (joined)
			neighbours_leave(ptr);
		return answer;
	}
	remember_home(handle, context, ptr);
	atomic_fetch_add(&ranges_ever, 1);
	atomic_store(&hook_line.armed, true);
	*ret_handle = handle;
	return CUCONST_OK;
}

uint64_t protect_add_twin(uint64_t start, uint64_t bytes, int device)
{
	const struct cuconst_protect_info info = {0};
	registry_handle handle;
	lifecycle_arm();
	fault_start();
	if (!neighbours_join(start, start + bytes))
		return 0;
	if (insert(start, start + bytes, "read-only view", RANGE_TWIN, device, &info, NULL, &handle) != CUCONST_OK) {
		neighbours_leave(start);
		return 0;
	}
	remember_home(handle, NULL, start);
	atomic_store(&hook_line.armed, true);
	return handle;
}

void protect_end_twin(uint64_t handle)
{
	end_protection(handle, NULL);
}

static cuconst_result handle_error(int error)
{
	return error == -ESTALE ? CUCONST_ERROR_STALE_HANDLE : CUCONST_ERROR_BAD_HANDLE;
}

/* The launches since a range was last looked at: one of them may have written it. */
struct window {
	struct look now, looked;
	const struct report_kernel *kernels; /* of these, such as stored beside it */
	size_t kernel_count;
};

static struct window window_of(const struct range *range)
{
	struct window window = {look_next(), judge_looked(range), NULL, 0};
	window.kernels = judge_neighbours(range, window.looked, &window.kernel_count);
	return window;
}

/* Compares one range with its baseline now. `api` names who asked. */
static cuconst_result check_range(struct range *range, const struct window *window, const char *api)
{
	struct verify_writer writer = {.api = api,
	                               .candidates = window->kernels,
	                               .candidate_count = window->kernel_count,
	                               .launches_before = look_launches(window->looked, window->now, 0),
	                               .device = range_device(range)};
	bool changed = false;
	if (!range->attachment)
		return CUCONST_OK;
	site_capture(&writer.site, __builtin_return_address(0));
	hook_thread.depth++;
	CUresult result = verify_now(range, &writer, &changed);
	hook_thread.depth--;
	if (result != CUDA_SUCCESS)
		return protect_cuda_failed(result, CUCONST_ERROR_CUDA);
	judge_looks(range, window->now);
	return changed ? CUCONST_ERROR_CHANGED : CUCONST_OK;
}

static cuconst_result check_now(struct range *range, const char *api)
{
	struct window window = window_of(range);
	cuconst_result answer = check_range(range, &window, api);
	free((void *)(uintptr_t)window.kernels);
	return answer;
}

API cuconst_result cuconst_unprotect(cuconst_handle handle)
{
	struct range *range;
	struct window window = {0};
	if (!protect_active())
		return CUCONST_ERROR_NOT_ACTIVE;
	/* Before the end: with the last range of an allocation goes what is known of kernels beside it. */
	range = registry_find(ranges, handle);
	if (range)
		window = window_of(range);
	range_put(range);
	int error = end_protection(handle, &range);
	cuconst_result answer = error ? handle_error(error) : CUCONST_OK;
	if (!error && capture_anywhere() && range->attachment) {
		atomic_fetch_add(&ended_unverified, 1); /* a check would invalidate the capture */
		answer = CUCONST_ERROR_BUSY;
	} else if (!error) {
		answer = check_range(range, &window, "cuconst_unprotect");
	}
	if (!error)
		range_put(range);
	free((void *)(uintptr_t)window.kernels);
	return answer;
}

API cuconst_result cuconst_release(cuconst_handle handle)
{
	struct range *range;
	if (!protect_active())
		return CUCONST_ERROR_NOT_ACTIVE;
	int error = end_protection(handle, &range);
	if (error)
		return handle_error(error);
	if (range->attachment)
		atomic_fetch_add(&ended_unverified, 1);
	range_put(range);
	return CUCONST_OK;
}

static int check_each(struct range *range, void *data)
{
	cuconst_result *worst = data, answer = check_now(range, "cuconst_check");
	if (answer != CUCONST_OK && *worst != CUCONST_ERROR_CHANGED)
		*worst = answer;
	return 0;
}

API cuconst_result cuconst_check(cuconst_handle handle)
{
	cuconst_result answer = CUCONST_OK;
	if (!protect_active())
		return CUCONST_ERROR_NOT_ACTIVE;
	if (capture_anywhere())
		return CUCONST_ERROR_BUSY;
	if (!handle)
		return registry_each(ranges, check_each, &answer) ? CUCONST_ERROR_OUT_OF_MEMORY : answer;
	struct range *range = registry_find(ranges, handle);
	if (!range) /* tells stale from never given, and changes nothing: there is no such live range */
		return handle_error(registry_remove(ranges, handle, NULL));
	answer = check_now(range, "cuconst_check");
	range_put(range);
	return answer;
}

API cuconst_result cuconst_query(uint64_t ptr, size_t bytes, struct cuconst_range_info *out, size_t max, size_t *ret_count)
{
	if (!ret_count || (max && !out) || ptr + bytes < ptr)
		return CUCONST_ERROR_INVALID_VALUE;
	if (!protect_active())
		return CUCONST_ERROR_NOT_ACTIVE;
	struct range **found = max ? malloc(max * sizeof *found) : NULL;
	if (max && !found)
		return CUCONST_ERROR_OUT_OF_MEMORY;
	verify_catch_up();
	size_t count = registry_overlaps(ranges, ptr, ptr + bytes, found, max);
	for (size_t i = 0; i < count && i < max; i++) {
		out[i] = (struct cuconst_range_info){.ptr = found[i]->start,
		                                     .bytes = found[i]->end - found[i]->start,
		                                     .handle = found[i]->handle,
		                                     .checks = atomic_load(&found[i]->checks),
		                                     .violations = atomic_load(&found[i]->violations)};
		strncpy(out[i].label, found[i]->label, sizeof out[i].label - 1);
		range_put(found[i]);
	}
	free(found);
	*ret_count = count;
	return CUCONST_OK;
}

API int cuconst_last_cuda_error(void)
{
	return (int)last_cuda_error;
}

/* A protection whose memory went away: one record. */
static void memory_gone(struct range *range, const struct call *call, enum report_kind kind, const struct site *site)
{
	if (end_protection(range->handle, NULL))
		return; /* lifted by its holder in the meantime */
	if (range->attachment)
		atomic_fetch_add(&ended_unverified, 1);
	struct report_event event = {.kind = kind,
	                             .action = ACTION_NONE,
	                             .api = call->entry->name,
	                             .range = range,
	                             .stream = address_of(call->stream),
	                             .device = range_device(range),
	                             .site = site};
	report_emit(&event);
}

void protect_memory_ended(struct call *call, bool freed)
{
	struct site site;
	if (!call->ended_count)
		return;
	site_capture(&site, call->caller);
	for (size_t i = 0; i < call->ended_count; i++)
		memory_gone(call->ended[i], call, freed ? REPORT_FREED : REPORT_ENDED, &site);
}

struct gone {
	const struct call *call;
	CUcontext context;
	const struct site *site;
};

static CUcontext home_of(const struct range *range)
{
	struct home *home;
	pthread_mutex_lock(&homes_lock);
	HASH_FIND(hh, homes, &range->handle, sizeof range->handle, home);
	CUcontext context = home ? home->context : NULL;
	pthread_mutex_unlock(&homes_lock);
	return context;
}

static int end_if_gone(struct range *range, void *data)
{
	const struct gone *gone = data;
	if (home_of(range) == gone->context)
		memory_gone(range, gone->call, REPORT_ENDED, gone->site);
	return 0;
}

static int end_if_unknown(struct range *range, void *data)
{
	const struct gone *gone = data;
	unsigned type;
	if (range->flags & RANGE_TWIN) /* no variable, and not mapped everywhere */
		return 0;
	if (drv.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, range->start) == CUDA_ERROR_INVALID_VALUE)
		memory_gone(range, gone->call, REPORT_FREED, gone->site);
	return 0;
}

static void end_each(struct call *call, CUcontext context, int (*end_if)(struct range *, void *))
{
	struct site site;
	if (!ranges || registry_empty(ranges))
		return;
	site_capture(&site, call->caller);
	registry_each(ranges, end_if, &(struct gone){.call = call, .context = context, .site = &site});
}

struct ending {
	CUcontext context;
	bool ending;
};

static int mark_ending(struct range *range, void *data)
{
	const struct ending *ending = data;
	if (home_of(range) == ending->context)
		atomic_store(&range->ending, ending->ending);
	return 0;
}

void protect_context_ending(CUcontext context, bool ending)
{
	if (ranges && !registry_empty(ranges))
		registry_each(ranges, mark_ending, &(struct ending){context, ending});
	hook_stamp_renew();
}

void protect_context_ended(struct call *call, CUcontext context)
{
	/* Also when nothing is protected now: the next context may have the same handle. */
	verify_context_gone(context);
	end_each(call, context, end_if_gone);
}

void protect_variables_ended(struct call *call)
{
	end_each(call, NULL, end_if_unknown);
}

bool protect_used(void)
{
	return atomic_load_explicit(&ranges_ever, memory_order_relaxed) != 0;
}

static int add_live(struct range *range, void *data)
{
	struct protect_totals *totals = data;
	if (range->flags & RANGE_TWIN)
		return 0;
	totals->ranges_live++;
	totals->bytes_live += range->end - range->start;
	return 0;
}

struct protect_totals protect_totals(void)
{
	struct protect_totals totals = {.ranges_ever = atomic_load(&ranges_ever),
	                                .ended_unverified = atomic_load(&ended_unverified)};
	if (ranges)
		registry_each(ranges, add_live, &totals);
	return totals;
}

/* Ranges of one context, whose checks go into one launch. */
struct last_look {
	CUcontext context;
	size_t count;
	struct range *ranges[LAST_LOOK];
};

static void look(struct last_look *last)
{
	const struct verify_writer writer = {.api = "cuconst_at_exit", .device = -1};
	struct verify_target targets[LAST_LOOK];
	CUcontext popped;
	for (size_t i = 0; i < last->count; i++) {
		struct window window = window_of(last->ranges[i]);
		targets[i] = (struct verify_target){.range = last->ranges[i],
		                                    .candidates = window.kernels,
		                                    .candidate_count = window.kernel_count,
		                                    .launches_before = look_launches(window.looked, window.now, 0),
		                                    .device = range_device(last->ranges[i])};
	}
	if (last->count && drv.cuCtxPushCurrent_v2(last->context) == CUDA_SUCCESS) {
		verify_after_each(&writer, targets, last->count, CU_STREAM_LEGACY);
		drv.cuCtxPopCurrent_v2(&popped);
	}
	while (last->count) {
		free((void *)(uintptr_t)targets[--last->count].candidates);
		range_put(last->ranges[last->count]);
	}
}

static int add_to_look(struct range *range, void *data)
{
	struct last_look *last = data;
	CUcontext context = home_of(range);
	if (!range->attachment || !context)
		return 0;
	if (last->count == LAST_LOOK || context != last->context)
		look(last);
	last->context = context;
	last->ranges[last->count++] = range_get(range);
	return 0;
}

void protect_check_at_exit(void)
{
	struct last_look last = {.count = 0};
	hook_thread.depth++;
	registry_each(ranges, add_to_look, &last);
	look(&last);
	hook_thread.depth--;
}

void protect_prefork(void)
{
	pthread_mutex_lock(&homes_lock);
	if (ranges)
		registry_prefork(ranges);
}

void protect_postfork_parent(void)
{
	if (ranges)
		registry_postfork_parent(ranges);
	pthread_mutex_unlock(&homes_lock);
}

void protect_postfork_child(void)
{
	if (ranges)
		registry_postfork_child(ranges);
	pthread_mutex_unlock(&homes_lock);
	atomic_store(&ranges_ever, 0);
	atomic_store(&ended_unverified, 0);
}
