/*
 * A node with twenty bodies, of which the nineteenth writes into the range.
 *
 * expect log exit 0 "cuconst: violation: cuGraphLaunch wrote 64 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: cuGraphLaunch (memset node) would write 64 bytes of read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: cuGraphLaunch wrote 64 bytes of read-only 'p'"
 */
#include "conditional.h"

int main(void)
{
	start();
	CUgraphExec exec = conditional_set(CU_GRAPH_COND_TYPE_SWITCH, 18, 20, 18);
	protect(p, SIZE, "p");
	EXPECT(refused(cuGraphLaunch(exec, stream)));
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
