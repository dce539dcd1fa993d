/*
 * Memory of another context than the current one is protected. It ends with its own context, and not with the current
 * one.
 *
 * expect log exit 0 "cuconst: ended: cuCtxDestroy_v2 ended the protection of read-only 'theirs' unchecked"
 * expect deny exit 0 "cuconst: ended: cuCtxDestroy_v2 ended the protection of read-only 'theirs' unchecked"
 */
#include "misuse.h"

int main(void)
{
	CUcontext other, created;
	CUdeviceptr theirs, mine;
	CUdevice device;
	start();
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuCtxCreate(&created, NULL, 0, device));
	CHECK(cuMemAlloc(&theirs, SIZE));
	CHECK(cuMemsetD8(theirs, 2, SIZE));
	CHECK(cuCtxPopCurrent(&other));
	EXPECT(other == created);
	cuconst_handle handle = protect(theirs, SIZE, "theirs");
	CHECK(cuCtxSetCurrent(created));
	CHECK(cuMemAlloc(&mine, SIZE));
	cuconst_handle stays = protect(p, SIZE, "p");
	CHECK(cuCtxDestroy(created));
	CHECK(cuCtxSetCurrent(context));
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_STALE_HANDLE);
	EXPECT(cuconst_unprotect(stays) == CUCONST_OK);
	return 0;
}
