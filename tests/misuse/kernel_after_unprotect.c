/*
 * After the protection was lifted, writing is allowed.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

int main(void)
{
	start();
	cuconst_handle handle = protect(p, SIZE, "p");
	CHECK(cuconst_unprotect(handle));
	fill(p, 7, COUNT);
	CHECK(cuMemsetD8(p, 5, SIZE));
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
