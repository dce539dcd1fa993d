/*
 * A write in the body of a condition that does not hold: nothing is written, and nothing is said. deny cannot know, and
 * refuses.
 *
 * expect log exit 0 ""
 * expect deny exit 0 "cuconst: denied: cuGraphLaunch (memset node) would write 64 bytes of read-only 'p'"
 * expect strict exit 0 ""
 */
#include "conditional.h"

int main(void)
{
	start();
	CUgraphExec exec = conditional_set(CU_GRAPH_COND_TYPE_IF, 0, 1, 0);
	protect(p, SIZE, "p");
	EXPECT(refused(cuGraphLaunch(exec, stream)));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(p) == 1);
	return 0;
}
