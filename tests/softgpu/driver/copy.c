/* Copies: from what the application asked to rows of bytes, and the rows' way. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/softgpu/driver/array.h"
#include "tests/softgpu/driver/memory.h"
#include "tests/softgpu/driver/op.h"
#include "tests/softgpu/driver/probe.h"

struct side {
	CUmemorytype type;
	uint64_t address; /* after the offsets */
	size_t pitch, slice;
	const struct sg_context *context; /* that reaches for it */
	bool pageable;
};

/* The part of an array from (x, y, z) on. */
static CUresult resolve_array(struct side *side, CUarray handle, size_t x, size_t y, size_t z, const CUDA_MEMCPY3D *asked)
{
	const struct sg_array *array = sg_array_of(handle);

	if (array == NULL)
		return handle == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	if (x > array->row || asked->WidthInBytes > array->row - x || y > array->rows ||
	    asked->Height > array->rows - y || z > array->layers || asked->Depth > array->layers - z)
		return CUDA_ERROR_INVALID_VALUE;
	side->pitch = array->row;
	side->slice = array->row * array->rows;
	side->address = array->address + z * side->slice + y * side->pitch + x;
	return CUDA_SUCCESS;
}

/* One side of a copy: where its first byte is, and whether all its bytes are there. */
static CUresult resolve(struct side *side, uint64_t start, CUarray handle, size_t x, size_t y, size_t z, size_t pitch,
                        size_t height, const CUDA_MEMCPY3D *asked, bool write)
{
	size_t rows_before, offset, rows, reach;

	if (side->type == CU_MEMORYTYPE_ARRAY)
		return resolve_array(side, handle, x, y, z, asked);
	if (side->type != CU_MEMORYTYPE_HOST && side->type != CU_MEMORYTYPE_DEVICE && side->type != CU_MEMORYTYPE_UNIFIED)
		return CUDA_ERROR_INVALID_VALUE;
	/* Zero says that nothing lies between. */
	if (pitch == 0)
		pitch = x + asked->WidthInBytes;
	if (height == 0)
		height = y + asked->Height;
	if (pitch < x + asked->WidthInBytes || (asked->Depth > 1 && height < y + asked->Height))
		return CUDA_ERROR_INVALID_VALUE;
	side->pitch = pitch;
	if (__builtin_mul_overflow(pitch, height, &side->slice) || __builtin_mul_overflow(z, height, &rows_before) ||
	    __builtin_add_overflow(rows_before, y, &rows_before) || __builtin_mul_overflow(rows_before, pitch, &offset) ||
	    __builtin_add_overflow(offset, x, &offset) || __builtin_add_overflow(start, offset, &side->address) ||
	    __builtin_mul_overflow(asked->Depth - 1, height, &rows) ||
	    __builtin_add_overflow(rows, asked->Height - 1, &rows) || __builtin_mul_overflow(rows, pitch, &reach) ||
	    __builtin_add_overflow(reach, asked->WidthInBytes, &reach))
		return CUDA_ERROR_INVALID_VALUE;
	enum sg_place place = sg_place_of(side->context, side->address, reach, write);
	side->pageable = place == SG_PLACE_PAGEABLE;
	if (place == SG_PLACE_NOWHERE || (side->pageable && side->type == CU_MEMORYTYPE_DEVICE))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult sg_copy_plan(const CUDA_MEMCPY3D *asked, const struct sg_context *to_context,
                      const struct sg_context *from_context, struct sg_copy *ret_copy)
{
	struct side from = {.type = asked->srcMemoryType, .context = from_context};
	struct side to = {.type = asked->dstMemoryType, .context = to_context};

	*ret_copy = (struct sg_copy){.asked = *asked};
	if (asked->WidthInBytes == 0 || asked->Height == 0 || asked->Depth == 0)
		return CUDA_SUCCESS;
	/* What a real driver says of a destination whose type is none: wrong, but for mapped memory. */
	if (to.type < CU_MEMORYTYPE_HOST || to.type > CU_MEMORYTYPE_UNIFIED) {
		const struct sg_allocation *memory = sg_allocation_at(asked->dstDevice);
		if (memory != NULL && memory->kind == SG_MEMORY_MAPPING)
			to.type = CU_MEMORYTYPE_UNIFIED;
	}
	uint64_t source = from.type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)asked->srcHost : asked->srcDevice;
	uint64_t target = to.type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)asked->dstHost : asked->dstDevice;
	CUresult status = resolve(&from, source, asked->srcArray, asked->srcXInBytes, asked->srcY, asked->srcZ,
	                          asked->srcPitch, asked->srcHeight, asked, false);
	if (status == CUDA_SUCCESS)
		status = resolve(&to, target, asked->dstArray, asked->dstXInBytes, asked->dstY, asked->dstZ,
		                 asked->dstPitch, asked->dstHeight, asked, true);
	if (status != CUDA_SUCCESS)
		return status;
	ret_copy->to = to.address;
	ret_copy->from = from.address;
	ret_copy->width = asked->WidthInBytes;
	ret_copy->height = asked->Height;
	ret_copy->depth = asked->Depth;
	ret_copy->to_pitch = to.pitch;
	ret_copy->to_slice = to.slice;
	ret_copy->from_pitch = from.pitch;
	ret_copy->from_slice = from.slice;
	ret_copy->to_pageable = to.pageable;
	ret_copy->from_pageable = from.pageable;
	/* Rows without gaps on both sides are one row. */
	if (from.pitch == ret_copy->width && to.pitch == ret_copy->width &&
	    (ret_copy->depth == 1 || (from.slice == to.slice && from.slice == from.pitch * asked->Height))) {
		ret_copy->width *= ret_copy->height * ret_copy->depth;
		ret_copy->height = ret_copy->depth = 1;
	}
	return CUDA_SUCCESS;
}

