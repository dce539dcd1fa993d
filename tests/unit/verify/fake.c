#include "tests/unit/verify/fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/verdict/verify_internal.h"
#include "tests/unit/verify/reference.h"

#define CHECK_FUNCTION(context) ((CUfunction)((uintptr_t)(context)*16 + 1))
#define SETUP_FUNCTION(context) ((CUfunction)((uintptr_t)(context)*16 + 2))
#define ALLOCATIONS 4096
#define CAPTURES 8

struct work {
	struct work *next;
	CUstream stream;
	enum { WORK_CHECK, WORK_SETUP, WORK_WRITE } kind;
	struct verify_batch batch;
	uint64_t to, from;
	uint32_t vectors;
	uint8_t value;
	size_t bytes;
};

struct fake_range {
	struct range range;
	_Atomic int references;
};

static struct {
	pthread_mutex_t lock;
	struct work *head, *tail;
	bool deferred, check_lock, refuse_register;
	unsigned fail_call;
	CUresult fail_error, launch_error, sticky_error;
	bool fail_sticky;
	CUstream capturing[CAPTURES];
	unsigned captures;
	void *allocation[ALLOCATIONS];
	unsigned next_stream;
	void (*during_launch)(void);
	struct fake_counts counts;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic int live_ranges;
static _Thread_local CUcontext stack[8];
static _Thread_local unsigned depth;
static _Thread_local CUstreamCaptureMode mode;

/* ---- what every call goes through */

static CUresult enter(void)
{
	bool lock_held = false;
	if (fake.check_lock) {
		lock_held = pthread_mutex_trylock(&verify.lock) != 0;
		if (!lock_held)
			pthread_mutex_unlock(&verify.lock);
	}
	pthread_mutex_lock(&fake.lock);
	fake.counts.calls++;
	fake.counts.forbidden += lock_held;
	if (fake.sticky_error)
		return fake.sticky_error;
	if (fake.fail_call && --fake.fail_call == 0) {
		if (fake.fail_sticky)
			fake.sticky_error = fake.fail_error;
		return fake.fail_error;
	}
	return CUDA_SUCCESS;
}

static CUresult leave(CUresult result)
{
	pthread_mutex_unlock(&fake.lock);
	return result;
}

/* Calls that a capture somewhere forbids, to all or to those that did not relax. */
static void unsafe(bool always)
{
	if (fake.captures && (always || mode != CU_STREAM_CAPTURE_MODE_RELAXED))
		fake.counts.forbidden++;
}

static bool is_capturing(CUstream stream)
{
	for (unsigned i = 0; i < fake.captures; i++)
		if (fake.capturing[i] == stream)
			return true;
	return false;
}

/* ---- work */

static void run_check(const struct verify_batch *batch)
{
	struct verify_result *results = (struct verify_result *)batch->results;
	struct verify_total *totals = (struct verify_total *)batch->totals;
	for (unsigned i = 0; i < batch->jobs; i++) {
		const struct verify_job *job = &batch->job[i];
		struct verify_result found;
		static const struct verify_total zero;
		if (memcmp(&totals[job->slot], &zero, sizeof(zero)) != 0 || job->blocks == 0 ||
		    job->first_block != (i ? batch->job[i - 1].first_block + batch->job[i - 1].blocks : 0)) {
			fprintf(stderr, "fake: malformed job %u\n", i);
			abort();
		}
		reference_job(job, (const uint8_t *)job->start, (uint8_t *)job->baseline, (const uint8_t *)batch->keys,
		              &found);
		struct verify_result *slot = &results[job->slot];
		if (found.bytes) {
			__atomic_store_n(&slot->first, found.first, __ATOMIC_RELAXED);
			__atomic_store_n(&slot->last, found.last, __ATOMIC_RELAXED);
		}
		__atomic_store_n(&slot->bytes, found.bytes, __ATOMIC_RELAXED);
		__atomic_store_n(&slot->sequence, job->sequence, __ATOMIC_RELEASE);
		fake.counts.jobs++;
	}
}

static void run(struct work *work)
{
	switch (work->kind) {
	case WORK_CHECK:
		run_check(&work->batch);
		break;
	case WORK_SETUP:
		memcpy((void *)work->to, (const void *)work->from, work->vectors * 16u);
		break;
	case WORK_WRITE:
		memset((void *)work->to, work->value, work->bytes);
		break;
	}
	free(work);
}

static size_t run_some(CUstream stream, bool any, size_t count)
{
	size_t done = 0;
	struct work **link = &fake.head, *before = NULL;
	while (*link && done < count) {
		struct work *work = *link;
		if (!any && work->stream != stream) {
			before = work;
			link = &work->next;
			continue;
		}
		*link = work->next;
		if (fake.tail == work)
			fake.tail = before;
		run(work);
		done++;
	}
	return done;
}

static void submit(struct work *work)
{
	work->next = NULL;
	if (!fake.deferred) {
		run_some(work->stream, false, SIZE_MAX);
		run(work);
		return;
	}
	if (fake.tail)
		fake.tail->next = work;
	else
		fake.head = work;
	fake.tail = work;
}

/* ---- the driver */

static CUresult ctx_get_current(CUcontext *ret)
{
	CUresult result = enter();
	if (result == CUDA_SUCCESS)
		*ret = depth ? stack[depth - 1] : NULL;
	return leave(result);
}

static CUresult ctx_push(CUcontext context)
{
	CUresult result = enter();
	if (result == CUDA_SUCCESS)
		stack[depth++] = context;
	return leave(result);
}

/* The counterpart of a push that went through always works, as a test of restored state needs it. */
static CUresult ctx_pop(CUcontext *ret)
{
	enter();
	*ret = stack[--depth];
	return leave(CUDA_SUCCESS);
}

static CUresult ctx_synchronize(void)
{
	CUresult result = enter();
	unsafe(true);
	fake.counts.synchronisations++;
	if (result == CUDA_SUCCESS)
		run_some(NULL, true, SIZE_MAX);
	return leave(result);
}

static CUresult module_load_data(CUmodule *ret, const void *image)
{
	CUresult result = enter();
	unsafe(true);
	fake.counts.loads++;
	if (result == CUDA_SUCCESS && !strstr(image, "\n.version 7.0\n"))
		result = CUDA_ERROR_INVALID_PTX;
	if (result == CUDA_SUCCESS)
		*ret = (CUmodule)((uintptr_t)stack[depth - 1] * 16);
	return leave(result);
}

static CUresult module_get_function(CUfunction *ret, CUmodule module, const char *name)
{
	CUresult result = enter();
	CUcontext context = (CUcontext)((uintptr_t)module / 16);
	if (result == CUDA_SUCCESS && strcmp(name, "cuconst_verify_check") == 0)
		*ret = CHECK_FUNCTION(context);
	else if (result == CUDA_SUCCESS && strcmp(name, "cuconst_verify_setup") == 0)
		*ret = SETUP_FUNCTION(context);
	else if (result == CUDA_SUCCESS)
		result = CUDA_ERROR_NOT_FOUND;
	return leave(result);
}

static CUresult mem_alloc(CUdeviceptr *ret, size_t bytes)
{
	CUresult result = enter();
	unsafe(true);
	fake.counts.allocations++;
	for (unsigned i = 0; result == CUDA_SUCCESS && i < ALLOCATIONS; i++) {
		if (fake.allocation[i])
			continue;
		fake.allocation[i] = aligned_alloc(512, (bytes + 511) / 512 * 512);
		memset(fake.allocation[i], 0xa5, bytes);
		fake.counts.live++;
		*ret = (CUdeviceptr)fake.allocation[i];
		return leave(CUDA_SUCCESS);
	}
	return leave(result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result);
}

static CUresult mem_free(CUdeviceptr address)
{
	CUresult result = enter();
	unsafe(true);
	for (unsigned i = 0; i < ALLOCATIONS; i++) {
		if ((CUdeviceptr)fake.allocation[i] != address)
			continue;
		free(fake.allocation[i]);
		fake.allocation[i] = NULL;
		fake.counts.live--;
	}
	return leave(result);
}

static CUresult mem_host_register(void *memory, size_t bytes, unsigned flags)
{
	CUresult result = enter();
	unsafe(false);
	if (result == CUDA_SUCCESS && (fake.refuse_register || (uintptr_t)memory % 4096 || !bytes || !flags))
		result = CUDA_ERROR_NOT_SUPPORTED;
	return leave(result);
}

static CUresult mem_host_alloc(void **ret, size_t bytes, unsigned flags)
{
	CUresult result = enter();
	unsafe(false);
	if (result == CUDA_SUCCESS && !(flags & CU_MEMHOSTALLOC_DEVICEMAP))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS) {
		*ret = aligned_alloc(4096, bytes);
		memset(*ret, 0x5a, bytes);
	}
	return leave(result);
}

