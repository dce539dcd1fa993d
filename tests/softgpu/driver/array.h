/* Arrays: memory that only copies reach. Here their elements lie row after row, layer after layer. */
#ifndef SOFTGPU_ARRAY_H
#define SOFTGPU_ARRAY_H

#include "tests/softgpu/driver/context.h"

/* A CUarray. Layers of rows of bytes, without gaps. */
struct sg_array {
	struct sg_context *context;
	CUDA_ARRAY3D_DESCRIPTOR asked;
	uint64_t address;
	size_t row, rows, layers; /* a row in bytes */
};

/* With the lock held, both. */
struct sg_array *sg_array_of(CUarray handle);
/* Frees the arrays of a context, at its end. */
void sg_arrays_end(struct sg_context *context);

#endif
