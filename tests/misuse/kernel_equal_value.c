/*
 * A store of the value that is there changes nothing, and is not seen (README, limits).
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

int main(void)
{
	start();
	protect(p, SIZE, "p");
	fill(p, 0x01010101, COUNT);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
