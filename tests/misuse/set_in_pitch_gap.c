/*
 * A protected gap in a pitch is not written.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

int main(void)
{
	start();
	protect(p + 256 + 16, 240, "gap");
	CHECK(cuMemsetD2D8(p, 256, 9, 16, 8));
	return 0;
}
