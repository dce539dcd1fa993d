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
/* Bytes of one channel of a format; 0: not a format of plain numbers. */
size_t sg_channel_bytes(CUarray_format format);
/* Frees the arrays of a context, at its end. */
void sg_arrays_end(struct sg_context *context);

/* texture.c: without the lock, by a kernel. Fits struct ptx_memory. */
bool sg_kernel_texture(void *data, uint64_t handle, struct ptx_texture *ret_texture);
/* With the lock held: frees the texture and surface objects of a context, at its end. */
void sg_textures_end(const struct sg_context *context);

#endif
