/* The copies' entry points: every form becomes one CUDA_MEMCPY3D. */
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/capture.h"
#include "tests/softgpu/driver/memory.h"
#include "tests/softgpu/driver/op.h"
#include "tests/softgpu/driver/stream.h"

/* The contexts that a copy between peers names. NULL is the current one. */
struct peers {
	CUcontext to, from;
};

/* Each side is reached by the context that is named for it, else by that of the stream. */
static CUresult plan(const CUDA_MEMCPY3D *asked, const struct peers *peers, const struct sg_stream *stream,
                     struct sg_copy *ret_copy)
{
	const struct sg_context *to = stream->context, *from = stream->context;

	if (peers != NULL) {
		to = peers->to != NULL ? sg_context_of(peers->to) : sg_context_current();
		from = peers->from != NULL ? sg_context_of(peers->from) : sg_context_current();
		if (to == NULL || from == NULL)
			return CUDA_ERROR_INVALID_CONTEXT;
	}
	return sg_copy_plan(asked, to, from, ret_copy);
}

/*
 * Plans, stages and submits. A synchronous copy waits; so does an asynchronous one to pageable memory, as in the
 * driver.
 */
static CUresult copy_between(const CUDA_MEMCPY3D *asked, const struct peers *peers, CUstream handle, bool wait)
{
	struct sg_stream *stream;
	struct sg_op op = {.kind = SG_OP_COPY};

	if (asked == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	CUresult status = sg_stream_of(handle, &stream);
	if (status == CUDA_SUCCESS)
		status = plan(asked, peers, stream, &op.copy);
	if (status == CUDA_SUCCESS && op.copy.width == 0 && stream->capture == NULL) {
		sg_unlock();
		return CUDA_SUCCESS;
	}
	if (status == CUDA_SUCCESS && stream->capture == NULL && !wait) {
		wait = op.copy.to_pageable;
		if (!wait && !sg_copy_stage(&op.copy))
			status = CUDA_ERROR_INVALID_VALUE;
	}
	if (status == CUDA_SUCCESS)
		status = sg_submit(stream, &op, wait);
	sg_unlock();
	return status;
}

static CUresult copy_now(const CUDA_MEMCPY3D *asked, CUstream stream, bool wait)
{
	return copy_between(asked, NULL, stream, wait);
}

static CUDA_MEMCPY3D linear(CUmemorytype to_type, uint64_t to, CUmemorytype from_type, uint64_t from, size_t bytes)
{
	CUDA_MEMCPY3D asked;

	memset(&asked, 0, sizeof(asked));
	asked.dstMemoryType = to_type;
	asked.srcMemoryType = from_type;
	if (to_type == CU_MEMORYTYPE_HOST)
		asked.dstHost = (void *)(uintptr_t)to;
	else
		asked.dstDevice = to;
	if (from_type == CU_MEMORYTYPE_HOST)
		asked.srcHost = (const void *)(uintptr_t)from;
	else
		asked.srcDevice = from;
	asked.WidthInBytes = bytes;
	asked.Height = asked.Depth = 1;
	return asked;
}

static CUresult copy_linear(CUmemorytype to_type, uint64_t to, CUmemorytype from_type, uint64_t from, size_t bytes,
                            CUstream stream, bool wait)
{
	CUDA_MEMCPY3D asked = linear(to_type, to, from_type, from, bytes);

	return copy_now(&asked, stream, wait);
}

CUresult sg_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return copy_linear(CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src, ByteCount, NULL, true);
}

CUresult sg_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	return copy_linear(CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src, ByteCount, hStream, false);
}

CUresult sg_cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	return copy_linear(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_HOST, (uint64_t)(uintptr_t)srcHost, ByteCount,
	                   NULL, true);
}

CUresult sg_cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	return copy_linear(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_HOST, (uint64_t)(uintptr_t)srcHost, ByteCount,
	                   hStream, false);
}

CUresult sg_cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_linear(CU_MEMORYTYPE_HOST, (uint64_t)(uintptr_t)dstHost, CU_MEMORYTYPE_DEVICE, srcDevice, ByteCount,
	                   NULL, true);
}

CUresult sg_cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return copy_linear(CU_MEMORYTYPE_HOST, (uint64_t)(uintptr_t)dstHost, CU_MEMORYTYPE_DEVICE, srcDevice, ByteCount,
	                   hStream, false);
}

