/* Which memory a range lies in. Asks the driver; nothing is kept. */
#ifndef CUCONST_VERDICT_ALLOCATION_H
#define CUCONST_VERDICT_ALLOCATION_H

#include <stdint.h>

#include "shim/cuconst.h"
#include "shim/driver.h"

struct allocation {
	/*
	 * From the start of the range's first allocation to the end of its last one: what runs over the end of an array in there does not fault. Mappings of virtual memory
	 * management that lie side by side count as one.
	 */
	uint64_t start, end;
	int device;        /* ordinal; -1 unknown */
	CUcontext context; /* NULL: none of its own */
};

/*
 * Is every byte of [start, end) inside live allocations, one after the other (a reserved range may hold several mappings)? CUCONST_OK, or why not, with the
 * driver's answer in *ret_result.
 */
cuconst_result allocation_of(uint64_t start, uint64_t end, struct allocation *ret, CUresult *ret_result);

/* The allocation that holds an address, whichever context is current: cuMemGetAddressRange() knows only the current one's. The driver's answer. */
CUresult allocation_range(CUdeviceptr *ret_base, size_t *ret_bytes, uint64_t address);

#endif
