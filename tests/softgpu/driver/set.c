/* Sets: cuMemset* in all widths, one and two dimensions. */
#include <string.h>

#include "tests/softgpu/driver/capture.h"
#include "tests/softgpu/driver/memory.h"
#include "tests/softgpu/driver/op.h"
#include "tests/softgpu/driver/probe.h"
#include "tests/softgpu/driver/stream.h"

CUresult sg_set_plan(const struct sg_context *context, uint64_t to, size_t pitch, unsigned value, unsigned element,
                     size_t width, size_t height, struct sg_set *ret_set)
{
	size_t row, reach;

	if (element != 1 && element != 2 && element != 4)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_set = (struct sg_set){.to = to, .pitch = pitch, .value = value, .element = element};
	if (width == 0 || height == 0)
		return CUDA_SUCCESS;
	if (__builtin_mul_overflow(width, element, &row) || (height > 1 && pitch < row) || to % element != 0 ||
	    (height > 1 && pitch % element != 0) || __builtin_mul_overflow(height - 1, pitch, &reach) ||
	    __builtin_add_overflow(reach, row, &reach) || sg_place_of(context, to, reach, true) != SG_PLACE_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	ret_set->width = width;
	ret_set->height = height;
	return CUDA_SUCCESS;
}

CUresult sg_set_run(const struct sg_set *set)
{
	for (size_t y = 0; y < set->height && set->width > 0; y++) {
		uint64_t to = set->to + y * set->pitch;
		void *row = (void *)(uintptr_t)to;
		/* A graph may replay a set whose memory is gone. */
		if (sg_arena_holds(to) && !sg_arena_check(to, set->width * set->element, SG_ANY_DEVICE, true))
			return CUDA_ERROR_INVALID_VALUE;
		if (set->element == 1)
			memset(row, (int)(set->value & 0xff), set->width);
		for (size_t x = 0; set->element == 2 && x < set->width; x++)
			((uint16_t *)row)[x] = (uint16_t)set->value;
		for (size_t x = 0; set->element == 4 && x < set->width; x++)
			((uint32_t *)row)[x] = set->value;
		sg_probe_wrote(to, set->width * set->element);
	}
	return CUDA_SUCCESS;
}

static CUresult set_now(uint64_t to, size_t pitch, unsigned value, unsigned element, size_t width, size_t height,
                        CUstream handle, bool wait)
{
	struct sg_op op = {.kind = SG_OP_SET};
	struct sg_stream *stream;

	sg_lock();
	CUresult status = sg_stream_of(handle, &stream);
	if (status == CUDA_SUCCESS)
		status = sg_set_plan(stream->context, to, pitch, value, element, width, height, &op.set);
	if (status == CUDA_SUCCESS && (op.set.width > 0 || stream->capture != NULL))
		status = sg_submit(stream, &op, wait);
	sg_unlock();
	return status;
}

CUresult sg_cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	return set_now(dstDevice, 0, uc, 1, N, 1, NULL, true);
}

CUresult sg_cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
	return set_now(dstDevice, 0, us, 2, N, 1, NULL, true);
}

CUresult sg_cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
	return set_now(dstDevice, 0, ui, 4, N, 1, NULL, true);
}

CUresult sg_cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height)
{
	return set_now(dstDevice, dstPitch, uc, 1, Width, Height, NULL, true);
}

CUresult sg_cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height)
{
	return set_now(dstDevice, dstPitch, us, 2, Width, Height, NULL, true);
}

CUresult sg_cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height)
{
	return set_now(dstDevice, dstPitch, ui, 4, Width, Height, NULL, true);
}

CUresult sg_cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
	return set_now(dstDevice, 0, uc, 1, N, 1, hStream, false);
}

CUresult sg_cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
	return set_now(dstDevice, 0, us, 2, N, 1, hStream, false);
}

CUresult sg_cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
	return set_now(dstDevice, 0, ui, 4, N, 1, hStream, false);
}

CUresult sg_cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height,
                              CUstream hStream)
{
	return set_now(dstDevice, dstPitch, uc, 1, Width, Height, hStream, false);
}

CUresult sg_cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height,
                               CUstream hStream)
{
	return set_now(dstDevice, dstPitch, us, 2, Width, Height, hStream, false);
}

CUresult sg_cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height,
                               CUstream hStream)
{
	return set_now(dstDevice, dstPitch, ui, 4, Width, Height, hStream, false);
}
