/* Physical memory of virtual memory management. */
#ifndef SOFTGPU_VMM_H
#define SOFTGPU_VMM_H

#include "tests/softgpu/driver/core.h"

/* A CUmemGenericAllocationHandle. The handles given out and each mapping hold a reference. */
struct sg_physical {
	CUmemAllocationProp prop;
	int fd; /* -1: a part of the arena's memory; else a memfd of its own, that other processes may have too */
	uint64_t offset; /* in that file */
	size_t bytes;
	bool imported; /* counts as memory of the device in the process that made it */
	unsigned handles, mappings;
};

/* With the lock held, all of them. The memory of a handle, or NULL. */
struct sg_physical *sg_physical_of(CUmemGenericAllocationHandle handle);
/*
 * A handle to memory that lies in the file, which the handle owns from then on; 0 without memory, and the file stays
 * open.
 */
CUmemGenericAllocationHandle sg_physical_adopt(const CUmemAllocationProp *prop, int fd, size_t bytes, bool imported);

#endif
