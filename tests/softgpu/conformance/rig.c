/* What many questions need: a context, memory, kernels, a stream that is busy for as long as one likes. */
#include <semaphore.h>

#include "tests/softgpu/conformance/conformance.h"

static CUmodule module;
static CUfunction store; /* found once: launch_store is also asked of contexts that are lost */

CUcontext enter(void)
{
	CUcontext context = NULL;

	NEED(cuInit(0));
	NEED(cuDevicePrimaryCtxRetain(&context, 0));
	NEED(cuCtxSetCurrent(context));
	module = NULL;
	store = NULL;
	return context;
}

CUdeviceptr device_memory(size_t bytes)
{
	CUdeviceptr address = 0;

	NEED(cuMemAlloc(&address, bytes));
	NEED(cuMemsetD8(address, 0, bytes));
	return address;
}

uint32_t word_at(CUdeviceptr address)
{
	uint32_t word = 0;

	NEED(cuMemcpyDtoH(&word, address, sizeof(word)));
	return word;
}

CUmodule kernels(void)
{
	if (module == NULL) {
		NEED(cuModuleLoadData(&module, conformance_ptx));
		NEED(cuModuleGetFunction(&store, module, "store"));
	}
	return module;
}

CUfunction kernel(const char *name)
{
	CUfunction function = NULL;

	NEED(cuModuleGetFunction(&function, kernels(), name));
	return function;
}

CUresult launch_store(CUstream stream, CUdeviceptr out, uint32_t value)
{
	void *parameters[] = {&out, &value};

	kernels();
	return cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static sem_t gate;
static int held;

static void wait_at_gate(void *unused)
{
	(void)unused;
	while (sem_wait(&gate) != 0)
		;
}

void hold_stream(CUstream stream)
{
	if (held == 0)
		sem_init(&gate, 0, 0);
	held++;
	NEED(cuLaunchHostFunc(stream, wait_at_gate, NULL));
}

void release_streams(void)
{
	for (; held > 0; held--)
		sem_post(&gate);
}
