/*
 * A graph of one kernel with 400 pointers, each beside ranges: what is kept to name it in a record grows with the
 * pointers, not with their square.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

#define POINTERS 400
#define STEP 8192

static long peak_mb(void)
{
	char line[256];
	long peak = 0;
	FILE *file = fopen("/proc/self/status", "r");
	EXPECT(file);
	while (fgets(line, sizeof line, file))
		if (!strncmp(line, "VmPeak:", 7))
			peak = atol(line + 7) / 1024;
	fclose(file);
	return peak;
}

/* many(pointers): stores 2 through each, as all of them hold. */
static CUfunction many(void)
{
	static char text[1 << 16];
	int used = sprintf(
		text,
		".version 7.0\n.target sm_50\n.address_size 64\n"
		".visible .entry many(.param .align 8 .b8 s[%d])\n{\n.reg .b64 %%a;\n.reg .b32 %%v;\nmov.u32 %%v, 2;\n",
		8 * POINTERS);
	for (int i = 0; i < POINTERS; i++)
		used += sprintf(text + used, "ld.param.u64 %%a, [s+%d];\nst.global.u32 [%%a], %%v;\n", 8 * i);
	sprintf(text + used, "ret;\n}\n");
	CUfunction function;
	CHECK(cuModuleLoadData(&module, text));
	CHECK(cuModuleGetFunction(&function, module, "many"));
	return function;
}

int main(void)
{
	static uint64_t pointers[POINTERS];
	CUdeviceptr pool;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	struct cuconst_stats stats = {.size = sizeof stats};
	start();
	CHECK(cuMemAlloc(&pool, POINTERS * STEP));
	for (int i = 0; i < POINTERS; i++)
		pointers[i] = pool + (CUdeviceptr)i * STEP + STEP / 2;
	void *params[] = {pointers};
	CUDA_KERNEL_NODE_PARAMS kernel_params = kernel_node(many(), 1, params);
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddKernelNode(&node, graph, NULL, 0, &kernel_params));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < POINTERS; i++)
		protect(pool + (CUdeviceptr)i * STEP, STEP / 2, "weights");
	long before = peak_mb();
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(peak_mb() - before < 500);
	CHECK(cuconst_stats(&stats));
	EXPECT(stats.verified >= POINTERS && stats.violations == 0);
	return 0;
}
