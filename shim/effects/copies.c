/* Copies and sets: plain, pitched, 3-D, batches. Directions do not matter: a protected destination is found by its address. */
#include "shim/effects/call.h"
#include "shim/twins/serve.h"

void effect_line(struct call *call, uint64_t address, uint64_t bytes)
{
	struct extent extent = {.address = address, .width = bytes, .rows = 1, .slices = 1};
	call_add_write(call, &extent, NULL);
}

void effect_rows(struct call *call, uint64_t address, uint64_t pitch, uint64_t width, uint64_t rows)
{
	struct extent extent = {.address = address, .width = width, .pitch = pitch, .rows = rows, .slices = 1};
	call_add_write(call, &extent, NULL);
}

void effect_batch(struct call *call, const CUdeviceptr *addresses, const size_t *sizes, size_t count)
{
	count = call_list_count(addresses, sizeof *addresses, count);
	count = call_list_count(sizes, sizeof *sizes, count);
	for (size_t i = 0; i < count; i++)
		effect_line(call, addresses[i], sizes[i]);
}

/* The box that a copy descriptor writes; false: a CUDA array, which has no address that could be protected. */
static bool copy_box(CUmemorytype type, uint64_t device, uint64_t host, uint64_t x, uint64_t y, uint64_t z,
                     uint64_t pitch, uint64_t height, uint64_t width, uint64_t rows, uint64_t slices,
                     struct extent *ret_extent)
{
	if (type == CU_MEMORYTYPE_ARRAY)
		return false;
	uint64_t base = type == CU_MEMORYTYPE_HOST ? host : device;
	/* A pitch of 0 means "as wide as the copy", a height of 0 "as high" (only legal with one row or one slice). */
	pitch = pitch ? pitch : width;
	uint64_t slice_pitch = pitch * (height ? height : rows);
	*ret_extent = (struct extent){.address = base + x + y * pitch + z * slice_pitch,
	                              .width = width,
	                              .pitch = pitch,
	                              .rows = rows,
	                              .slice_pitch = slice_pitch,
	                              .slices = slices};
	return true;
}

void effect_copy_box(struct call *call, CUmemorytype type, uint64_t device, void *host, uint64_t x, uint64_t y,
                     uint64_t z, uint64_t pitch, uint64_t height, uint64_t width, uint64_t rows, uint64_t slices)
{
	struct extent extent;
	/* A type that is none is refused for plain memory; for mapped memory a driver (580) takes it for an address. */
	if (type < CU_MEMORYTYPE_HOST || type > CU_MEMORYTYPE_UNIFIED)
		call->overrun |= serve_context(device) != NULL;
	if (copy_box(type, device, address_of(host), x, y, z, pitch, height, width, rows, slices, &extent))
		call_add_write(call, &extent, NULL);
}

bool effect_copy3d_extent(const CUDA_MEMCPY3D *copy, struct extent *ret_extent)
{
	return copy_box(copy->dstMemoryType, copy->dstDevice, address_of(copy->dstHost), copy->dstXInBytes, copy->dstY,
	                copy->dstZ, copy->dstPitch, copy->dstHeight, copy->WidthInBytes, copy->Height, copy->Depth,
	                ret_extent);
}

/* Bytes of one element of an array; 1 when it cannot be told (both operands are then pointers, whose elements are bytes). */
static uint64_t element_bytes(const CUmemcpy3DOperand *operand)
{
	static const unsigned char format_bytes[] = {
		[CU_AD_FORMAT_UNSIGNED_INT8] = 1, [CU_AD_FORMAT_UNSIGNED_INT16] = 2, [CU_AD_FORMAT_UNSIGNED_INT32] = 4,
		[CU_AD_FORMAT_SIGNED_INT8] = 1,   [CU_AD_FORMAT_SIGNED_INT16] = 2,   [CU_AD_FORMAT_SIGNED_INT32] = 4,
		[CU_AD_FORMAT_HALF] = 2,          [CU_AD_FORMAT_FLOAT] = 4,          [CU_AD_FORMAT_UNORM_INT8X1] = 1,
		[CU_AD_FORMAT_UNORM_INT8X2] = 1,  [CU_AD_FORMAT_UNORM_INT8X4] = 1,   [CU_AD_FORMAT_UNORM_INT16X1] = 2,
		[CU_AD_FORMAT_UNORM_INT16X2] = 2, [CU_AD_FORMAT_UNORM_INT16X4] = 2,  [CU_AD_FORMAT_SNORM_INT8X1] = 1,
		[CU_AD_FORMAT_SNORM_INT8X2] = 1,  [CU_AD_FORMAT_SNORM_INT8X4] = 1,   [CU_AD_FORMAT_SNORM_INT16X1] = 2,
		[CU_AD_FORMAT_SNORM_INT16X2] = 2, [CU_AD_FORMAT_SNORM_INT16X4] = 2,
	};
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY || !drv.cuArray3DGetDescriptor_v2 ||
	    drv.cuArray3DGetDescriptor_v2(&descriptor, operand->op.array.array) != CUDA_SUCCESS ||
	    descriptor.Format >= sizeof format_bytes || !format_bytes[descriptor.Format])
		return 1;
	return (uint64_t)format_bytes[descriptor.Format] * descriptor.NumChannels;
}

void effect_batch3d(struct call *call, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t count)
{
	count = call_list_count(ops, sizeof *ops, count);
	for (size_t i = 0; i < count; i++) {
		const CUmemcpy3DOperand *dst = &ops[i].dst;
		if (dst->type != CU_MEMCPY_OPERAND_TYPE_POINTER)
			continue;
		uint64_t element = element_bytes(&ops[i].src);
		uint64_t width = ops[i].extent.width * element;
		/* Lengths of 0 mean "tightly packed". */
		uint64_t pitch = dst->op.ptr.rowLength ? dst->op.ptr.rowLength * element : width;
		uint64_t height = dst->op.ptr.layerHeight ? dst->op.ptr.layerHeight : ops[i].extent.height;
		struct extent extent = {.address = dst->op.ptr.ptr,
		                        .width = width,
		                        .pitch = pitch,
		                        .rows = ops[i].extent.height,
		                        .slice_pitch = pitch * height,
		                        .slices = ops[i].extent.depth};
		call_add_write(call, &extent, NULL);
	}
}

void effect_decompress(struct call *call, const CUmemDecompressParams *params, size_t count)
{
	count = call_list_count(params, sizeof *params, count);
	for (size_t i = 0; i < count; i++) {
		effect_line(call, address_of(params[i].dst), params[i].dstNumBytes);
		if (params[i].dstActBytes)
			effect_line(call, address_of(params[i].dstActBytes), sizeof *params[i].dstActBytes);
	}
}
