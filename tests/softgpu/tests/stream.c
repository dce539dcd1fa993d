/* Streams, events, callbacks, memory operations: order and asynchrony. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/softgpu/tests/check.h"

static atomic_int gate, step;

static void CUDA_CB wait_for_gate(void *data)
{
	while (atomic_load(&gate) == 0)
		nanosleep(&(struct timespec){0, 100000}, NULL);
	*(int *)data = atomic_fetch_add(&step, 1) + 1;
}

static void CUDA_CB note_step(void *data)
{
	*(int *)data = atomic_fetch_add(&step, 1) + 1;
}

static void reset(void)
{
	atomic_store(&gate, 0);
	atomic_store(&step, 0);
}

static void asynchronous(void)
{
	CUstream s;
	CUdeviceptr a;
	int first = 0, second = 0;

	enter(0);
	reset();
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&a, 4096));
	OK(cuLaunchHostFunc(s, wait_for_gate, &first));
	OK(cuMemsetD8Async(a, 9, 4096, s));
	OK(cuLaunchHostFunc(s, note_step, &second));
	STATUS(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
	/* Another stream is not held up. */
	OK(cuMemsetD8(a, 1, 16));
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(s));
	OK(cuStreamQuery(s));
	CHECK(first == 1 && second == 2);
	unsigned char back = 0;
	OK(cuMemcpyDtoH(&back, a, 1));
	CHECK(back == 9);
	leave(0);
}

static void legacy_order(void)
{
	CUstream blocking, free_running;
	int first = 0, second = 0, third = 0, aside = 0;

	enter(0);
	reset();
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING));
	OK(cuLaunchHostFunc(blocking, wait_for_gate, &first));
	OK(cuLaunchHostFunc(NULL, note_step, &second));
	OK(cuLaunchHostFunc(blocking, note_step, &third));
	OK(cuLaunchHostFunc(free_running, note_step, &aside));
	OK(cuStreamSynchronize(free_running));
	CHECK(aside == 1 && first == 0 && second == 0);
	atomic_store(&gate, 1);
	OK(cuCtxSynchronize());
	CHECK(first == 2 && second == 3 && third == 4);
	leave(0);
}

static void per_thread_default(void)
{
	int first = 0, second = 0;

	enter(0);
	reset();
	OK(cuLaunchHostFunc(CU_STREAM_PER_THREAD, wait_for_gate, &first));
	OK(cuLaunchHostFunc(CU_STREAM_LEGACY, note_step, &second));
	STATUS(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_PER_THREAD));
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(CU_STREAM_LEGACY));
	CHECK(first == 1 && second == 2);
	leave(0);
}

static void events(void)
{
	CUstream s, t;
	CUevent start, stop, untimed;
	int first = 0, second = 0;
	float ms = -1;

	enter(0);
	reset();
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&start, 0));
	OK(cuEventCreate(&stop, 0));
	OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&stop, 0x100));
	OK(cuEventQuery(start));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, start, stop));
	OK(cuEventRecord(start, s));
	OK(cuEventSynchronize(start));
	OK(cuLaunchHostFunc(s, wait_for_gate, &first));
	OK(cuEventRecord(stop, s));
	STATUS(CUDA_ERROR_NOT_READY, cuEventQuery(stop));
	STATUS(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, start, stop));
	OK(cuStreamWaitEvent(t, stop, 0));
	OK(cuLaunchHostFunc(t, note_step, &second));
	STATUS(CUDA_ERROR_NOT_READY, cuStreamQuery(t));
	nanosleep(&(struct timespec){0, 5000000}, NULL);
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(t));
	CHECK(first == 1 && second == 2);
	OK(cuEventSynchronize(stop));
	OK(cuEventElapsedTime(&ms, start, stop));
	CHECK(ms >= 4.0f && ms < 10000.0f);
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, start, untimed));
	OK(cuEventDestroy(stop));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy(stop));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(stop, s));
	leave(0);
}

