/* Arrays of one, two and three dimensions, and the copies that reach them. */
#include "tests/softgpu/tests/check.h"

static void lines(void)
{
	CUDA_ARRAY_DESCRIPTOR asked = {.Width = 100, .Format = CU_AD_FORMAT_SIGNED_INT16, .NumChannels = 2}, got;
	CUarray array = NULL, other = NULL;
	CUdeviceptr memory;
	unsigned char host[400], back[400] = {0};

	enter(0);
	for (int i = 0; i < 400; i++)
		host[i] = (unsigned char)i;
	OK(cuArrayCreate(&array, &asked));
	OK(cuArrayCreate(&other, &asked));
	OK(cuArrayGetDescriptor(&got, array));
	CHECK(memcmp(&got, &asked, sizeof(got)) == 0);
	OK(cuMemcpyHtoA(array, 0, host, 400));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(array, 1, host, 400));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(array, SIZE_MAX, host, 4));
	OK(cuMemcpyAtoA(other, 8, array, 4, 100));
	OK(cuMemcpyAtoH(back, other, 8, 100));
	CHECK(memcmp(back, host + 4, 100) == 0);
	OK(cuMemAlloc(&memory, 64));
	OK(cuMemcpyAtoD(memory, array, 300, 64));
	OK(cuMemcpyDtoA(array, 0, memory, 64));
	OK(cuMemcpyAtoHAsync(back, array, 0, 400, NULL));
	CHECK(memcmp(back, host + 300, 64) == 0 && memcmp(back + 64, host + 64, 336) == 0);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoD(memory, array, 0, 65));
	OK(cuArrayDestroy(other));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(other));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuMemcpyHtoA(other, 0, host, 4));
	leave(0);
}

static void planes_and_boxes(void)
{
	CUDA_ARRAY_DESCRIPTOR plane = {.Width = 8, .Height = 6, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
	CUDA_ARRAY3D_DESCRIPTOR box = {.Width = 8,
	                               .Height = 6,
	                               .Depth = 3,
	                               .Format = CU_AD_FORMAT_UNSIGNED_INT8,
	                               .NumChannels = 1},
				got;
	CUarray flat, deep;
	float host[48], back[48] = {0};
	unsigned char cells[144], seen[144] = {0};

	enter(0);
	for (int i = 0; i < 48; i++)
		host[i] = (float)i;
	for (int i = 0; i < 144; i++)
		cells[i] = (unsigned char)i;
	OK(cuArrayCreate(&flat, &plane));
	CUDA_MEMCPY2D to = {.srcMemoryType = CU_MEMORYTYPE_HOST,
	                    .srcHost = host,
	                    .srcPitch = 32,
	                    .dstMemoryType = CU_MEMORYTYPE_ARRAY,
	                    .dstArray = flat,
	                    .WidthInBytes = 32,
	                    .Height = 6};
	CUDA_MEMCPY2D from = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
	                      .srcArray = flat,
	                      .srcXInBytes = 8,
	                      .srcY = 2,
	                      .dstMemoryType = CU_MEMORYTYPE_HOST,
	                      .dstHost = back,
	                      .dstPitch = 16,
	                      .WidthInBytes = 16,
	                      .Height = 4};
	OK(cuMemcpy2D(&to));
	OK(cuMemcpy2D(&from));
	CHECK(back[0] == 18 && back[3] == 21 && back[4] == 26 && back[15] == 45);
	from.Height = 5;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&from));
	from.Height = 4;
	from.WidthInBytes = 28;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&from));

	OK(cuArray3DCreate(&deep, &box));
	OK(cuArray3DGetDescriptor(&got, deep));
	CHECK(got.Depth == 3 && got.Height == 6 && got.Width == 8);
	CUDA_MEMCPY3D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
	                    .srcHost = cells,
	                    .srcPitch = 8,
	                    .srcHeight = 6,
	                    .dstMemoryType = CU_MEMORYTYPE_ARRAY,
	                    .dstArray = deep,
	                    .WidthInBytes = 8,
	                    .Height = 6,
	                    .Depth = 3};
	CUDA_MEMCPY3D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
	                     .srcArray = deep,
	                     .srcXInBytes = 2,
	                     .srcY = 1,
	                     .srcZ = 1,
	                     .dstMemoryType = CU_MEMORYTYPE_HOST,
	                     .dstHost = seen,
	                     .dstPitch = 4,
	                     .dstHeight = 2,
	                     .WidthInBytes = 4,
	                     .Height = 2,
	                     .Depth = 2};
	OK(cuMemcpy3D(&in));
	OK(cuMemcpy3D(&out));
	CHECK(seen[0] == 58 && seen[4] == 66 && seen[8] == 106 && seen[15] == 117);
	in.dstZ = 1;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&in));
	leave(0);
}

static void misuse(void)
{
	CUDA_ARRAY3D_DESCRIPTOR good = {.Width = 8, .Height = 8, .Format = CU_AD_FORMAT_HALF, .NumChannels = 4},
				bad = good;
	CUarray array = NULL;
	size_t before, after, total;

	enter(0);
	OK(cuMemGetInfo(&before, &total));
	bad.NumChannels = 3;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &bad));
	bad = good;
	bad.Height = 0;
	bad.Depth = 4;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &bad));
	bad = good;
	bad.Width = SIZE_MAX;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &bad));
	bad = good;
	bad.Flags = CUDA_ARRAY3D_LAYERED;
	STATUS(CUDA_ERROR_NOT_SUPPORTED, cuArray3DCreate(&array, &bad));
	bad = good;
	bad.Format = CU_AD_FORMAT_NV12;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &bad));
	CHECK(array == NULL);
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy((CUarray)(uintptr_t)&good));
	/* What a context leaves behind goes with it. */
	CUcontext context;
	OK(cuCtxCreate(&context, NULL, 0, 0));
	OK(cuArray3DCreate(&array, &good));
	OK(cuCtxDestroy(context));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
	OK(cuMemGetInfo(&after, &total));
	CHECK(before == after);
	leave(0);
}

MAIN(T(lines), T(planes_and_boxes), T(misuse))
