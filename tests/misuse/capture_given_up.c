/*
 * A capture that nobody ends goes with its stream, or with its context: checks are made again.
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	CUstream given_up;
	CUcontext other;
	start();
	cuconst_handle handle = protect(p, SIZE, "p");
	CHECK(cuStreamCreate(&given_up, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamBeginCapture(given_up, CU_STREAM_CAPTURE_MODE_RELAXED));
	EXPECT(cuconst_check(handle) == CUCONST_ERROR_BUSY);
	EXPECT(cuconst_unprotect(protect(q, SIZE, "q")) == CUCONST_ERROR_BUSY);
	CHECK(cuStreamDestroy(given_up));
	CHECK(cuconst_check(handle));

	CHECK(cuCtxCreate(&other, NULL, 0, 0));
	CHECK(cuStreamCreate(&given_up, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamBeginCapture(given_up, CU_STREAM_CAPTURE_MODE_RELAXED));
	EXPECT(cuconst_check(handle) == CUCONST_ERROR_BUSY);
	CHECK(cuCtxDestroy(other));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuconst_check(handle));
	fill(p, 7, COUNT);
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuconst_unprotect(handle));
	return 0;
}