/* Device to device returns before it is done, as in the driver. */
CUresult sg_cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_linear(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_DEVICE, srcDevice, ByteCount, NULL, true);
}

CUresult sg_cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return copy_linear(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_DEVICE, srcDevice, ByteCount, hStream, false);
}

static CUresult copy_peer(CUdeviceptr to, CUdeviceptr from, const struct peers *peers, size_t bytes, CUstream stream,
                          bool wait)
{
	CUDA_MEMCPY3D asked = linear(CU_MEMORYTYPE_UNIFIED, to, CU_MEMORYTYPE_UNIFIED, from, bytes);

	return copy_between(&asked, peers, stream, wait);
}

CUresult sg_cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                         size_t ByteCount)
{
	return copy_peer(dstDevice, srcDevice, &(struct peers){dstContext, srcContext}, ByteCount, NULL, true);
}

CUresult sg_cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                              size_t ByteCount, CUstream hStream)
{
	return copy_peer(dstDevice, srcDevice, &(struct peers){dstContext, srcContext}, ByteCount, hStream, false);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *asked, CUstream stream, bool wait)
{
	CUDA_MEMCPY3D whole;

	if (asked == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	memset(&whole, 0, sizeof(whole));
	whole.srcXInBytes = asked->srcXInBytes;
	whole.srcY = asked->srcY;
	whole.srcMemoryType = asked->srcMemoryType;
	whole.srcHost = asked->srcHost;
	whole.srcDevice = asked->srcDevice;
	whole.srcArray = asked->srcArray;
	whole.srcPitch = asked->srcPitch;
	whole.dstXInBytes = asked->dstXInBytes;
	whole.dstY = asked->dstY;
	whole.dstMemoryType = asked->dstMemoryType;
	whole.dstHost = asked->dstHost;
	whole.dstDevice = asked->dstDevice;
	whole.dstArray = asked->dstArray;
	whole.dstPitch = asked->dstPitch;
	whole.WidthInBytes = asked->WidthInBytes;
	whole.Height = asked->Height;
	whole.Depth = 1;
	return copy_now(&whole, stream, wait);
}

CUresult sg_cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
	return copy_2d(pCopy, NULL, true);
}

CUresult sg_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
	return copy_2d(pCopy, NULL, true);
}

CUresult sg_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	return copy_2d(pCopy, hStream, false);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *asked, CUstream stream, bool wait)
{
	if (asked == NULL || asked->reserved0 != NULL || asked->reserved1 != NULL)
		return CUDA_ERROR_INVALID_VALUE;
	return copy_now(asked, stream, wait);
}

CUresult sg_cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
	return copy_3d(pCopy, NULL, true);
}

CUresult sg_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	return copy_3d(pCopy, hStream, false);
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *asked, CUstream stream, bool wait)
{
	if (asked == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D whole = {
		.srcXInBytes = asked->srcXInBytes,
		.srcY = asked->srcY,
		.srcZ = asked->srcZ,
		.srcLOD = asked->srcLOD,
		.srcMemoryType = asked->srcMemoryType,
		.srcHost = asked->srcHost,
		.srcDevice = asked->srcDevice,
		.srcArray = asked->srcArray,
		.srcPitch = asked->srcPitch,
		.srcHeight = asked->srcHeight,
		.dstXInBytes = asked->dstXInBytes,
		.dstY = asked->dstY,
		.dstZ = asked->dstZ,
		.dstLOD = asked->dstLOD,
		.dstMemoryType = asked->dstMemoryType,
		.dstHost = asked->dstHost,
		.dstDevice = asked->dstDevice,
		.dstArray = asked->dstArray,
		.dstPitch = asked->dstPitch,
		.dstHeight = asked->dstHeight,
		.WidthInBytes = asked->WidthInBytes,
		.Height = asked->Height,
		.Depth = asked->Depth,
	};
	return copy_between(&whole, &(struct peers){asked->dstContext, asked->srcContext}, stream, wait);
}

CUresult sg_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
	return copy_3d_peer(pCopy, NULL, true);
}

CUresult sg_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	return copy_3d_peer(pCopy, hStream, false);
}

