/*
 * Without a baseline calls are judged, launches by what the kernel's code says; no bytes are compared.
 *
 * expect log exit 0 ""
 * expect deny exit 0 "cuconst: denied: kernel fill (cuLaunchKernel, argument 0) would write read-only 'p'"
 * expect strict exit 0 ""
 * expect twins exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) would write read-only 'p', which the GPU refused: CUDA error 700 from cuStreamSynchronize"
 */
#include "misuse.h"

int main(void)
{
	start();
	cuconst_handle handle;
	CHECK(cuconst_protect(p, SIZE, "p", CUCONST_NO_BASELINE, NULL, &handle));
	guilty_fill(p, 7, COUNT);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
