/* Streams, their order, callbacks; events. */
#include <unistd.h>

#include "tests/softgpu/conformance/conformance.h"

static void handles(void)
{
	CUstream s = NULL, t = NULL;
	unsigned flags = 77;
	int priority = 77;
	unsigned long long one = 0, two = 0;
	CUcontext context = NULL, current = NULL;
	CUdevice device = -1;

	NEED(cuCtxGetCurrent(&current));
	answer_status("create", cuStreamCreate(&s, 0));
	answer_status("create_null", cuStreamCreate(NULL, 0));
	answer_status("create_bad_flags", cuStreamCreate(&t, 77));
	answer_status("create_non_blocking", cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	answer_status("flags", cuStreamGetFlags(t, &flags));
	answer_number("flags_value", flags);
	answer_status("flags_of_null_stream", cuStreamGetFlags(NULL, &flags));
	answer_number("flags_of_null_stream_value", flags);
	answer_status("flags_null", cuStreamGetFlags(t, NULL));
	answer_status("priority", cuStreamGetPriority(s, &priority));
	answer_number("priority_value", priority);
	CUstream p;
	answer_status("with_priority", cuStreamCreateWithPriority(&p, 0, -100));
	NEED(cuStreamGetPriority(p, &priority));
	answer_number("with_priority_clamped", priority);
	answer_status("context", cuStreamGetCtx(s, &context));
	answer_yes("context_current", context == current);
	answer_status("context_of_null_stream", cuStreamGetCtx(NULL, &context));
	answer_status("context_of_legacy", cuStreamGetCtx(CU_STREAM_LEGACY, &context));
	answer_status("device", cuStreamGetDevice(s, &device));
	answer_number("device_value", device);
	answer_status("id", cuStreamGetId(s, &one));
	answer_status("id_second", cuStreamGetId(t, &two));
	answer_yes("id_differs", one != two);
	answer_status("id_of_null_stream", cuStreamGetId(NULL, &one));
	answer_status("id_of_legacy", cuStreamGetId(CU_STREAM_LEGACY, &two));
	answer_yes("id_null_is_legacy", one == two);
	answer_status("query_idle", cuStreamQuery(s));
	answer_status("synchronize_idle", cuStreamSynchronize(s));
	answer_status("query_null_stream", cuStreamQuery(NULL));
	answer_status("synchronize_legacy", cuStreamSynchronize(CU_STREAM_LEGACY));
	answer_status("synchronize_per_thread", cuStreamSynchronize(CU_STREAM_PER_THREAD));
	answer_status("destroy_null_stream", cuStreamDestroy(NULL));
	answer_status("destroy_legacy", cuStreamDestroy(CU_STREAM_LEGACY));
	CUstreamAttrValue value = {0}, got = {0};
	value.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC;
	answer_status("attribute_set", cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	answer_status("attribute_get", cuStreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &got));
	answer_number("attribute_value", got.syncPolicy);
	answer_status("attribute_unknown", cuStreamGetAttribute(s, (CUlaunchAttributeID)99, &got));
	answer_status("attributes_copy", cuStreamCopyAttributes(t, s));
	answer_status("destroy", cuStreamDestroy(s));
}

static void garbage(void)
{
	static char zeros[8192];

	answer_status("garbage_synchronize", cuStreamSynchronize((CUstream)zeros));
}

static void order(void)
{
	CUstream blocking, free_one;
	CUdeviceptr memory = device_memory(64);

	NEED(cuStreamCreate(&blocking, 0));
	NEED(cuStreamCreate(&free_one, CU_STREAM_NON_BLOCKING));
	kernels();
	hold_stream(blocking);
	answer_status("held_query", cuStreamQuery(blocking));
	NEED(cuMemsetD8Async(memory, 1, 4, NULL));
	answer_status("null_waits_for_blocking", cuStreamQuery(NULL));
	NEED(cuMemsetD8Async(memory, 1, 4, free_one));
	answer_status("non_blocking_goes_on", cuStreamSynchronize(free_one));
	CUstream other;
	NEED(cuStreamCreate(&other, 0));
	NEED(cuMemsetD8Async(memory, 2, 4, other));
	answer_status("blocking_waits_for_null", cuStreamQuery(other));
	CUevent event;
	NEED(cuEventCreate(&event, 0));
	NEED(cuEventRecord(event, blocking));
	answer_status("event_query_pending", cuEventQuery(event));
	NEED(cuStreamWaitEvent(free_one, event, 0));
	NEED(cuMemsetD8Async(memory, 3, 4, free_one));
	answer_status("waits_for_event", cuStreamQuery(free_one));
	release_streams();
	answer_status("released", cuCtxSynchronize());
	answer_status("released_query", cuStreamQuery(free_one));
	hold_stream(blocking);
	answer_status("destroy_busy", cuStreamDestroy(blocking));
	release_streams();
	answer_status("synchronize_after_destroy", cuCtxSynchronize());
}

static void host_to_host(void *status)
{
	CUdeviceptr memory;

	*(CUresult *)status = cuMemAlloc(&memory, 16);
}

static void in_callback(CUstream stream, CUresult status, void *seen)
{
	(void)stream;
	*(CUresult *)seen = status;
}

static void callbacks(void)
{
	CUstream s;
	CUresult seen = (CUresult)12345, inside = (CUresult)12345;

	NEED(cuStreamCreate(&s, 0));
	answer_status("host_function", cuLaunchHostFunc(s, host_to_host, &inside));
	answer_status("host_function_synchronize", cuStreamSynchronize(s));
	answer_status("call_in_host_function", inside);
	answer_status("host_function_null", cuLaunchHostFunc(s, NULL, NULL));
	answer_status("callback", cuStreamAddCallback(s, in_callback, &seen, 0));
	answer_status("callback_synchronize", cuStreamSynchronize(s));
	answer_status("callback_status", seen);
	answer_status("callback_flags", cuStreamAddCallback(s, in_callback, &seen, 1));
	answer_status("callback_null", cuStreamAddCallback(s, NULL, &seen, 0));
}

static const struct topic topics[] = {
	{.name = "handles", .ask = handles},
	{.name = "order", .ask = order},
	{.name = "callbacks", .ask = callbacks},
	{.name = "garbage", .ask = garbage, .alone = true},
	{.name = NULL},
};
const struct family stream_family = {.name = "stream", .topics = topics};

static void events(void)
{
	CUevent start = NULL, stop = NULL, untimed = NULL, event;
	CUstream s;
	float ms = -1;

	NEED(cuStreamCreate(&s, 0));
	answer_status("create", cuEventCreate(&start, 0));
	answer_status("create_null", cuEventCreate(NULL, 0));
	answer_status("create_bad_flags", cuEventCreate(&event, 0x100));
	answer_status("create_interprocess_timed", cuEventCreate(&event, CU_EVENT_INTERPROCESS));
	NEED(cuEventCreate(&stop, 0));
	NEED(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	answer_status("query_unrecorded", cuEventQuery(start));
	answer_status("synchronize_unrecorded", cuEventSynchronize(start));
	answer_status("wait_unrecorded", cuStreamWaitEvent(s, start, 0));
	answer_status("elapsed_unrecorded", cuEventElapsedTime(&ms, start, stop));
	answer_status("record", cuEventRecord(start, s));
	answer_status("record_null", cuEventRecord(NULL, s));
	answer_status("record_flags", cuEventRecordWithFlags(stop, s, 77));
	answer_status("record_with_flags", cuEventRecordWithFlags(stop, s, 0));
	answer_status("record_external_not_capturing", cuEventRecordWithFlags(stop, s, CU_EVENT_RECORD_EXTERNAL));
	NEED(cuEventRecord(untimed, s));
	NEED(cuStreamSynchronize(s));
	answer_status("query_done", cuEventQuery(stop));
	answer_status("elapsed", cuEventElapsedTime(&ms, start, stop));
	answer_yes("elapsed_not_negative", ms >= 0);
	answer_status("elapsed_null", cuEventElapsedTime(NULL, start, stop));
	answer_status("elapsed_untimed", cuEventElapsedTime(&ms, start, untimed));
	answer_status("wait_flags", cuStreamWaitEvent(s, start, 77));
	answer_status("wait_null", cuStreamWaitEvent(s, NULL, 0));
	hold_stream(s);
	NEED(cuEventRecord(stop, s));
	answer_status("elapsed_pending", cuEventElapsedTime(&ms, start, stop));
	answer_status("destroy_pending", cuEventDestroy(stop));
	release_streams();
	answer_status("destroy_null", cuEventDestroy(NULL));
	answer_status("destroy", cuEventDestroy(start));
	answer_status("synchronize", cuCtxSynchronize());
}

static const struct topic event_topics[] = {
	{.name = "events", .ask = events},
	{.name = NULL},
};
const struct family event_family = {.name = "event", .topics = event_topics};

static void memops(void)
{
	CUdeviceptr memory = device_memory(64);
	CUstream s;
	static CUstreamBatchMemOpParams list[257];

	NEED(cuStreamCreate(&s, 0));
	answer_status("write32", cuStreamWriteValue32(s, memory, 5, 0));
	answer_status("write32_odd", cuStreamWriteValue32(s, memory + 2, 5, 0));
	answer_status("write32_flags", cuStreamWriteValue32(s, memory, 5, 0x100));
	answer_status("write64", cuStreamWriteValue64(s, memory + 8, 5, 0));
	answer_status("write64_odd", cuStreamWriteValue64(s, memory + 4, 5, 0));
	answer_status("wait32", cuStreamWaitValue32(s, memory, 5, CU_STREAM_WAIT_VALUE_EQ));
	answer_status("wait32_flags", cuStreamWaitValue32(s, memory, 5, 0x100));
	answer_status("wait64", cuStreamWaitValue64(s, memory + 8, 5, CU_STREAM_WAIT_VALUE_GEQ));
	answer_status("wait_nor", cuStreamWaitValue32(s, memory, 0, CU_STREAM_WAIT_VALUE_NOR));
	answer_status("synchronize", cuStreamSynchronize(s));
	answer_number("written", word_at(memory));
	list[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	list[0].writeValue.address = memory;
	list[0].writeValue.value = 9;
	list[1] = list[0];
	list[1].writeValue.address = memory + 4;
	answer_status("batch", cuStreamBatchMemOp(s, 2, list, 0));
	answer_status("batch_none", cuStreamBatchMemOp(s, 0, list, 0));
	answer_status("batch_flags", cuStreamBatchMemOp(s, 1, list, 1));
	answer_status("batch_257", cuStreamBatchMemOp(s, 257, list, 0));
	list[1].operation = (CUstreamBatchMemOpType)99;
	answer_status("batch_unknown", cuStreamBatchMemOp(s, 2, list, 0));
	answer_status("batch_synchronize", cuStreamSynchronize(s));
	answer_status("write_null", cuStreamWriteValue32(s, 0, 5, 0));
	answer_status("write_garbage", cuStreamWriteValue32(s, 0x1000, 5, 0));
	answer_status("last_synchronize", cuStreamSynchronize(s));
}

static const struct topic memop_topics[] = {
	{.name = "memops", .ask = memops},
	{.name = NULL},
};
const struct family memop_family = {.name = "memop", .topics = memop_topics};
