/*
 * A device's access to protected memory is taken away: the protection ends, and no check touches the memory any more.
 *
 * expect log exit 0 "cuconst: ended: cuMemSetAccess ended the protection of read-only 'm' unchecked"
 * expect deny exit 0 "cuconst: ended: cuMemSetAccess ended the protection of read-only 'm' unchecked"
 * expect strict exit 0 "cuconst: ended: cuMemSetAccess ended the protection of read-only 'm' unchecked"
 */
#include "misuse.h"

int main(void)
{
	start();
	CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {props.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle memory;
	CUdeviceptr m;
	size_t bytes;
	CHECK(cuMemGetAllocationGranularity(&bytes, &props, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CHECK(cuMemCreate(&memory, bytes, &props, 0));
	CHECK(cuMemAddressReserve(&m, bytes, 0, 0, 0));
	CHECK(cuMemMap(m, bytes, 0, memory, 0));
	CHECK(cuMemSetAccess(m, bytes, &access, 1));
	CHECK(cuMemsetD8(m, 1, bytes));
	cuconst_handle handle = protect(m, SIZE, "m");

	/* One that may only read is as good as before. */
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	CHECK(cuMemSetAccess(m, bytes, &access, 1));
	CHECK(cuconst_check(handle));
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	CHECK(cuMemSetAccess(m, bytes, &access, 1));
	EXPECT(cuconst_check(handle) != CUCONST_OK);
	CHECK(cuconst_check(0));
	CHECK(cuCtxSynchronize());
	fill(q, 7, COUNT);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(q) == 7);
	return 0;
}
