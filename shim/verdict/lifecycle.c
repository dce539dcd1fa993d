#include "shim/verdict/lifecycle.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/cuconst.h"
#include "shim/doors/doors.h"
#include "shim/effects/call.h"
#include "shim/effects/capture.h"
#include "shim/effects/graphs.h"
#include "shim/hook_state.h"
#include "shim/kernels/cache.h"
#include "shim/kernels/images.h"
#include "shim/report/report.h"
#include "shim/twins/serve.h"
#include "shim/twins/twin.h"
#include "shim/verdict/fault.h"
#include "shim/verdict/judge.h"
#include "shim/verdict/options.h"
#include "shim/verdict/protect.h"
#include "shim/verdict/status.h"
#include "shim/verdict/suppress.h"
#include "shim/verdict/verify.h"
#include "shim/verdict/view.h"

#define BLIND_BYTES 1024
#define CLOSE_WAIT_MS 2000

static _Atomic bool initialised; /* cuInit succeeded here: a fork child cannot use CUDA */
static _Atomic bool armed_once;
enum { OPEN, CLOSING, CLOSED };
static _Atomic int closed; /* the report */
static const char *lacking; /* a driver function without which nothing can be checked on the device; NULL: all are there */

static void summary_count(struct report_summary *ret)
{
	struct protect_totals totals = protect_totals();
	struct verify_counts checks = verify_counts();
	*ret = (struct report_summary){
		.ranges_ever = totals.ranges_ever,
		.ranges_live = totals.ranges_live,
		.bytes_live = totals.bytes_live,
		.calls = hook_counted(COUNT_CALL),
		.launches = hook_counted(COUNT_LAUNCH),
		.graph_launches = hook_counted(COUNT_GRAPH_LAUNCH),
		.checked = hook_counted(COUNT_CHECKED),
		.verified = checks.verified,
		.violations = judge_counts().violations,
		.denied = judge_counts().denied,
		.inconclusive = checks.inconclusive,
		.unverified = checks.unverified + checks.pending,
		.suppressed = suppress_count(),
		.clean = hook_counted(COUNT_CLEAN),
		.near = hook_counted(COUNT_NEAR),
		.unknown = hook_counted(COUNT_UNKNOWN),
		.stores = hook_counted(COUNT_STORES),
		.ended_unverified = totals.ended_unverified,
	};
}

/* What this very run could not see, as text for the last line; NULL: nothing known. Reads all relocations: once, at the end. */
static const char *find_blind(char *text, size_t bytes)
{
	uint64_t unjudged = hook_counted(COUNT_UNJUDGED);
	int used = unjudged ? snprintf(text, bytes, "%llu calls or graphs whose parameters could not be read; ",
	                               (unsigned long long)unjudged)
	                    : 0;
	size_t doors = door_blind(text + used, bytes - (size_t)used);
	if (used && !doors)
		text[used - 2] = '\0';
	return used || doors ? text : NULL;
}

/* Another thread writes the last line. Bounded: it may have been stopped, or be this one below a signal handler. */
static void wait_until_closed(void)
{
	const struct timespec pause = {0, 1000000};
	for (int i = 0; i < CLOSE_WAIT_MS && atomic_load(&closed) == CLOSING; i++)
		nanosleep(&pause, NULL);
}

static void close_report(void)
{
	char blind[BLIND_BYTES];
	struct report_summary summary;
	int state = OPEN;
	if (!atomic_compare_exchange_strong(&closed, &state, CLOSING)) {
		wait_until_closed();
		return;
	}
	summary_count(&summary);
	bool used = summary.ranges_ever || summary.launches || summary.calls || summary.graph_launches;
	/* The child of a fork judged nothing, and must not ask the loader: a thread that is not there may hold its lock. */
	bool asks = used && !atomic_load(&hook_disabled);
	summary.blind = asks ? find_blind(blind, sizeof blind) : NULL;
	atomic_fetch_add(&status_page()->launches, summary.launches);
	/* Whoever asked for a log finds in it that nothing was protected. */
	if (used && options_get()->log)
		report_open();
	if (used)
		report_close(&summary);
	atomic_store(&closed, CLOSED);
}

/* Registered at the first CUDA call. The driver may be gone when it runs: nothing here looks at its memory. */
static void at_exit(void)
{
	close_report();
}

/* Registered at the first protection, so it runs before the handlers of libraries that were there earlier: the driver still answers. */
static void at_exit_checks(void)
{
	if (!atomic_load(&hook_disabled) && options_get()->verify)
		protect_check_at_exit();
	fault_look_at_exit(options_get()->exit_wait_ms);
	verify_drain(options_get()->exit_wait_ms);
}

static void fork_prepare(void)
{
	serve_prefork();
	protect_prefork();
}

static void fork_parent(void)
{
	protect_postfork_parent();
	serve_postfork_parent();
}

static void fork_child(void)
{
	protect_postfork_child();
	serve_postfork_child();
	report_postfork_child();
	judge_postfork_child();
	capture_reset();
	hook_counts_reset();
	images_reset();
	if (atomic_load(&initialised)) {
		atomic_store(&hook_disabled, true);
		atomic_store(&hook_line.armed, false);
		atomic_store(&hook_line.served, NULL);
		graphs_reset();
		twins_postfork_child();
		fault_postfork_child();
		verify_postfork_child();
	}
}

