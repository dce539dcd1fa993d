/* Contexts: primary and not, the stack of current ones, limits and configuration. */
#include <pthread.h>

#include "tests/softgpu/conformance/conformance.h"

static void primary(void)
{
	CUcontext one = NULL, two = NULL, current = NULL;
	unsigned flags = 99;
	int active = -1;

	NEED(cuInit(0));
	answer_status("primary_state_before", cuDevicePrimaryCtxGetState(0, &flags, &active));
	answer_number("primary_flags_before", flags);
	answer_number("primary_active_before", active);
	answer_status("primary_release_unretained", cuDevicePrimaryCtxRelease(0));
	answer_status("primary_reset_unretained", cuDevicePrimaryCtxReset(0));
	answer_status("primary_retain_null", cuDevicePrimaryCtxRetain(NULL, 0));
	answer_status("primary_retain_no_device", cuDevicePrimaryCtxRetain(&one, -1));
	answer_status("primary_flags_bad", cuDevicePrimaryCtxSetFlags(0, 0x7));
	answer_status("primary_flags_yield", cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD));
	answer_status("primary_retain", cuDevicePrimaryCtxRetain(&one, 0));
	answer_status("primary_current", cuCtxGetCurrent(&current));
	answer_yes("primary_current_null", current == NULL);
	answer_status("primary_retain_again", cuDevicePrimaryCtxRetain(&two, 0));
	answer_yes("primary_same", one == two);
	answer_status("primary_set", cuCtxSetCurrent(one));
	answer_status("primary_context_flags", cuCtxGetFlags(&flags));
	answer_number("primary_context_flags_value", flags);
	answer_status("primary_flags_while_active", cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN));
	answer_status("primary_flags_got", cuDevicePrimaryCtxGetState(0, &flags, &active));
	answer_number("primary_flags_got_value", flags);
	answer_status("primary_release", cuDevicePrimaryCtxRelease(0));
	answer_status("primary_alive", cuCtxSynchronize());
	answer_status("primary_release_last", cuDevicePrimaryCtxRelease(0));
	NEED(cuDevicePrimaryCtxGetState(0, &flags, &active));
	answer_number("primary_active_after", active);
	answer_status("primary_release_too_often", cuDevicePrimaryCtxRelease(0));
	answer_status("primary_use_released", cuCtxSynchronize());
	CUdeviceptr memory;
	answer_status("primary_alloc_released", cuMemAlloc(&memory, 4));
	answer_status("primary_current_released", cuCtxGetCurrent(&current));
	answer_yes("primary_current_released_same", current == one);
	answer_status("primary_retain_anew", cuDevicePrimaryCtxRetain(&two, 0));
	answer_yes("primary_anew_same", one == two);
	answer_status("primary_use_anew", cuCtxSynchronize());
	answer_status("primary_destroy", cuCtxDestroy(two));
}

static void stack(void)
{
	CUcontext first = NULL, one = NULL, two = NULL, got = NULL;
	CUdevice device = -1;
	unsigned version = 0;
	unsigned long long id_one = 0, id_two = 0;

	NEED(cuCtxGetCurrent(&first));
	answer_status("create_null", cuCtxCreate(NULL, NULL, 0, 0));
	answer_status("create_no_device", cuCtxCreate(&one, NULL, 0, -1));
	answer_status("create_bad_flags", cuCtxCreate(&one, NULL, 0x10000, 0));
	answer_status("create", cuCtxCreate(&one, NULL, 0, 0));
	answer_status("create_current", cuCtxGetCurrent(&got));
	answer_yes("create_current_same", got == one);
	answer_status("create_second", cuCtxCreate(&two, NULL, CU_CTX_SCHED_BLOCKING_SYNC, 0));
	answer_status("device", cuCtxGetDevice(&device));
	answer_status("device_null", cuCtxGetDevice(NULL));
	answer_status("version", cuCtxGetApiVersion(two, &version));
	answer_number("version_value", version);
	answer_status("id", cuCtxGetId(one, &id_one));
	answer_status("id_null_context", cuCtxGetId(NULL, &id_two));
	answer_yes("id_differs", id_one != id_two);
	answer_status("id_null", cuCtxGetId(one, NULL));
	answer_status("pop", cuCtxPopCurrent(&got));
	answer_yes("pop_is_last", got == two);
	answer_status("pop_null", cuCtxPopCurrent(NULL));
	NEED(cuCtxGetCurrent(&got));
	answer_yes("pop_twice_is_first", got == first);
	answer_status("push", cuCtxPushCurrent(two));
	answer_status("push_same", cuCtxPushCurrent(two));
	answer_status("set_replaces", cuCtxSetCurrent(one));
	answer_status("pop_replaced", cuCtxPopCurrent(&got));
	answer_yes("pop_replaced_one", got == one);
	NEED(cuCtxGetCurrent(&got));
	answer_yes("under_replaced_two", got == two);
	answer_status("set_null_pops", cuCtxSetCurrent(NULL));
	NEED(cuCtxGetCurrent(&got));
	answer_yes("under_null_first", got == first);
	answer_status("destroy_not_current", cuCtxDestroy(one));
	NEED(cuCtxPushCurrent(two));
	answer_status("destroy_current", cuCtxDestroy(two));
	answer_status("current_after_destroy", cuCtxGetCurrent(&got));
	answer_yes("current_after_destroy_first", got == first);
	answer_yes("current_after_destroy_null", got == NULL);
	answer_status("synchronize_after_destroy", cuCtxSynchronize());
	answer_status("destroy_null", cuCtxDestroy(NULL));
}

