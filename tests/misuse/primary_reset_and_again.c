/*
 * A reset takes what was loaded for checks along, also when nothing is protected just then; the next context has the
 * same handle.
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'again'"
 */
#include "misuse.h"

int main(void)
{
	start();
	CHECK(cuconst_unprotect(protect(p, SIZE, "p")));
	CHECK(cuDevicePrimaryCtxReset(0));
	start();
	cuconst_handle handle = protect(p, SIZE, "again");
	fill(p, 7, COUNT);
	EXPECT(cuconst_unprotect(handle) == CUCONST_OK);
	return 0;
}