static CUresult mem_host_get_device_pointer(CUdeviceptr *ret, void *memory, unsigned flags)
{
	CUresult result = enter();
	if (result == CUDA_SUCCESS && flags == 0)
		*ret = (CUdeviceptr)memory;
	return leave(result);
}

static CUresult stream_create(CUstream *ret, unsigned flags)
{
	CUresult result = enter();
	if (result == CUDA_SUCCESS && flags != CU_STREAM_NON_BLOCKING)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*ret = FAKE_STREAM(0x1000 + fake.next_stream++);
	return leave(result);
}

static CUresult stream_synchronize(CUstream stream)
{
	CUresult result = enter();
	unsafe(true);
	fake.counts.synchronisations++;
	if (result == CUDA_SUCCESS)
		run_some(stream, false, SIZE_MAX);
	return leave(result);
}

static CUresult stream_is_capturing(CUstream stream, CUstreamCaptureStatus *ret)
{
	CUresult result = enter();
	if (result == CUDA_SUCCESS)
		*ret = is_capturing(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
	return leave(result);
}

static CUresult launch_kernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra)
{
	CUresult result = enter();
	CUcontext context = depth ? stack[depth - 1] : NULL;
	struct work *work = NULL;
	fake.counts.launches++;
	fake.counts.legacy += stream == NULL || stream == CU_STREAM_LEGACY;
	if (is_capturing(stream))
		fake.counts.forbidden++;
	if (result == CUDA_SUCCESS && fake.launch_error)
		result = fake.launch_error;
	if (result == CUDA_SUCCESS && (!gx || gy != 1 || gz != 1 || bx != 256 || by != 1 || bz != 1 || shared || extra))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && function != CHECK_FUNCTION(context) && function != SETUP_FUNCTION(context)) {
		fake.counts.wrong_context++;
		result = CUDA_ERROR_INVALID_HANDLE;
	}
	if (result == CUDA_SUCCESS)
		work = calloc(1, sizeof(*work));
	if (work) {
		work->stream = stream;
		if (function == CHECK_FUNCTION(context)) {
			work->kind = WORK_CHECK;
			memcpy(&work->batch, parameters[0], sizeof(work->batch));
		} else {
			work->kind = WORK_SETUP;
			work->to = *(CUdeviceptr *)parameters[0];
			work->from = *(CUdeviceptr *)parameters[1];
			work->vectors = *(uint32_t *)parameters[2];
		}
		submit(work);
	}
	leave(result);
	void (*during)(void) = fake.during_launch;
	if (during)
		during();
	return result;
}

