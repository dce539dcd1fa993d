/* 3-D batches out of arrays: lengths count the array's elements, of any format. The driver is one function. */
#include <criterion/criterion.h>

#include "shim/effects/call.h"
#include "shim/verdict/protect.h"

static CUDA_ARRAY3D_DESCRIPTOR array;

static CUresult get_descriptor(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray handle)
{
	*descriptor = array;
	return CUDA_SUCCESS;
}

/* Does a copy of 16 elements to 0x1000 write the byte at 0x1000 + offset? */
static bool writes(CUarray_format format, unsigned channels, uint64_t offset)
{
	const struct registry_spec spec = {.start = 0x1000 + offset, .end = 0x1001 + offset};
	CUDA_MEMCPY3D_BATCH_OP op = {.extent = {.width = 16, .height = 1, .depth = 1}};
	struct call call;
	registry_handle handle;
	array = (CUDA_ARRAY3D_DESCRIPTOR){.Width = 16, .Height = 1, .Format = format, .NumChannels = channels};
	drv.cuArray3DGetDescriptor_v2 = get_descriptor;
	op.src.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
	op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	op.dst.op.ptr.ptr = 0x1000;
	cr_assert_eq(protect_start(), 0);
	cr_assert_eq(registry_insert(protect_ranges(), &spec, &handle, NULL), 0);
	call_begin(&call, ENTRY_cuMemcpy3DBatchAsync_v2, CU_STREAM_LEGACY, NULL);
	effect_batch3d(&call, &op, 1);
	bool written = call.write_count;
	call_end(&call);
	cr_assert_eq(registry_remove(protect_ranges(), handle, NULL), 0);
	return written;
}

Test(batch, bytes_of_an_element)
{
	static const struct {
		CUarray_format format;
		unsigned channels, bytes;
	} cases[] = {
		{CU_AD_FORMAT_UNSIGNED_INT8, 1, 1}, {CU_AD_FORMAT_HALF, 4, 8},
		{CU_AD_FORMAT_FLOAT, 4, 16},        {CU_AD_FORMAT_UNORM_INT8X4, 4, 4},
		{CU_AD_FORMAT_UNORM_INT16X1, 1, 2}, {CU_AD_FORMAT_UNORM_INT16X4, 4, 8},
		{CU_AD_FORMAT_SNORM_INT16X2, 2, 4},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint64_t bytes = 16ull * cases[i].bytes;
		cr_assert(writes(cases[i].format, cases[i].channels, bytes - 1), "format %u: too short", cases[i].format);
		cr_assert(!writes(cases[i].format, cases[i].channels, bytes), "format %u: too long", cases[i].format);
	}
}
