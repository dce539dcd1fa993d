/*
 * The host memory of a launch on one of its threads: pieces that live as long as it. They come from slabs that later
 * launches get again, as a process launches often, and what malloc gives back the kernel has to clear.
 */
#ifndef SOFTGPU_PTX_SCRATCH_H
#define SOFTGPU_PTX_SCRATCH_H

#include <stddef.h>

struct slab;

/* Of one thread. All zero: empty. */
struct scratch {
	struct slab *slabs; /* pieces are cut from the first */
};

/* Zeroed bytes at a multiple of align, which is a power of two up to 4096; NULL when there is no memory. */
void *scratch_get(struct scratch *scratch, size_t bytes, size_t align);

/* All pieces end. */
void scratch_end(struct scratch *scratch);

#endif
