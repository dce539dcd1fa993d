/*
 * The end of the primary context ends the protections of its own memory; another context of the device, and what is
 * protected there, live on.
 *
 * expect log exit 0 "cuconst: ended: cuDevicePrimaryCtxRelease_v2 ended the protection of read-only 'p' unchecked"
 * expect deny exit 0 "cuconst: ended: cuDevicePrimaryCtxRelease_v2 ended the protection of read-only 'p' unchecked"
 */
#include "misuse.h"

int main(void)
{
	CUcontext other;
	CUdeviceptr r;
	struct cuconst_range_info info;
	size_t count = 0;
	start();
	cuconst_handle gone = protect(p, SIZE, "p");
	CHECK(cuCtxCreate(&other, NULL, 0, 0));
	CHECK(cuMemAlloc(&r, SIZE));
	CHECK(cuMemsetD8(r, 1, SIZE));
	cuconst_handle stays = protect(r, SIZE, "r");
	CHECK(cuDevicePrimaryCtxRelease(0));
	EXPECT(cuconst_unprotect(gone) == CUCONST_ERROR_STALE_HANDLE);
	CHECK(cuconst_query(r, SIZE, &info, 1, &count));
	EXPECT(count == 1 && info.handle == stays);
	EXPECT(refused(cuMemsetD8(r, 2, SIZE)));
	EXPECT(cuconst_unprotect(stays) == CUCONST_OK);
	CHECK(cuCtxDestroy(other));
	return 0;
}
