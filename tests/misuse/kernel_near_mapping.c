/*
 * Two mappings side by side in one reservation, as a pool that grows has them: a kernel runs over from the one into a
 * range in the other.
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 2048 bytes of read-only 'next'"
 * expect strict exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) wrote 2048 bytes of read-only 'next'"
 */
#include "misuse.h"

int main(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle[2];
	CUdeviceptr base;
	size_t bytes;
	struct cuconst_stats stats = {.size = sizeof stats};
	start();
	CHECK(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CHECK(cuMemAddressReserve(&base, 2 * bytes, 0, 0, 0));
	for (int i = 0; i < 2; i++) {
		CHECK(cuMemCreate(&handle[i], bytes, &prop, 0));
		CHECK(cuMemMap(base + (CUdeviceptr)i * bytes, bytes, 0, handle[i], 0));
	}
	CHECK(cuMemSetAccess(base, 2 * bytes, &access, 1));
	CHECK(cuMemsetD8(base, 1, 2 * bytes));
	protect(base + bytes, SIZE, "next");
	fill(base + bytes - 2048, 7, COUNT);
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuconst_stats(&stats));
	EXPECT(stats.near == 1);
	return 0;
}
