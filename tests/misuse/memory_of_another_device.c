/*
 * Memory of a second GPU is protected, written and freed while the first one's context is current. (With one GPU: of
 * another context.)
 *
 * expect log exit 0 "cuconst: violation: cuMemsetD8_v2 wrote 16 bytes of read-only 'theirs'"
 * expect deny exit 0 "cuconst: denied: cuMemsetD8_v2 would write 16 bytes of read-only 'theirs'"
 * expect strict exit 86 "cuconst: stopped: cuMemsetD8_v2 would write 16 bytes of read-only 'theirs'"
 */
#include "misuse.h"

int main(void)
{
	CUcontext other;
	CUdeviceptr theirs;
	int devices = 0;

	start();
	CHECK(cuDeviceGetCount(&devices));
	CHECK(cuCtxCreate(&other, NULL, 0, devices > 1));
	CHECK(cuMemAlloc(&theirs, SIZE));
	CHECK(cuMemsetD8(theirs, 2, SIZE));
	CHECK(cuCtxSynchronize());
	CHECK(cuCtxSetCurrent(context));
	cuconst_handle handle = protect(theirs, SIZE, "theirs");
	CHECK(cuCtxSetCurrent(other));
	EXPECT(refused(cuMemsetD8(theirs + 8, 9, 16)));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuMemFree(theirs));
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_STALE_HANDLE);
	CHECK(cuCtxDestroy(other));
	return 0;
}