static CUresult exchange_capture_mode(CUstreamCaptureMode *exchanged)
{
	CUresult result = enter();
	/* The second half of a pair always works, see ctx_pop(). */
	if (result == CUDA_SUCCESS || mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
		CUstreamCaptureMode old = mode;
		mode = *exchanged;
		*exchanged = old;
		result = CUDA_SUCCESS;
	}
	return leave(result);
}

const struct verify_driver *fake_driver(void)
{
	static const struct verify_driver driver = {
		.ctx_get_current = ctx_get_current,
		.ctx_push = ctx_push,
		.ctx_pop = ctx_pop,
		.ctx_synchronize = ctx_synchronize,
		.module_load_data = module_load_data,
		.module_get_function = module_get_function,
		.mem_alloc = mem_alloc,
		.mem_free = mem_free,
		.mem_host_register = mem_host_register,
		.mem_host_alloc = mem_host_alloc,
		.mem_host_get_device_pointer = mem_host_get_device_pointer,
		.stream_create = stream_create,
		.stream_synchronize = stream_synchronize,
		.stream_is_capturing = stream_is_capturing,
		.launch_kernel = launch_kernel,
		.exchange_capture_mode = exchange_capture_mode,
	};
	return &driver;
}

/* ---- the test's side */

void fake_start(void (*finding)(const struct verify_finding *))
{
	fake_stop();
	fake.deferred = fake.refuse_register = false;
	fake.check_lock = true;
	fake.captures = 0;
	memset(&fake.counts, 0, sizeof(fake.counts));
	fake_fail(0, CUDA_SUCCESS, false);
	fake_fail_launches(CUDA_SUCCESS);
	fake_set_current(FAKE_CONTEXT(0));
	mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	verify_init(fake_driver(), finding);
}

