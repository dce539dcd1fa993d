/*
 * A pointer inside a packed parameter lies at no multiple of 8 bytes of the parameter block. It is found in a graph's
 * node as it is in a launch.
 *
 * expect log exit 0 "cuconst: violation: cuGraphLaunch wrote 4 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	CUmodule loaded;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	struct cuconst_stats stats = {.size = sizeof stats};
	int value = 9;
	start();
	CHECK(cuModuleLoadData(&loaded, ".version 7.0\n.target sm_60\n.address_size 64\n"
	                                ".visible .entry packed(.param .u32 value, .param .align 4 .b8 pointer[8])\n{\n"
	                                "\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<2>;\n"
	                                "\tld.param.u32 %r1, [value];\n\tld.param.u32 %r2, [pointer];\n"
	                                "\tld.param.u32 %r3, [pointer+4];\n\tmov.b64 %rd1, {%r2, %r3};\n"
	                                "\tst.global.u32 [%rd1], %r1;\n\tret;\n}\n"));
	CUfunction function;
	CHECK(cuModuleGetFunction(&function, loaded, "packed"));
	protect(p, SIZE, "p");
	void *params[] = {&value, &p};
	CUDA_KERNEL_NODE_PARAMS launch = kernel_node(function, 1, params);
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddKernelNode(&node, graph, NULL, 0, &launch));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	value = 10;
	CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuconst_stats(&stats));
	EXPECT(stats.violations == 2);
	return 0;
}
