/*
 * The owner of a range may write: by a call and by a kernel.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

int main(void)
{
	start();
	struct cuconst_protect_info info = {.size = sizeof info, .owner = "owner_write*"};
	cuconst_handle handle;
	CHECK(cuconst_protect(p, SIZE, "p", 0, &info, &handle));
	CHECK(cuMemsetD8(p, 9, 16));
	fill(p, 7, COUNT);
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuconst_check(handle));
	CHECK(cuconst_unprotect(handle));
	return 0;
}
