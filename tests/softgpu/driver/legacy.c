/*
 * The entry points of CUDA 2, whose addresses and sizes have 32 bits. Device memory lies above 4 GiB here, so that no
 * such address is live: what takes one is widened and judged like any other; what would have to return one has nothing
 * to return.
 */
#include <string.h>

#include "tests/softgpu/driver/core.h"

CUresult sg_cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
	return dptr == NULL || bytesize == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sg_cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes, unsigned int Height,
                            unsigned int ElementSizeBytes)
{
	(void)ElementSizeBytes;
	return dptr == NULL || pPitch == NULL || WidthInBytes == 0 || Height == 0 ? CUDA_ERROR_INVALID_VALUE
	                                                                          : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sg_cuMemFree(CUdeviceptr_v1 dptr)
{
	return sg_cuMemFree_v2(dptr);
}

CUresult sg_cuMemGetInfo(unsigned int *free_bytes, unsigned int *total)
{
	size_t wide_free, wide_total;

	if (free_bytes == NULL || total == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult status = sg_cuMemGetInfo_v2(&wide_free, &wide_total);
	if (status == CUDA_SUCCESS) {
		*free_bytes = wide_free > UINT32_MAX ? UINT32_MAX : (unsigned)wide_free;
		*total = wide_total > UINT32_MAX ? UINT32_MAX : (unsigned)wide_total;
	}
	return status;
}

CUresult sg_cuMemGetAddressRange(CUdeviceptr_v1 *pbase, unsigned int *psize, CUdeviceptr_v1 dptr)
{
	(void)pbase;
	(void)psize;
	return sg_cuMemGetAddressRange_v2(NULL, NULL, dptr);
}

CUresult sg_cuMemcpyHtoD(CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount)
{
	return sg_cuMemcpyHtoD_v2(dstDevice, srcHost, ByteCount);
}

CUresult sg_cuMemcpyDtoH(void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount)
{
	return sg_cuMemcpyDtoH_v2(dstHost, srcDevice, ByteCount);
}

CUresult sg_cuMemcpyDtoD(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned int ByteCount)
{
	return sg_cuMemcpyDtoD_v2(dstDevice, srcDevice, ByteCount);
}

CUresult sg_cuMemcpyHtoDAsync(CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount, CUstream hStream)
{
	return sg_cuMemcpyHtoDAsync_v2(dstDevice, srcHost, ByteCount, hStream);
}

CUresult sg_cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount, CUstream hStream)
{
	return sg_cuMemcpyDtoHAsync_v2(dstHost, srcDevice, ByteCount, hStream);
}

CUresult sg_cuMemcpyDtoDAsync(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned int ByteCount, CUstream hStream)
{
	return sg_cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, hStream);
}

static CUDA_MEMCPY2D widen_2d(const CUDA_MEMCPY2D_v1 *narrow)
{
	return (CUDA_MEMCPY2D){
		.srcXInBytes = narrow->srcXInBytes,
		.srcY = narrow->srcY,
		.srcMemoryType = narrow->srcMemoryType,
		.srcHost = narrow->srcHost,
		.srcDevice = narrow->srcDevice,
		.srcArray = narrow->srcArray,
		.srcPitch = narrow->srcPitch,
		.dstXInBytes = narrow->dstXInBytes,
		.dstY = narrow->dstY,
		.dstMemoryType = narrow->dstMemoryType,
		.dstHost = narrow->dstHost,
		.dstDevice = narrow->dstDevice,
		.dstArray = narrow->dstArray,
		.dstPitch = narrow->dstPitch,
		.WidthInBytes = narrow->WidthInBytes,
		.Height = narrow->Height,
	};
}

static CUDA_MEMCPY3D widen_3d(const CUDA_MEMCPY3D_v1 *narrow)
{
	return (CUDA_MEMCPY3D){
		.srcXInBytes = narrow->srcXInBytes,
		.srcY = narrow->srcY,
		.srcZ = narrow->srcZ,
		.srcLOD = narrow->srcLOD,
		.srcMemoryType = narrow->srcMemoryType,
		.srcHost = narrow->srcHost,
		.srcDevice = narrow->srcDevice,
		.srcArray = narrow->srcArray,
		.srcPitch = narrow->srcPitch,
		.srcHeight = narrow->srcHeight,
		.dstXInBytes = narrow->dstXInBytes,
		.dstY = narrow->dstY,
		.dstZ = narrow->dstZ,
		.dstLOD = narrow->dstLOD,
		.dstMemoryType = narrow->dstMemoryType,
		.dstHost = narrow->dstHost,
		.dstDevice = narrow->dstDevice,
		.dstArray = narrow->dstArray,
		.dstPitch = narrow->dstPitch,
		.dstHeight = narrow->dstHeight,
		.WidthInBytes = narrow->WidthInBytes,
		.Height = narrow->Height,
		.Depth = narrow->Depth,
	};
}

CUresult sg_cuMemcpy2D(const CUDA_MEMCPY2D_v1 *pCopy)
{
	if (pCopy == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY2D wide = widen_2d(pCopy);
	return sg_cuMemcpy2D_v2(&wide);
}

CUresult sg_cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1 *pCopy)
{
	return sg_cuMemcpy2D(pCopy);
}

CUresult sg_cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1 *pCopy, CUstream hStream)
{
	if (pCopy == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY2D wide = widen_2d(pCopy);
	return sg_cuMemcpy2DAsync_v2(&wide, hStream);
}

CUresult sg_cuMemcpy3D(const CUDA_MEMCPY3D_v1 *pCopy)
{
	if (pCopy == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D wide = widen_3d(pCopy);
	return sg_cuMemcpy3D_v2(&wide);
}

CUresult sg_cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1 *pCopy, CUstream hStream)
{
	if (pCopy == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D wide = widen_3d(pCopy);
	return sg_cuMemcpy3DAsync_v2(&wide, hStream);
}

CUresult sg_cuMemsetD8(CUdeviceptr_v1 dstDevice, unsigned char uc, unsigned int N)
{
	return sg_cuMemsetD8_v2(dstDevice, uc, N);
}

CUresult sg_cuMemsetD16(CUdeviceptr_v1 dstDevice, unsigned short us, unsigned int N)
{
	return sg_cuMemsetD16_v2(dstDevice, us, N);
}

CUresult sg_cuMemsetD32(CUdeviceptr_v1 dstDevice, unsigned int ui, unsigned int N)
{
	return sg_cuMemsetD32_v2(dstDevice, ui, N);
}

CUresult sg_cuMemsetD2D8(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned char uc, unsigned int Width,
                         unsigned int Height)
{
	return sg_cuMemsetD2D8_v2(dstDevice, dstPitch, uc, Width, Height);
}

CUresult sg_cuMemsetD2D16(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned short us, unsigned int Width,
                          unsigned int Height)
{
	return sg_cuMemsetD2D16_v2(dstDevice, dstPitch, us, Width, Height);
}

CUresult sg_cuMemsetD2D32(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned int ui, unsigned int Width,
                          unsigned int Height)
{
	return sg_cuMemsetD2D32_v2(dstDevice, dstPitch, ui, Width, Height);
}
