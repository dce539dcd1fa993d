/* Stream memory operations: write a value, wait for a value, batches of them. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/softgpu/driver/context.h"
#include "tests/softgpu/driver/memory.h"
#include "tests/softgpu/driver/op.h"
#include "tests/softgpu/driver/probe.h"
#include "tests/softgpu/driver/stream.h"

enum { BATCH_MAX = 256, POLL_NANOSECONDS = 20000 };

static size_t width_of(CUstreamBatchMemOpType type)
{
	return type == CU_STREAM_MEM_OP_WRITE_VALUE_64 || type == CU_STREAM_MEM_OP_WAIT_VALUE_64 ? 8 : 4;
}

static CUresult check_one(const struct sg_context *context, const CUstreamBatchMemOpParams *op)
{
	bool write = op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 || op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
	uint64_t address = write ? op->writeValue.address : op->waitValue.address;
	unsigned flags = write ? op->writeValue.flags : op->waitValue.flags;

	switch ((int)op->operation) {
	case CU_STREAM_MEM_OP_BARRIER:
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		if ((flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) != 0)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		if ((flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH) > CU_STREAM_WAIT_VALUE_NOR)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* A write through a read-only mapping is accepted here and faults when it runs: the driver does so. */
	if (address % width_of(op->operation) != 0 ||
	    sg_place_of(context, address, width_of(op->operation), false) != SG_PLACE_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult sg_values_plan(const struct sg_context *context, const CUstreamBatchMemOpParams *list, unsigned count,
                        unsigned flags, struct sg_op *ret_op)
{
	if ((list == NULL && count > 0) || count > BATCH_MAX || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		CUresult status = check_one(context, &list[i]);
		if (status != CUDA_SUCCESS)
			return status;
	}
	CUstreamBatchMemOpParams *copy = malloc((count + 1) * sizeof(*copy));
	if (copy == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (count > 0)
		memcpy(copy, list, count * sizeof(*copy));
	*ret_op = (struct sg_op){.kind = SG_OP_VALUES, .values = {copy, count, flags}};
	return CUDA_SUCCESS;
}

static bool satisfied(const CUstreamBatchMemOpParams *op)
{
	void *at = (void *)(uintptr_t)op->waitValue.address;
	bool wide = width_of(op->operation) == 8;
	uint64_t found = wide ? atomic_load((_Atomic uint64_t *)at) : atomic_load((_Atomic uint32_t *)at);
	uint64_t wanted = wide ? op->waitValue.value64 : op->waitValue.value;

	switch (op->waitValue.flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH) {
	case CU_STREAM_WAIT_VALUE_EQ:
		return found == wanted;
	case CU_STREAM_WAIT_VALUE_AND:
		return (found & wanted) != 0;
	case CU_STREAM_WAIT_VALUE_NOR:
		return (wide ? ~(found | wanted) : (uint32_t) ~(found | wanted)) != 0;
	default: /* cyclic comparison: the difference is not negative */
		return wide ? (int64_t)(found - wanted) >= 0 : (int32_t)(uint32_t)(found - wanted) >= 0;
	}
}

static CUresult run_one(const CUstreamBatchMemOpParams *op, struct sg_stream *stream)
{
	uint64_t address = op->writeValue.address;
	void *at = (void *)(uintptr_t)address;

	switch ((int)op->operation) {
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		if (!sg_kernel_check(stream->context, address, width_of(op->operation), true))
			return CUDA_ERROR_LAUNCH_FAILED;
		if (width_of(op->operation) == 8)
			atomic_store((_Atomic uint64_t *)at, op->writeValue.value64);
		else
			atomic_store((_Atomic uint32_t *)at, op->writeValue.value);
		sg_probe_wrote(address, width_of(op->operation));
		return CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		/* A context that faults elsewhere, or memory that goes away, ends the wait. */
		while (sg_kernel_check(stream->context, address, width_of(op->operation), false) && !satisfied(op)) {
			CUresult sticky = atomic_load(&stream->context->sticky);
			if (sticky != CUDA_SUCCESS)
				return sticky;
			sg_lock();
			bool worked = sg_stream_step();
			sg_unlock();
			if (!worked)
				nanosleep(&(struct timespec){0, POLL_NANOSECONDS}, NULL);
		}
		return CUDA_SUCCESS;
	default:
		return CUDA_SUCCESS;
	}
}

CUresult sg_values_run(const CUstreamBatchMemOpParams *list, unsigned count, struct sg_stream *stream)
{
	CUresult status = CUDA_SUCCESS;

	for (unsigned i = 0; i < count && status == CUDA_SUCCESS; i++)
		status = run_one(&list[i], stream);
	return status;
}

CUresult sg_cuStreamBatchMemOp_v2(CUstream handle, unsigned int count, CUstreamBatchMemOpParams *paramArray,
                                  unsigned int flags)
{
	struct sg_stream *stream;
	struct sg_op op;

	sg_lock();
	CUresult status = sg_stream_of(handle, &stream);
	if (status == CUDA_SUCCESS)
		status = sg_values_plan(stream->context, paramArray, count, flags, &op);
	if (status == CUDA_SUCCESS) {
		op.context = stream->context;
		status = sg_submit(stream, &op, false);
	}
	sg_unlock();
	return status;
}

CUresult sg_cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
                               unsigned int flags)
{
	return sg_cuStreamBatchMemOp_v2(stream, count, paramArray, flags);
}

static CUresult one(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value, unsigned flags)
{
	CUstreamBatchMemOpParams op;

	memset(&op, 0, sizeof(op));
	/* waitValue and writeValue are laid out alike. */
	op.writeValue.operation = type;
	op.writeValue.address = address;
	op.writeValue.value64 = value;
	op.writeValue.flags = flags;
	return sg_cuStreamBatchMemOp_v2(stream, 1, &op, 0);
}

CUresult sg_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags);
}

CUresult sg_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags);
}

CUresult sg_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags);
}

CUresult sg_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags);
}

CUresult sg_cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return sg_cuStreamWriteValue32_v2(stream, addr, value, flags);
}

CUresult sg_cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return sg_cuStreamWriteValue64_v2(stream, addr, value, flags);
}

CUresult sg_cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return sg_cuStreamWaitValue32_v2(stream, addr, value, flags);
}

CUresult sg_cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return sg_cuStreamWaitValue64_v2(stream, addr, value, flags);
}
