/*
 * A kernel writes next to the range, in the same allocation.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

int main(void)
{
	start();
	protect(p, 2048, "p");
	fill(p + 2048, 7, 512);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