/*
 * The kernel copies, so that a page that is not there is an error and no signal. Some sandboxes refuse the call: then
 * it is a plain copy.
 */
static bool careful_copy(uint64_t to, uint64_t from, size_t bytes, bool to_pageable)
{
	while (bytes > 0) {
		struct iovec here = {(void *)(uintptr_t)(to_pageable ? from : to), bytes};
		struct iovec there = {(void *)(uintptr_t)(to_pageable ? to : from), bytes};
		ssize_t done = to_pageable ? process_vm_writev(getpid(), &here, 1, &there, 1, 0)
		                           : process_vm_readv(getpid(), &here, 1, &there, 1, 0);
		if (done < 0 && (errno == ENOSYS || errno == EPERM)) {
			memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
			return true;
		}
		if (done <= 0)
			return false;
		to += (size_t)done;
		from += (size_t)done;
		bytes -= (size_t)done;
	}
	return true;
}

static bool copy_row(const struct sg_copy *copy, uint64_t to, uint64_t from)
{
	if (copy->to_pageable && copy->from_pageable) {
		/* Neither side is known to be there: by way of a buffer. */
		char buffer[4096];
		for (size_t done = 0, part; done < copy->width; done += part) {
			part = copy->width - done < sizeof(buffer) ? copy->width - done : sizeof(buffer);
			uint64_t middle = (uint64_t)(uintptr_t)buffer;
			if (!careful_copy(middle, from + done, part, false) ||
			    !careful_copy(to + done, middle, part, true))
				return false;
		}
		return true;
	}
	if (copy->to_pageable || copy->from_pageable)
		return careful_copy(to, from, copy->width, copy->to_pageable);
	memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, copy->width);
	return true;
}

/*
 * A graph replays copies long after they were checked, when their memory may be gone: then it is an error here too.
 * Memory of the device is there as long as its granules are live; other memory that is no longer known is approached
 * with care.
 */
static bool recheck(struct sg_copy *copy)
{
	uint64_t side[2] = {copy->to, copy->from};
	size_t pitch[2] = {copy->to_pitch, copy->from_pitch}, slice[2] = {copy->to_slice, copy->from_slice};
	bool *pageable[2] = {&copy->to_pageable, &copy->from_pageable};

	for (int i = 0; i < 2; i++) {
		size_t reach = (copy->depth - 1) * slice[i] + (copy->height - 1) * pitch[i] + copy->width;
		if (copy->staged != NULL && i == 1)
			continue;
		if (!sg_arena_holds(side[i])) {
			sg_lock();
			*pageable[i] = sg_place_of(NULL, side[i], reach, i == 0) != SG_PLACE_KNOWN;
			sg_unlock();
			continue;
		}
		for (size_t z = 0; z < copy->depth; z++)
			for (size_t y = 0; y < copy->height; y++)
				if (!sg_arena_check(side[i] + z * slice[i] + y * pitch[i], copy->width, SG_ANY_DEVICE,
				                    i == 0))
					return false;
	}
	return true;
}

CUresult sg_copy_run(struct sg_copy *copy)
{
	bool good = copy->width == 0 || recheck(copy);

	for (size_t z = 0; z < copy->depth && good && copy->width > 0; z++)
		for (size_t y = 0; y < copy->height && good; y++) {
			uint64_t to = copy->to + z * copy->to_slice + y * copy->to_pitch;
			good = copy_row(copy, to, copy->from + z * copy->from_slice + y * copy->from_pitch);
			if (good && sg_arena_holds(to))
				sg_probe_wrote(to, copy->width);
		}
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool sg_copy_stage(struct sg_copy *copy)
{
	struct sg_copy in = *copy;

	if (!copy->from_pageable || copy->width == 0)
		return true;
	copy->staged = malloc(copy->width * copy->height * copy->depth);
	if (copy->staged == NULL)
		return false;
	in.to = (uint64_t)(uintptr_t)copy->staged;
	in.to_pageable = false;
	in.to_pitch = copy->width;
	in.to_slice = copy->width * copy->height;
	bool good = true;
	for (size_t z = 0; z < in.depth && good; z++)
		for (size_t y = 0; y < in.height && good; y++)
			good = copy_row(&in, in.to + z * in.to_slice + y * in.to_pitch,
			                in.from + z * in.from_slice + y * in.from_pitch);
	if (!good) {
		free(copy->staged);
		copy->staged = NULL;
		return false;
	}
	copy->from = in.to;
	copy->from_pageable = false;
	copy->from_pitch = in.to_pitch;
	copy->from_slice = in.to_slice;
	return true;
}
