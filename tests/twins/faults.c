/* Scenes about faults: a kernel that is given a view stores through it, and which launch it was is told. */
#include <unistd.h>

#include "swap.h"

/*
 * A view that is handed to a kernel, in every mode: the store faults, and the launch is named. Argument: what the
 * program ends with.
 */
static void view_stored(const char *argument)
{
	CUdeviceptr twin = view(w, 4096);
	int count = 10, store = 0;
	void *params[] = {&twin, &out, &count, &store};

	run("read_or_store", 1, params);
	EXPECT((int)result() == 45);
	store = 1;
	run("read_or_store", 1, params);
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	/* The error stays, and is one violation. */
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuMemcpyDtoH(&count, w, 4) == CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
	_exit(5); /* the program's own handling */
}

/* The first that the program hears of it is from a set that has nothing to do with any of it. */
static void view_stored_and_set(const char *argument)
{
	CUdeviceptr twin = view(w, 4096);
	int count = 10, store = 1;
	void *params[] = {&twin, &out, &count, &store};
	CUresult result = CUDA_SUCCESS;

	run("read_or_store", 1, params);
	for (int i = 0; i < 10000 && result == CUDA_SUCCESS; i++) {
		result = cuMemsetD8Async(out, 0, 8, stream);
		usleep(1000);
	}
	EXPECT(result == CUDA_ERROR_ILLEGAL_ADDRESS);
	_exit(5);
}

/* In deny nothing faults: the launch is refused, and the context goes on. */
static void view_refused(const char *argument)
{
	CUdeviceptr twin = view(w, 4096);
	int by = 1;
	void *params[] = {&twin, &by};

	EXPECT(cuLaunchKernel(function("add_each"), 1, 1, 1, 8, 1, 1, 0, stream, params, NULL) ==
	       CUDA_ERROR_NOT_PERMITTED);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(word_at(w) == 0 && word_at(w + 4) == 1);
}

/* Several launches that may have been it. */
static void several(const char *argument)
{
	CUdeviceptr twin = view(w, 4096);
	int count = 10, store = 0, by = 1;
	void *params[] = {&twin, &out, &count, &store}, *other[] = {&twin, &by};

	run("read_or_store", 1, params);
	CHECK(cuStreamSynchronize(stream)); /* this one is known to have ended well */
	run("read_or_store", 1, params);
	run("read_or_store", 1, params);
	run("add_each", 32, other);
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	_exit(5);
}

/* A store beyond all memory, with nothing of ours in flight: an error of the program's own. */
static void own_fault(const char *argument)
{
	CUdeviceptr twin = view(w, 4096), wild = 4096;
	int count = 10, store = 0, by = 1;
	void *params[] = {&twin, &out, &count, &store}, *other[] = {&wild, &by};

	run("read_or_store", 1, params);
	CHECK(cuCtxSynchronize());
	run("add_each", 1, other);
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	_exit(5);
}

/* A graph that stores into a view. */
static void view_in_graph(const char *argument)
{
	CUdeviceptr twin = view(w, 4096);
	int by = 1;
	void *params[] = {&twin, &by};
	CUgraph graph;
	CUgraphExec exec;

	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	run("add_each", 32, params);
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	_exit(5);
}

static void view_stored_at_exit(const char *argument)
{
	CUdeviceptr twin = view(w, 4096);
	int by = 1;
	void *params[] = {&twin, &by};

	run("add_each", 32, params);
}

static const struct scene scenes[] = {
	{"view_stored", view_stored},
	{"view_stored_and_set", view_stored_and_set},
	{"view_refused", view_refused},
	{"several", several},
	{"own_fault", own_fault},
	{"view_in_graph", view_in_graph},
	{"view_stored_at_exit", view_stored_at_exit},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	start();
	prepare();
	return scene_main(argc, argv, scenes);
}
