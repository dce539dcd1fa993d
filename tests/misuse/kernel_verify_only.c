/*
 * A range marked verify-only: its address is rightly the base of stores beyond it, so deny compares bytes and does not
 * refuse.
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	cuconst_handle handle;
	start();
	CHECK(cuconst_protect(p, SIZE, "p", CUCONST_VERIFY_ONLY, NULL, &handle));
	fill(p, 7, COUNT);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