static void memory_operations(void)
{
	CUstream s, t;
	CUdeviceptr a;
	unsigned back = 0;

	enter(0);
	OK(cuMemAlloc(&a, 64));
	OK(cuMemsetD8(a, 0, 64));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cuStreamWaitValue32(s, a, 5, CU_STREAM_WAIT_VALUE_GEQ));
	OK(cuStreamWriteValue32(s, a + 4, 77, 0));
	STATUS(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
	OK(cuStreamWriteValue32(t, a, 6, 0));
	OK(cuStreamSynchronize(s));
	OK(cuMemcpyDtoH(&back, a + 4, 4));
	CHECK(back == 77);
	CUstreamBatchMemOpParams list[2];
	memset(list, 0, sizeof(list));
	list[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	list[0].writeValue.address = a + 8;
	list[0].writeValue.value64 = 0x1122334455667788;
	list[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
	list[1].waitValue.address = a + 8;
	list[1].waitValue.value64 = 0x1122334455667788;
	list[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	OK(cuStreamBatchMemOp(s, 2, list, 0));
	OK(cuStreamSynchronize(s));
	OK(cuMemcpyDtoH(&back, a + 8, 4));
	CHECK(back == 0x55667788);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(s, a + 2, 1, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(s, 0x1000, 1, 0));
	OK(cuStreamBatchMemOp(s, 0, list, 0));
	leave(0);
}

static CUresult callback_status, inner_status;

static void CUDA_CB callback(CUstream stream, CUresult status, void *data)
{
	(void)stream;
	callback_status = status;
	inner_status = cuMemFree(*(CUdeviceptr *)data);
}

static void callbacks(void)
{
	CUstream s;
	CUdeviceptr a;

	enter(0);
	OK(cuMemAlloc(&a, 64));
	OK(cuStreamCreate(&s, 0));
	callback_status = inner_status = CUDA_ERROR_UNKNOWN;
	OK(cuStreamAddCallback(s, callback, &a, 0));
	OK(cuStreamSynchronize(s));
	CHECK(callback_status == CUDA_SUCCESS && inner_status == CUDA_ERROR_NOT_PERMITTED);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(s, NULL, NULL, 0));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(s, NULL, NULL));
	leave(0);
}

static void handles(void)
{
	CUstream s;
	unsigned flags = 9;
	int priority = 9;
	CUcontext context = NULL, current = enter(0);
	unsigned long long id = 0, other = 0;
	CUevent event;

	OK(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -100));
	OK(cuStreamGetFlags(s, &flags));
	OK(cuStreamGetPriority(s, &priority));
	OK(cuStreamGetCtx(s, &context));
	CHECK(flags == CU_STREAM_NON_BLOCKING && priority == -5 && context == current);
	OK(cuStreamGetId(s, &id));
	OK(cuStreamGetId(NULL, &other));
	CHECK(id != other);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&s, 77));
	OK(cuStreamDestroy(s));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(s));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(s));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize((CUstream)(uintptr_t)0x12345678));
	OK(cuEventCreate(&event, 0));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuEventQuery((CUevent)(uintptr_t)current));
	leave(0);
}

static void *hammer(void *argument)
{
	CUdeviceptr memory;
	CUstream stream;

	OK(cuCtxSetCurrent(argument));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 50; i++) {
		unsigned char back[64];
		OK(cuMemAllocAsync(&memory, 256, stream));
		OK(cuMemsetD8Async(memory, (unsigned char)i, 256, stream));
		OK(cuMemcpyDtoHAsync(back, memory, sizeof(back), stream));
		CHECK(back[0] == (unsigned char)i && back[63] == (unsigned char)i);
		OK(cuMemFreeAsync(memory, stream));
	}
	OK(cuStreamSynchronize(stream));
	OK(cuStreamDestroy(stream));
	return NULL;
}

static void many_threads(void)
{
	pthread_t threads[8];
	CUcontext context = enter(0);

	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, hammer, context);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	leave(0);
}

struct race {
	CUcontext context;
	CUstream stream;
	CUdeviceptr memory;
};

static void *copy_until_gone(void *argument)
{
	const struct race *race = argument;
	unsigned char back[4096];
	CUresult status;

	OK(cuCtxSetCurrent(race->context));
	do {
		status = cuMemcpyDtoHAsync(back, race->memory, sizeof(back), race->stream);
	} while (status == CUDA_SUCCESS);
	STATUS(CUDA_ERROR_INVALID_HANDLE, status);
	return NULL;
}

/* A stream is destroyed while other threads work in it, on their own thread and on the stream's. */
static void destroyed_under_work(void)
{
	struct race race = {.context = enter(0)};
	pthread_t threads[2];

	OK(cuMemAlloc(&race.memory, 4096));
	for (int round = 0; round < 50; round++) {
		OK(cuStreamCreate(&race.stream, round % 2 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
		for (int i = 0; i < 2; i++)
			pthread_create(&threads[i], NULL, copy_until_gone, &race);
		nanosleep(&(struct timespec){0, 200000}, NULL);
		OK(cuStreamDestroy(race.stream));
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
	}
	leave(0);
}

MAIN(T(destroyed_under_work), T(asynchronous), T(legacy_order), T(per_thread_default), T(events), T(memory_operations),
     T(callbacks), T(handles), T(many_threads))
