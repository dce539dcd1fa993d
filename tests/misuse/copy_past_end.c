/*
 * Copies and sets that begin in a range and run out of the memory: the driver refuses them, so they are the program's
 * error and no violation. In each mode the program gets the driver's own answer, and nothing is written.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

int main(void)
{
	start();
	CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {props.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle memory;
	CUdeviceptr m, from;
	size_t bytes;
	CHECK(cuMemGetAllocationGranularity(&bytes, &props, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CHECK(cuMemCreate(&memory, bytes, &props, 0));
	CHECK(cuMemAddressReserve(&m, 2 * bytes, 0, 0, 0)); /* so that behind it there is nothing */
	CHECK(cuMemMap(m, bytes, 0, memory, 0));
	CHECK(cuMemSetAccess(m, bytes, &access, 1));
	CHECK(cuMemAlloc(&from, 2 * bytes));
	CHECK(cuMemsetD8(m, 1, bytes));
	protect(m, bytes, "m");
	EXPECT(cuMemcpyDtoD(m, from, bytes + 1) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyDtoDAsync(m + bytes - 4, from, 8, stream) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemsetD8(m + 1, 7, bytes) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemsetD2D8(m, bytes, 7, 4, 2) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(byte_at(m) == 1 && byte_at(m + bytes - 1) == 1);
	CHECK(cuconst_check(0));
	return 0;
}
