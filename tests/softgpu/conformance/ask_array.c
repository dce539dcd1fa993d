/* Arrays and textures; what leaves the process; green contexts. */
#include "tests/softgpu/conformance/conformance.h"

static void arrays(void)
{
	CUarray array = NULL, deep = NULL, other = NULL;
	CUDA_ARRAY_DESCRIPTOR flat = {.Width = 16, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1},
			      got = {0};
	CUDA_ARRAY3D_DESCRIPTOR cube = {
		.Width = 8, .Height = 4, .Depth = 2, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 4};
	CUDA_ARRAY3D_DESCRIPTOR got_cube = {0};
	float host[64], back[64] = {0};
	CUDA_ARRAY_DESCRIPTOR bad = flat;

	for (int i = 0; i < 64; i++)
		host[i] = (float)i;
	answer_status("create", cuArrayCreate(&array, &flat));
	answer_status("create_null", cuArrayCreate(NULL, &flat));
	answer_status("create_null_descriptor", cuArrayCreate(&other, NULL));
	bad.NumChannels = 3;
	answer_status("create_three_channels", cuArrayCreate(&other, &bad));
	bad = flat;
	bad.Width = 0;
	answer_status("create_no_width", cuArrayCreate(&other, &bad));
	bad = flat;
	bad.Format = (CUarray_format)0x77;
	answer_status("create_format", cuArrayCreate(&other, &bad));
	bad = flat;
	bad.Height = 0;
	answer_status("create_line", cuArrayCreate(&other, &bad));
	bad.Width = (size_t)1 << 30;
	answer_status("create_beyond", cuArrayCreate(&other, &bad));
	answer_status("descriptor", cuArrayGetDescriptor(&got, array));
	answer("descriptor_value", "%zu x %zu, format %d, %u", got.Width, got.Height, got.Format, got.NumChannels);
	answer_status("create_cube", cuArray3DCreate(&deep, &cube));
	answer_status("descriptor_cube", cuArray3DGetDescriptor(&got_cube, deep));
	answer("descriptor_cube_value", "%zu x %zu x %zu, flags %u", got_cube.Width, got_cube.Height, got_cube.Depth,
	       got_cube.Flags);
	answer_status("descriptor_of_cube", cuArrayGetDescriptor(&got, deep));
	CUDA_MEMCPY2D to = {.srcMemoryType = CU_MEMORYTYPE_HOST,
	                    .srcHost = host,
	                    .srcPitch = 64,
	                    .dstMemoryType = CU_MEMORYTYPE_ARRAY,
	                    .dstArray = array,
	                    .WidthInBytes = 64,
	                    .Height = 4};
	CUDA_MEMCPY2D from = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
	                      .srcArray = array,
	                      .dstMemoryType = CU_MEMORYTYPE_HOST,
	                      .dstHost = back,
	                      .dstPitch = 64,
	                      .WidthInBytes = 64,
	                      .Height = 4};
	answer_status("copy_to", cuMemcpy2D(&to));
	answer_status("copy_from", cuMemcpy2D(&from));
	answer_yes("copy_same", memcmp(host, back, sizeof(back)) == 0);
	to.Height = 5;
	answer_status("copy_past_height", cuMemcpy2D(&to));
	to.Height = 4;
	to.dstXInBytes = 4;
	answer_status("copy_past_width", cuMemcpy2D(&to));
	answer_status("line_to", cuMemcpyHtoA(array, 0, host, 64));
	answer_status("line_from", cuMemcpyAtoH(back, array, 0, 64));
	answer_status("line_past", cuMemcpyHtoA(array, 0, host, 65));
	CUdeviceptr memory = device_memory(256);
	answer_status("line_from_device", cuMemcpyDtoA(array, 0, memory, 64));
	answer_status("line_to_device", cuMemcpyAtoD(memory, array, 0, 64));
	answer_status("line_between", cuMemcpyAtoA(array, 0, array, 0, 64));
	uint8_t cells[64] = {1, 2, 3, 4};
	CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_HOST,
	                     .srcHost = cells,
	                     .srcPitch = 32,
	                     .srcHeight = 1,
	                     .dstMemoryType = CU_MEMORYTYPE_ARRAY,
	                     .dstArray = deep,
	                     .WidthInBytes = 32,
	                     .Height = 1,
	                     .Depth = 2};
	answer_status("copy_box", cuMemcpy3D(&box));
	box.Depth = 3;
	answer_status("copy_box_past", cuMemcpy3D(&box));
	answer_status("destroy", cuArrayDestroy(array));
	answer_status("destroy_null", cuArrayDestroy(NULL));
	CUmipmappedArray levels = NULL;
	answer_status("mipmapped", cuMipmappedArrayCreate(&levels, &cube, 2));
}

static void textures(void)
{
	CUtexObject texture = 0;
	CUdeviceptr memory = device_memory(4096);
	CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
	CUDA_TEXTURE_DESC how = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP}};

	resource.res.linear.devPtr = memory;
	resource.res.linear.format = CU_AD_FORMAT_FLOAT;
	resource.res.linear.numChannels = 1;
	resource.res.linear.sizeInBytes = 4096;
	answer_status("texture", cuTexObjectCreate(&texture, &resource, &how, NULL));
	answer_status("texture_null", cuTexObjectCreate(NULL, &resource, &how, NULL));
	answer_status("texture_destroy_zero", cuTexObjectDestroy(0));
	answer_status("surface_of_memory", cuSurfObjectCreate(&texture, &resource));
}

static const struct topic topics[] = {
	{.name = "arrays", .ask = arrays},
	{.name = "textures", .ask = textures, .alone = true},
	{.name = NULL},
};
const struct family array_family = {.name = "array", .topics = topics};

static void ipc(void)
{
	CUipcMemHandle handle, garbage = {{1, 2, 3}};
	CUipcEventHandle shared;
	CUdeviceptr memory = device_memory(64), opened = 0;
	CUevent event, between;

	NEED(cuEventCreate(&event, 0));
	answer_status("memory_null", cuIpcGetMemHandle(NULL, memory));
	answer_status("memory_garbage", cuIpcGetMemHandle(&handle, 0x1234));
	answer_status("memory", cuIpcGetMemHandle(&handle, memory));
	answer_status("open_own", cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	answer_status("open_garbage", cuIpcOpenMemHandle(&opened, garbage, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	answer_status("open_flags", cuIpcOpenMemHandle(&opened, garbage, 77));
	answer_status("close_not_opened", cuIpcCloseMemHandle(memory));
	answer_status("event_not_shared", cuIpcGetEventHandle(&shared, event));
	answer_status("event_create_shared", cuEventCreate(&between, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
}

static void shareable(void)
{
	CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUmemGenericAllocationHandle handle = 0;
	int descriptor = -1;

	NEED(cuMemCreate(&handle, 2 << 20, &property, 0));
	answer_status("export_not_shareable",
	              cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	answer_status("export_unknown",
	              cuMemExportToShareableHandle(&descriptor, handle, (CUmemAllocationHandleType)0x77, 0));
	answer_status("import_garbage", cuMemImportFromShareableHandle(&handle, (void *)(uintptr_t)-1,
	                                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
}

static const struct topic ipc_topics[] = {
	{.name = "ipc", .ask = ipc},
	{.name = "shareable", .ask = shareable},
	{.name = NULL},
};
const struct family ipc_family = {.name = "ipc", .topics = ipc_topics};
