/*
 * Memory that one graph allocates and another frees, again and again: a protection ends with the free, and what the
 * next launch writes there is no violation.
 *
 * expect log exit 0 "cuconst: freed: cuGraphLaunch freed read-only 'm'"
 * expect deny exit 0 "cuconst: freed: cuGraphLaunch freed read-only 'm'"
 * expect strict exit 0 "cuconst: freed: cuGraphLaunch freed read-only 'm'"
 */
#include "misuse.h"

int main(void)
{
	start();
	CUgraph makes, frees;
	CUgraphExec make, release;
	CUgraphNode allocate, node;
	CUDA_MEM_ALLOC_NODE_PARAMS memory = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
		.bytesize = SIZE};
	CHECK(cuGraphCreate(&makes, 0));
	CHECK(cuGraphAddMemAllocNode(&allocate, makes, NULL, 0, &memory));
	CUDA_MEMSET_NODE_PARAMS set = {.dst = memory.dptr, .value = 9, .elementSize = 1, .width = SIZE, .height = 1};
	CHECK(cuGraphAddMemsetNode(&node, makes, &allocate, 1, &set, context));
	CHECK(cuGraphCreate(&frees, 0));
	CHECK(cuGraphAddMemFreeNode(&node, frees, NULL, 0, memory.dptr));
	CHECK(cuGraphInstantiate(&make, makes, 0));
	CHECK(cuGraphInstantiate(&release, frees, 0));
	for (int turn = 0; turn < 3; turn++) {
		CHECK(cuGraphLaunch(make, stream));
		CHECK(cuStreamSynchronize(stream));
		EXPECT(byte_at(memory.dptr) == 9);
		protect(memory.dptr, SIZE, "m");
		CHECK(cuGraphLaunch(release, stream));
		CHECK(cuStreamSynchronize(stream));
	}
	struct cuconst_stats counts = {.size = sizeof counts};
	CHECK(cuconst_stats(&counts));
	EXPECT(counts.violations == 0);
	return 0;
}
