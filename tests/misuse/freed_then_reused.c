/*
 * Memory that was freed and comes again is nobody's read-only array any more.
 *
 * expect log exit 0 "cuconst: freed: cuMemFree_v2 freed read-only 'p'"
 * expect deny exit 0 "cuconst: freed: cuMemFree_v2 freed read-only 'p'"
 * expect strict exit 0 "cuconst: freed: cuMemFree_v2 freed read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	protect(p, SIZE, "p");
	CHECK(cuMemFree(p));
	CHECK(cuMemAlloc(&p, SIZE));
	CHECK(cuMemsetD8(p, 9, SIZE));
	fill(p, 7, COUNT);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