/* What checks on the device cannot do without: the first that this driver lacks, or NULL. */
static const char *find_lacking(void)
{
	const struct {
		const char *name;
		bool there;
	} needed[] = {
#define NEEDED(name) {#name, drv.name != NULL}
		NEEDED(cuCtxGetCurrent),
		NEEDED(cuCtxPushCurrent_v2),
		NEEDED(cuCtxPopCurrent_v2),
		NEEDED(cuCtxSynchronize),
		NEEDED(cuModuleLoadData),
		NEEDED(cuModuleGetFunction),
		NEEDED(cuMemAlloc_v2),
		NEEDED(cuMemFree_v2),
		NEEDED(cuMemHostAlloc),
		NEEDED(cuMemHostGetDevicePointer_v2),
		NEEDED(cuStreamCreate),
		NEEDED(cuStreamSynchronize),
		NEEDED(cuStreamIsCapturing),
		NEEDED(cuLaunchKernel),
		NEEDED(cuThreadExchangeStreamCaptureMode),
#undef NEEDED
	};
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (!needed[i].there)
			return needed[i].name;
	return NULL;
}

/* Before anything can be protected: protect_start() opens the door to that, and another thread may be waiting at it. */
static void prepare_verify(void)
{
	const struct verify_driver driver = {
		.ctx_get_current = drv.cuCtxGetCurrent,
		.ctx_push = drv.cuCtxPushCurrent_v2,
		.ctx_pop = drv.cuCtxPopCurrent_v2,
		.ctx_synchronize = drv.cuCtxSynchronize,
		.module_load_data = drv.cuModuleLoadData,
		.module_get_function = drv.cuModuleGetFunction,
		.mem_alloc = drv.cuMemAlloc_v2,
		.mem_free = drv.cuMemFree_v2,
		.mem_host_register = drv.cuMemHostRegister_v2,
		.mem_host_alloc = drv.cuMemHostAlloc,
		.mem_host_get_device_pointer = drv.cuMemHostGetDevicePointer_v2,
		.stream_create = drv.cuStreamCreate,
		.stream_synchronize = drv.cuStreamSynchronize,
		.stream_is_capturing = drv.cuStreamIsCapturing,
		.launch_kernel = drv.cuLaunchKernel,
		.exchange_capture_mode = drv.cuThreadExchangeStreamCaptureMode,
	};
	lacking = find_lacking();
	verify_init(&driver, judge_finding);
}

bool lifecycle_can_verify(void)
{
	return options_get()->verify && !lacking;
}

void lifecycle_start(void)
{
	if (!options_get()->enabled) {
		atomic_store(&hook_disabled, true);
		return;
	}
	atomic_store(&hook_line.names, options_get()->names);
	site_set_resolver(door_find_symbol);
	images_start(door_object_at, door_dlsym);
	if (options_get()->store_paths && (!options_get()->cache || strcmp(options_get()->cache, "0")))
		cache_use(options_get()->cache);
	prepare_verify();
	if (protect_start() || pthread_atfork(fork_prepare, fork_parent, fork_child)) {
		lifecycle_disable("out of memory at the start");
		return;
	}
	view_start();
	atomic_fetch_add(&status_page()->processes, 1);
	atexit(at_exit);
}

void lifecycle_disable(const char *why)
{
	atomic_store(&hook_disabled, true);
	atomic_store(&hook_line.armed, false);
	atomic_store(&hook_line.served, NULL);
	atomic_fetch_add(&status_page()->disabled, 1);
	report_note("not active in this process: %s", why);
}

static void init_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		atomic_store(&initialised, true);
}

void effect_init(struct call *call)
{
	call->after = init_after;
}

void lifecycle_arm(void)
{
	atomic_store(&hook_used, true);
	if (atomic_exchange(&armed_once, true))
		return;
	report_open();
	if (lacking && options_get()->verify)
		report_note("kernels are not checked: this driver has no %s", lacking);
	site_prepare();
	atexit(at_exit_checks);
}

void lifecycle_stop(void)
{
	atomic_store(&hook_line.armed, false);
	close_report();
	if (options_get()->abort_on_error)
		abort();
	_exit(options_get()->exitcode);
}

__attribute__((visibility("default"))) int cuconst_version(void)
{
	return CUCONST_VERSION;
}

__attribute__((visibility("default"))) cuconst_result cuconst_stats(struct cuconst_stats *ret_stats)
{
	struct report_summary summary;
	if (!ret_stats || ret_stats->size < sizeof ret_stats->size)
		return CUCONST_ERROR_INVALID_VALUE;
	if (!options_get()->enabled || atomic_load(&hook_disabled))
		return CUCONST_ERROR_NOT_ACTIVE;
	verify_catch_up();
	summary_count(&summary);
	struct cuconst_stats stats = {
		.size = ret_stats->size,
		.ranges = summary.ranges_live,
		.bytes = summary.bytes_live,
		.calls = summary.calls,
		.launches = summary.launches,
		.graph_launches = summary.graph_launches,
		.checked = summary.checked,
		.verified = summary.verified,
		.violations = summary.violations,
		.denied = summary.denied,
		.inconclusive = summary.inconclusive,
		.unverified = summary.unverified,
		.suppressed = summary.suppressed,
		.clean = summary.clean,
		.near = summary.near,
		.unknown = summary.unknown,
		.stores = summary.stores,
	};
	memcpy(ret_stats, &stats, stats.size < sizeof stats ? stats.size : sizeof stats);
	return CUCONST_OK;
}