static void destroyed(void)
{
	CUcontext one;
	CUdevice device;

	NEED(cuInit(0));
	NEED(cuCtxCreate(&one, NULL, 0, 0));
	NEED(cuCtxPushCurrent(one));
	NEED(cuCtxDestroy(one));
	answer_status("stacked_synchronize", cuCtxSynchronize());
	answer_status("stacked_device", cuCtxGetDevice(&device));
	answer_status("destroyed_set", cuCtxSetCurrent(one));
	answer_status("destroyed_push", cuCtxPushCurrent(one));
	answer_status("destroyed_destroy", cuCtxDestroy(one));
}

static void destroying_frees(void)
{
	CUcontext one;
	CUdeviceptr memory;
	CUstream stream;

	NEED(cuCtxCreate(&one, NULL, 0, 0));
	NEED(cuMemAlloc(&memory, 4096));
	NEED(cuStreamCreate(&stream, 0));
	NEED(cuMemsetD8Async(memory, 1, 4096, stream));
	answer_status("destroy_busy", cuCtxDestroy(one));
	enter();
	answer_status("free_of_destroyed", cuMemFree(memory));
	answer_status("set_of_destroyed", cuMemsetD8(memory, 0, 16));
}

static void other_context(void)
{
	CUcontext first, one;
	CUdeviceptr memory = device_memory(64);
	CUstream stream;
	CUevent event;
	uint32_t word = 5;

	NEED(cuCtxGetCurrent(&first));
	NEED(cuStreamCreate(&stream, 0));
	NEED(cuEventCreate(&event, 0));
	CUfunction store = kernel("store");
	void *parameters[] = {&memory, &word};
	NEED(cuCtxCreate(&one, NULL, 0, 0));
	answer_status("other_copy", cuMemcpyHtoD(memory, &word, 4));
	answer_status("other_set", cuMemsetD8(memory, 0, 4));
	answer_status("other_stream_synchronize", cuStreamSynchronize(stream));
	answer_status("other_set_on_stream", cuMemsetD8Async(memory, 0, 4, stream));
	answer_status("other_event_record", cuEventRecord(event, NULL));
	answer_status("other_event_record_own_stream", cuEventRecord(event, stream));
	answer_status("other_launch_null_stream", cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	answer_status("other_launch_own_stream", cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
	answer_status("other_free", cuMemFree(memory));
	NEED(cuCtxDestroy(one));
}

static void limits(void)
{
	size_t value = 0;
	CUfunc_cache cache = CU_FUNC_CACHE_PREFER_L1;
	int low = 9, high = 9;

	answer_status("limit_stack", cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	answer_number("limit_stack_value", (long long)value);
	answer_status("limit_stack_set", cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	NEED(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	answer_number("limit_stack_set_value", (long long)value);
	answer_status("limit_printf", cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
	answer_number("limit_printf_value", (long long)value);
	answer_status("limit_heap", cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
	answer_number("limit_heap_value", (long long)value);
	answer_status("limit_unknown", cuCtxGetLimit(&value, (CUlimit)999));
	answer_status("limit_set_unknown", cuCtxSetLimit((CUlimit)999, 1));
	answer_status("limit_null", cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
	answer_status("cache_config", cuCtxGetCacheConfig(&cache));
	answer_number("cache_config_value", cache);
	answer_status("cache_config_set", cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_SHARED));
	answer_status("cache_config_bad", cuCtxSetCacheConfig((CUfunc_cache)77));
	answer_status("priorities", cuCtxGetStreamPriorityRange(&low, &high));
	answer("priorities_value", "%d to %d", low, high);
	answer_status("priorities_null", cuCtxGetStreamPriorityRange(NULL, NULL));
	answer_status("persisting_reset", cuCtxResetPersistingL2Cache());
	answer_status("flags_set", cuCtxSetFlags(CU_CTX_SCHED_SPIN));
	answer_status("flags_bad", cuCtxSetFlags(0x7));
	answer_status("peer_self", cuCtxEnablePeerAccess(NULL, 0));
	CUcontext self;
	NEED(cuCtxGetCurrent(&self));
	answer_status("peer_own", cuCtxEnablePeerAccess(self, 0));
	answer_status("peer_disable_own", cuCtxDisablePeerAccess(self));
	answer_status("record_event_null", cuCtxRecordEvent(self, NULL));
}

static void *in_thread(void *argument)
{
	CUcontext got = (CUcontext)argument;

	answer_status("thread_current", cuCtxGetCurrent(&got));
	answer_yes("thread_current_null", got == NULL);
	answer_status("thread_synchronize", cuCtxSynchronize());
	answer_status("thread_set", cuCtxSetCurrent((CUcontext)argument));
	answer_status("thread_synchronize_set", cuCtxSynchronize());
	return NULL;
}

static void threads(void)
{
	CUcontext current;
	pthread_t thread;

	NEED(cuCtxGetCurrent(&current));
	if (pthread_create(&thread, NULL, in_thread, current) == 0)
		pthread_join(thread, NULL);
}

static const struct topic topics[] = {
	{.name = "stack", .ask = stack},
	{.name = "destroying_frees", .ask = destroying_frees},
	{.name = "other_context", .ask = other_context, .alone = true},
	{.name = "limits", .ask = limits},
	{.name = "threads", .ask = threads},
	{.name = NULL},
};
const struct family context_family = {.name = "context", .topics = topics};

static const struct topic bare_topics[] = {
	{.name = "primary", .ask = primary},
	{.name = "destroyed", .ask = destroyed},
	{.name = NULL},
};
const struct family primary_family = {.name = "primary", .topics = bare_topics, .bare = true};