void fake_stop(void)
{
	pthread_mutex_lock(&fake.lock);
	run_some(NULL, true, SIZE_MAX);
	for (unsigned i = 0; i < ALLOCATIONS; i++) {
		free(fake.allocation[i]);
		fake.allocation[i] = NULL;
	}
	pthread_mutex_unlock(&fake.lock);
}

void fake_defer(bool deferred)
{
	pthread_mutex_lock(&fake.lock);
	fake.deferred = deferred;
	pthread_mutex_unlock(&fake.lock);
}

size_t fake_run(CUstream stream, size_t count)
{
	pthread_mutex_lock(&fake.lock);
	size_t done = run_some(stream, false, count);
	pthread_mutex_unlock(&fake.lock);
	return done;
}

size_t fake_run_all(void)
{
	pthread_mutex_lock(&fake.lock);
	size_t done = run_some(NULL, true, SIZE_MAX);
	pthread_mutex_unlock(&fake.lock);
	return done;
}

void fake_write(CUstream stream, uint64_t address, uint8_t value, size_t bytes)
{
	struct work *work = calloc(1, sizeof(*work));
	work->stream = stream;
	work->kind = WORK_WRITE;
	work->to = address;
	work->value = value;
	work->bytes = bytes;
	pthread_mutex_lock(&fake.lock);
	submit(work);
	pthread_mutex_unlock(&fake.lock);
}

void fake_capture(CUstream stream, bool capturing)
{
	pthread_mutex_lock(&fake.lock);
	if (capturing)
		fake.capturing[fake.captures++] = stream;
	for (unsigned i = 0; !capturing && i < fake.captures; i++)
		if (fake.capturing[i] == stream)
			fake.capturing[i] = fake.capturing[--fake.captures];
	pthread_mutex_unlock(&fake.lock);
}

void fake_set_current(CUcontext context)
{
	depth = context ? 1 : 0;
	stack[0] = context;
}

CUcontext fake_current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

CUstreamCaptureMode fake_mode(void)
{
	return mode;
}

void fake_fail(unsigned call, CUresult error, bool sticky)
{
	fake.fail_call = call;
	fake.fail_error = error;
	fake.fail_sticky = sticky;
	fake.sticky_error = CUDA_SUCCESS;
}

void fake_fail_launches(CUresult error)
{
	fake.launch_error = error;
}

void fake_during_launch(void (*function)(void))
{
	fake.during_launch = function;
}

void fake_refuse_register(bool refuse)
{
	fake.refuse_register = refuse;
}

struct fake_counts fake_counts(void)
{
	pthread_mutex_lock(&fake.lock);
	struct fake_counts counts = fake.counts;
	pthread_mutex_unlock(&fake.lock);
	return counts;
}

void fake_check_lock(bool check)
{
	fake.check_lock = check;
}

/* ---- ranges, as the registry has them */

struct range *fake_range(uint64_t start, uint64_t end, void *attachment)
{
	struct fake_range *range = calloc(1, sizeof(*range));
	range->range.start = start;
	range->range.end = end;
	range->range.attachment = attachment;
	range->references = 1;
	live_ranges++;
	return &range->range;
}

int fake_references(const struct range *range)
{
	return ((const struct fake_range *)range)->references;
}

int fake_live_ranges(void)
{
	return live_ranges;
}

struct range *range_get(struct range *range)
{
	((struct fake_range *)range)->references++;
	return range;
}

void range_put(struct range *range)
{
	struct fake_range *whole = (struct fake_range *)range;
	if (!range || --whole->references)
		return;
	verify_release(range->attachment);
	live_ranges--;
	free(whole);
}

void fake_drop(struct range *range)
{
	range_put(range);
}