/* Batches are refused on the legacy stream and while capturing; nothing runs unless all of it can. */
static CUresult batch_stream(CUstream handle)
{
	struct sg_stream *stream;

	if (handle == NULL && !sg_thread.per_thread_default)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	CUresult status = sg_stream_of(handle, &stream);
	if (status == CUDA_SUCCESS && stream == stream->context->legacy)
		status = CUDA_ERROR_INVALID_VALUE;
	if (status == CUDA_SUCCESS && stream->capture != NULL)
		status = CUDA_ERROR_NOT_SUPPORTED;
	sg_unlock();
	return status;
}

static CUresult copy_batch(const CUDA_MEMCPY3D *list, size_t count, size_t *failed, CUstream stream)
{
	struct sg_copy copy;
	struct sg_stream *own;

	sg_lock();
	CUresult status = sg_stream_of(stream, &own);
	for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++) {
		status = plan(&list[i], NULL, own, &copy);
		if (status != CUDA_SUCCESS && failed != NULL)
			*failed = i;
	}
	sg_unlock();
	for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++)
		status = copy_now(&list[i], stream, false);
	return status;
}

CUresult sg_cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                               CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, size_t *failIdx,
                               CUstream hStream)
{
	if (failIdx != NULL)
		*failIdx = SIZE_MAX;
	if (dsts == NULL || srcs == NULL || sizes == NULL || count == 0 || attrs == NULL || attrsIdxs == NULL ||
	    numAttrs == 0 || numAttrs > count || attrsIdxs[0] != 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult status = batch_stream(hStream);
	for (size_t i = 0; i < numAttrs && status == CUDA_SUCCESS; i++)
		if (attrs[i].srcAccessOrder < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
		    attrs[i].srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_ANY || attrsIdxs[i] >= count ||
		    (i > 0 && attrsIdxs[i] <= attrsIdxs[i - 1]))
			status = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++)
		if (sizes[i] == 0)
			status = CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D *list = status == CUDA_SUCCESS ? calloc(count, sizeof(*list)) : NULL;
	if (list == NULL)
		return status != CUDA_SUCCESS ? status : CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < count; i++)
		list[i] = linear(CU_MEMORYTYPE_UNIFIED, dsts[i], CU_MEMORYTYPE_UNIFIED, srcs[i], sizes[i]);
	status = copy_batch(list, count, failIdx, hStream);
	free(list);
	return status;
}

CUresult sg_cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                  CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, CUstream hStream)
{
	return sg_cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, NULL, hStream);
}

CUresult sg_cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
                                 unsigned long long flags, CUstream hStream)
{
	if (failIdx != NULL)
		*failIdx = SIZE_MAX;
	if (numOps == 0 || opList == NULL || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult status = batch_stream(hStream);
	CUDA_MEMCPY3D *list = status == CUDA_SUCCESS ? calloc(numOps, sizeof(*list)) : NULL;
	if (list == NULL)
		return status != CUDA_SUCCESS ? status : CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < numOps && status == CUDA_SUCCESS; i++) {
		const CUmemcpy3DOperand *from = &opList[i].src, *to = &opList[i].dst;
		if (from->type != CU_MEMCPY_OPERAND_TYPE_POINTER || to->type != CU_MEMCPY_OPERAND_TYPE_POINTER)
			status = CUDA_ERROR_NOT_SUPPORTED;
		list[i] = linear(CU_MEMORYTYPE_UNIFIED, to->op.ptr.ptr, CU_MEMORYTYPE_UNIFIED, from->op.ptr.ptr,
		                 opList[i].extent.width);
		list[i].Height = opList[i].extent.height;
		list[i].Depth = opList[i].extent.depth;
		/* Zero says packed. Pointers have elements of one byte. */
		list[i].srcPitch = from->op.ptr.rowLength != 0 ? from->op.ptr.rowLength : opList[i].extent.width;
		list[i].dstPitch = to->op.ptr.rowLength != 0 ? to->op.ptr.rowLength : opList[i].extent.width;
		list[i].srcHeight = from->op.ptr.layerHeight != 0 ? from->op.ptr.layerHeight : opList[i].extent.height;
		list[i].dstHeight = to->op.ptr.layerHeight != 0 ? to->op.ptr.layerHeight : opList[i].extent.height;
	}
	if (status == CUDA_SUCCESS)
		status = copy_batch(list, numOps, failIdx, hStream);
	free(list);
	return status;
}

CUresult sg_cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags,
                                    CUstream hStream)
{
	return sg_cuMemcpy3DBatchAsync(numOps, opList, NULL, flags, hStream);
}
