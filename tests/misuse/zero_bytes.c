/*
 * Zero bytes write nothing.
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
	CHECK(cuMemcpyDtoD(p, q, 0));
	CHECK(cuMemsetD8(p, 9, 0));
	return 0;
}
