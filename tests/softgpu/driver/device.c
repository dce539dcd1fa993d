/*
 * Initialisation, and what the devices answer about themselves: those of an H100-like sm_90 part, as far as they make
 * sense here.
 */
#include <stdio.h>
#include <string.h>

#include "tests/softgpu/driver/arena.h"
#include "tests/softgpu/driver/context.h"

static const char name[] = "cuconst software GPU";

CUresult sg_cuInit(unsigned int Flags)
{
	return Flags != 0 ? CUDA_ERROR_INVALID_VALUE : sg_initialise();
}

CUresult sg_cuDriverGetVersion(int *driverVersion)
{
	if (driverVersion == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*driverVersion = SG_DRIVER_VERSION;
	return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGet(CUdevice *device, int ordinal)
{
	if (device == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetCount(int *count)
{
	if (count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*count = sg_device_count();
	return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetName(char *text, int len, CUdevice dev)
{
	if (text == NULL || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(text, (size_t)len, "%s", name);
	return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	if (uuid == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	memcpy(uuid->bytes, "cuconst-softgpu", 15);
	uuid->bytes[15] = (char)dev;
	return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return sg_cuDeviceGetUuid_v2(uuid, dev);
}

CUresult sg_cuDeviceGetLuid(char *luid, unsigned int *deviceNodeMask, CUdevice dev)
{
	(void)luid;
	(void)deviceNodeMask;
	return sg_is_device(dev) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_DEVICE; /* Windows only */
}

CUresult sg_cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	if (bytes == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = sg_device_memory();
	return CUDA_SUCCESS;
}

CUresult sg_cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	size_t all;
	CUresult status = sg_cuDeviceTotalMem_v2(bytes != NULL ? &all : NULL, dev);

	if (status == CUDA_SUCCESS)
		*bytes = all > UINT32_MAX ? UINT32_MAX : (unsigned)all;
	return status;
}

/* An attribute that is not listed is answered by 0: "not supported". */
static int attribute(CUdevice_attribute which, CUdevice device)
{
	switch ((int)which) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
		return 1024;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
		return 64;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
		return INT32_MAX;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
		return 65535;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
		return 49152;
	case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
		return 65536;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
	case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
		return 32;
	case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
		return 1980000;
	case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
		return 3201000;
	case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
		return 6016;
	case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
		return 60 << 20;
	case CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE:
		return 39321600;
	case CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE:
		return 128 << 20;
	case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
		return 4;
	case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH:
	case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH:
		return 131072;
	case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT:
		return 65536;
	case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH:
	case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT:
	case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH:
		return 16384;
	case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
	case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
		return 512;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		return 132;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
		return 2048;
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
		return 3;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
		return 233472;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
		return 232448;
	case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
		return 1024;
	case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
		return 2;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		return 9;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
	case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
	case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
		return 0;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		return 1 + device;
	case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID:
		return device;
	case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
		return 0;
	case CU_DEVICE_ATTRIBUTE_NUMA_ID:
		return -1;
	case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
	case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
	case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
	case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
	case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS:
	case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
		return 1;
	default:
		return 0;
	}
}

CUresult sg_cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	if (pi == NULL || attrib <= 0 || attrib >= CU_DEVICE_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*pi = attribute(attrib, dev);
	return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	if (prop == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*prop = (CUdevprop){
		.maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, dev),
		.maxThreadsDim = {attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, dev),
	                          attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, dev),
	                          attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, dev)},
		.maxGridSize = {attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, dev),
	                        attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, dev),
	                        attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, dev)},
		.sharedMemPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, dev),
		.totalConstantMemory = attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, dev),
		.SIMDWidth = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, dev),
		.memPitch = attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH, dev),
		.regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, dev),
		.clockRate = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, dev),
		.textureAlign = attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, dev),
	};
	return CUDA_SUCCESS;
}

CUresult sg_cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	if (major == NULL || minor == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev);
	*minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev);
	return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	enum { BUS_ID_BYTES = sizeof("0000:00:00.0") };

	if (pciBusId == NULL || len < BUS_ID_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(pciBusId, (size_t)len, "0000:%02X:00.0", (unsigned)attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, dev));
	return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	unsigned domain, bus, device;

	if (dev == NULL || pciBusId == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &device) != 3) {
		domain = 0;
		if (sscanf(pciBusId, "%x:%x", &bus, &device) != 2)
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (domain != 0 || device != 0 || bus == 0 || bus > (unsigned)sg_device_count())
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = (CUdevice)bus - 1;
	return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
	(void)type; /* of one that it does not know, the driver says that it is not there */
	if (pi == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_is_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*pi = 0;
	return CUDA_SUCCESS;
}

CUresult sg_cuProfilerInitialize(const char *configFile, const char *outputFile, int outputMode)
{
	(void)configFile;
	(void)outputFile;
	(void)outputMode;
	return CUDA_ERROR_NOT_SUPPORTED; /* removed from the driver long ago; so it answers */
}

CUresult sg_cuProfilerStart(void)
{
	return CUDA_SUCCESS;
}

CUresult sg_cuProfilerStop(void)
{
	return CUDA_SUCCESS;
}
