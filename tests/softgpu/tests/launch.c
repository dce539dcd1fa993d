/* Modules, libraries, functions, launches and their faults. */
#include <unistd.h>

#include "tests/softgpu/tests/check.h"
#include "tests/softgpu/tests/fatbins.h"
#include "tests/softgpu/tests/kernels.h"

static CUfunction get(CUmodule module, const char *name)
{
	CUfunction function = NULL;

	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

static void launching(void)
{
	CUmodule module;
	CUdeviceptr a;
	unsigned value = 42, n = 100, back[128];

	enter(0);
	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuMemAlloc(&a, sizeof(back)));
	OK(cuMemsetD8(a, 0, sizeof(back)));
	void *parameters[] = {&a, &value, &n};
	CUfunction fill = get(module, "fill");
	OK(cuLaunchKernel(fill, 4, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	OK(cuMemcpyDtoH(back, a, sizeof(back)));
	CHECK(back[0] == 42 && back[99] == 42 && back[100] == 0);
	/* The same by one buffer. */
	struct {
		CUdeviceptr a;
		unsigned value, n;
	} block = {a, 43, 10};
	size_t bytes = sizeof(block);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
	                 CU_LAUNCH_PARAM_END};
	OK(cuLaunchKernel(fill, 4, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
	OK(cuMemcpyDtoH(back, a, sizeof(back)));
	CHECK(back[9] == 43 && back[10] == 42);
	bytes = 12; /* n is 0 then */
	OK(cuLaunchKernel(fill, 4, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
	bytes = 24;
	STATUS(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, cuLaunchKernel(fill, 4, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(fill, 4, 1, 1, 32, 1, 1, 0, NULL, parameters, extra));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(fill, 4, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(fill, 0, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(fill, 1, 65536, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(fill, 1, 1, 1, 1025, 1, 1, 0, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(fill, 1, 1, 1, 32, 33, 1, 0, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 1 << 20, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_INVALID_HANDLE,
	       cuLaunchKernel((CUfunction)module, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_INVALID_HANDLE,
	       cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 0, (CUstream)(uintptr_t)0x99, parameters, NULL));
	CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};
	value = 7;
	OK(cuLaunchKernelEx(&config, fill, parameters, NULL));
	OK(cuLaunchCooperativeKernel(fill, 1, 1, 1, 32, 1, 1, 0, NULL, parameters));
	STATUS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
	       cuLaunchCooperativeKernel(fill, 1 << 20, 1, 1, 1024, 1, 1, 0, NULL, parameters));
	OK(cuMemcpyDtoH(back, a, sizeof(back)));
	CHECK(back[31] == 7 && back[32] == 42);
	/* A struct by value. */
	struct {
		CUdeviceptr out;
		unsigned pad, value;
	} what = {a + 4, 0, 99};
	void *one[] = {&what};
	OK(cuLaunchKernel(get(module, "by_value"), 1, 1, 1, 1, 1, 1, 0, NULL, one, NULL));
	OK(cuMemcpyDtoH(back, a, 8));
	CHECK(back[0] == 7 && back[1] == 99);
	OK(cuModuleUnload(module));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	leave(0);
}

/* Shape and parameters are the function's, until it is launched. */
static void as_in_cuda_2(void)
{
	CUmodule module;
	CUdeviceptr a;
	unsigned back[64];

	enter(0);
	OK(cuModuleLoadData(&module, kernels_ptx));
	CUfunction fill = get(module, "fill");
	OK(cuMemAlloc(&a, sizeof(back)));
	OK(cuMemsetD8(a, 0, sizeof(back)));
	OK(cuFuncSetBlockShape(fill, 16, 1, 1));
	OK(cuFuncSetSharedSize(fill, 0));
	OK(cuParamSetSize(fill, 16));
	OK(cuParamSetv(fill, 0, &a, 8));
	OK(cuParamSeti(fill, 8, 42));
	OK(cuParamSeti(fill, 12, 64));
	OK(cuLaunch(fill));
	OK(cuMemcpyDtoH(back, a, sizeof(back)));
	CHECK(back[15] == 42 && back[16] == 0);
	OK(cuParamSetf(fill, 8, 1.0f));
	OK(cuLaunchGrid(fill, 3, 1));
	OK(cuLaunchGridAsync(fill, 3, 1, NULL));
	OK(cuMemcpyDtoH(back, a, sizeof(back)));
	CHECK(back[47] == 0x3f800000 && back[48] == 0);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(fill, 0, 1, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(fill, 1024, 2, 1));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuParamSetv(fill, 4090, &a, 8));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuParamSetv(fill, -1, &a, 8));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(fill, 0, 1));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuLaunch((CUfunction)module));
	OK(cuModuleUnload(module));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuLaunchGrid(fill, 1, 1));
	leave(0);
}

static void globals(void)
{
	CUmodule module;
	CUdeviceptr counter = 0, table = 0;
	size_t bytes = 0;
	unsigned back = 0;

	enter(0);
	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuModuleGetGlobal(&counter, &bytes, module, "counter"));
	CHECK(bytes == 4);
	OK(cuModuleGetGlobal(&table, &bytes, module, "table"));
	CHECK(bytes == 64);
	OK(cuMemcpyDtoH(&back, counter, 4));
	CHECK(back == 5);
	OK(cuLaunchKernel(get(module, "bump"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cuMemcpyDtoH(&back, counter, 4));
	CHECK(back == 6);
	STATUS(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&table, &bytes, module, "nothing"));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemFree(counter));
	OK(cuModuleUnload(module));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&back, counter, 4));
	leave(0);
}

static void functions(void)
{
	CUmodule module, got = NULL;
	CUfunction list[8], fill;
	const char *name = NULL;
	unsigned count = 0;
	size_t offset = 9, bytes = 9;
	int value = 0;

	enter(0);
	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuModuleGetFunctionCount(&count, module));
	CHECK(count == 5);
	OK(cuModuleEnumerateFunctions(list, 5, module));
	fill = get(module, "fill");
	OK(cuFuncGetName(&name, fill));
	CHECK(strcmp(name, "fill") == 0);
	OK(cuFuncGetModule(&got, fill));
	CHECK(got == module);
	OK(cuFuncGetParamInfo(fill, 2, &offset, &bytes));
	CHECK(offset == 12 && bytes == 4);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(fill, 3, &offset, &bytes));
	OK(cuFuncGetParamInfo(get(module, "by_value"), 0, &offset, &bytes));
	CHECK(offset == 0 && bytes == 16);
	OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, fill));
	CHECK(value == 1024);
	OK(cuFuncSetAttribute(fill, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
	STATUS(CUDA_ERROR_INVALID_VALUE,
	       cuFuncSetAttribute(fill, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20));
	STATUS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&fill, module, "nothing"));
	int blocks = 0, size = 0;
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, list[0], 256, 0));
	CHECK(blocks == 8);
	OK(cuOccupancyMaxPotentialBlockSize(&blocks, &size, list[0], NULL, 0, 0));
	CHECK(size == 1024 && blocks == 2 * 132);
	leave(0);
}

static void kernels(void)
{
	CUlibrary library, got = NULL;
	CUkernel kernel;
	CUfunction function = NULL;
	CUdeviceptr a, counter = 0;
	CUmodule module;
	const char *name = NULL;
	unsigned value = 3, n = 8, back[8];
	size_t offset, bytes;

	OK(cuInit(0));
	OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, library, "fill"));
	STATUS(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "nothing"));
	OK(cuKernelGetName(&name, kernel));
	CHECK(strcmp(name, "fill") == 0);
	OK(cuKernelGetLibrary(&got, kernel));
	CHECK(got == library);
	OK(cuKernelGetParamInfo(kernel, 1, &offset, &bytes));
	CHECK(offset == 8 && bytes == 4);
	enter(0);
	/* As on the real driver: a kernel is no function to cuFunc*, but launches take it. */
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuFuncGetParamInfo((CUfunction)kernel, 0, &offset, &bytes));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuFuncGetName(&name, (CUfunction)kernel));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuFuncGetModule(&module, (CUfunction)kernel));
	OK(cuMemAlloc(&a, sizeof(back)));
	void *parameters[] = {&a, &value, &n};
	OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	OK(cuMemcpyDtoH(back, a, sizeof(back)));
	CHECK(back[0] == 3 && back[7] == 3);
	OK(cuKernelGetFunction(&function, kernel));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuKernelGetName(&name, (CUkernel)function));
	OK(cuFuncGetName(&name, function));
	OK(cuLibraryGetModule(&module, library));
	OK(cuLibraryGetGlobal(&counter, &bytes, library, "counter"));
	CHECK(counter != 0 && bytes == 4);
	OK(cuLibraryUnload(library));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuKernelGetName(&name, kernel));
	leave(0);
}

static void images(void)
{
	CUmodule module;
	char log[256] = "untouched";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
	struct {
		unsigned magic;
		unsigned short version, header_bytes;
		unsigned long long bytes;
		unsigned short kind, entry_version;
		unsigned entry_header_bytes;
		unsigned long long payload_bytes;
		unsigned compressed, rest;
		char text[sizeof(kernels_ptx)];
	} fatbin = {0xba55ed50, 1, 16, 24 + sizeof(kernels_ptx), 1, 1, 24 + 0, sizeof(kernels_ptx), 0, 0, ""};
	struct {
		int magic, version;
		const void *data;
		void *file;
	} wrapper = {0x466243b1, 1, &fatbin, NULL};

	enter(0);
	memcpy(fatbin.text, kernels_ptx, sizeof(kernels_ptx));
	fatbin.bytes = sizeof(fatbin) - 16;
	OK(cuModuleLoadData(&module, &fatbin));
	get(module, "fill");
	OK(cuModuleLoadFatBinary(&module, &wrapper));
	get(module, "fill");
	fatbin.kind = 2;
	STATUS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, &fatbin));
	/* Compressed, by nobody knows what. */
	fatbin.kind = 1;
	fatbin.compressed = 77;
	STATUS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, &fatbin));
	fatbin.compressed = 0;
	OK(cuModuleLoadData(&module, &fatbin));
	fatbin.kind = 2;
	STATUS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, "\177ELF and so on"));
	STATUS(CUDA_ERROR_INVALID_PTX,
	       cuModuleLoadDataEx(&module, ".version 7.0\n.target sm_70\n.address_size 64\nnonsense;\n", 2, options,
	                          values));
	CHECK(strcmp(log, "untouched") != 0 && log[0] != '\0');
	STATUS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, NULL));
	STATUS(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/nowhere/at/all.ptx"));
	leave(0);
}

static void runs_seven(const void *image)
{
	CUmodule module;
	CUdeviceptr out;
	unsigned back[4] = {0};
	void *parameters[] = {&out};

	OK(cuModuleLoadData(&module, image));
	OK(cuMemAlloc(&out, sizeof(back)));
	OK(cuLaunchKernel(get(module, "seven"), 1, 1, 1, 4, 1, 1, 0, NULL, parameters, NULL));
	OK(cuMemcpyDtoH(back, out, sizeof(back)));
	CHECK(back[0] == 7 && back[3] == 7);
	OK(cuModuleUnload(module));
	OK(cuMemFree(out));
}

/* What nvcc writes: compressed; and damage in every byte, which must end in an error or in a text, never in a crash. */
static void compressed(void)
{
	CUmodule module;
	CUlibrary library;
	unsigned char damaged[sizeof(fatbin_lz4)];

	enter(0);
	runs_seven(fatbin_lz4);
	runs_seven(fatbin_zstd);
	OK(cuLibraryLoadData(&library, fatbin_lz4, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryUnload(library));
	/* Behind the container's header, whose size nothing but it can tell. */
	for (size_t i = 16; i < sizeof(damaged); i++)
		for (unsigned how = 1; how < 256; how *= 4) {
			memcpy(damaged, fatbin_lz4, sizeof(damaged));
			damaged[i] ^= (unsigned char)how;
			if (cuModuleLoadData(&module, damaged) == CUDA_SUCCESS)
				OK(cuModuleUnload(module));
		}
	leave(0);
}

/* A store outside live memory ends the context: every call says so until it is reset. */
static void faults(void)
{
	CUmodule module;
	CUdeviceptr a, b, wild = 0x10;
	unsigned value = 1, n = 4, back;
	CUcontext context = enter(0);

	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuMemAlloc(&a, 16));
	void *parameters[] = {&wild, &value, &n};
	OK(cuLaunchKernel(get(module, "fill"), 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&b, 16));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoH(&back, a, 4));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(NULL));
	renew(0);
	OK(cuCtxSynchronize());
	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuLaunchKernel(get(module, "fault"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	STATUS(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
	renew(0);
	/* Past the end of an allocation, and into freed memory. */
	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuMemAlloc(&a, 16));
	n = 5;
	parameters[0] = &a;
	OK(cuLaunchKernel(get(module, "fill"), 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	renew(0);
	OK(cuCtxGetCurrent(&context));
	leave(0);
}

static void write_log(void)
{
	CUmodule module;
	CUdeviceptr a;
	unsigned value = 1, n = 4;
	struct softgpu_write extents[64];

	enter(0);
	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuMemAlloc(&a, 1024));
	softgpu_log_writes(true);
	void *parameters[] = {&a, &value, &n};
	OK(cuLaunchKernel(get(module, "fill"), 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	OK(cuMemsetD8(a + 512, 1, 8));
	CHECK(softgpu_wrote(a, 16) && softgpu_wrote(a + 15, 1) && !softgpu_wrote(a + 16, 496) &&
	      softgpu_wrote(a + 512, 1) && !softgpu_wrote(a + 520, 100));
	CHECK(softgpu_writes(extents, 0, 64) >= 2 && softgpu_writes_lost() == 0);
	softgpu_log_writes(false);
	leave(0);
}

/* What a kernel says about its blocks is a launch's limit, refused before anything runs. */
static void limits_of_kernels(void)
{
	static const char text[] =
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".visible .entry bounded(.param .u64 out)\n.maxntid 64, 1, 1\n{\n	ret;\n}\n"
		".visible .entry fixed(.param .u64 out)\n.reqntid 32, 2, 1\n{\n	ret;\n}\n"
		".visible .entry room(.param .u64 out)\n{\n	.reg .b32 %r<2>;\n	.shared .align 4 .b8 s[1024];\n	mov.u32 %r1, s;\n	ret;\n}\n";
	CUmodule module;
	CUdeviceptr out = 0;
	void *parameters[] = {&out};
	int value = 0;

	enter(0);
	OK(cuModuleLoadData(&module, text));
	OK(cuLaunchKernel(get(module, "bounded"), 1, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE,
	       cuLaunchKernel(get(module, "bounded"), 1, 1, 1, 65, 1, 1, 0, NULL, parameters, NULL));
	OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, get(module, "bounded")));
	CHECK(value == 64);
	OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, get(module, "fixed")));
	CHECK(value == 64);
	OK(cuLaunchKernel(get(module, "room"), 1, 1, 1, 1, 1, 1, 48 * 1024 - 1024, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE,
	       cuLaunchKernel(get(module, "room"), 1, 1, 1, 1, 1, 1, 48 * 1024 - 1023, NULL, parameters, NULL));
	OK(cuFuncSetAttribute(get(module, "room"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000));
	OK(cuLaunchKernel(get(module, "room"), 1, 1, 1, 1, 1, 1, 50000, NULL, parameters, NULL));
	OK(cuCtxSynchronize());
	leave(0);
}

static void linking(void)
{
	static const char second[] =
		".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry other()\n{\n	ret;\n}\n";
	static const char broken[] =
		".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry other()\n{\n	mov.u32 %r9, 1;\n}\n";
	char errors[512] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {errors, (void *)sizeof(errors)}, *image = NULL;
	CUlinkState link = NULL;
	CUmodule module;
	size_t bytes = 0;

	enter(0);
	OK(cuLinkCreate(2, options, values, &link));
	OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)kernels_ptx, sizeof(kernels_ptx), "one", 0, NULL,
	                 NULL));
	OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)second, sizeof(second), "two", 0, NULL, NULL));
	STATUS(CUDA_ERROR_INVALID_PTX,
	       cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)broken, sizeof(broken), "three", 0, NULL, NULL));
	CHECK(strstr(errors, "6") != NULL);
	STATUS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuLinkAddData(link, CU_JIT_INPUT_CUBIN, (void *)(uintptr_t)second,
	                                                   sizeof(second), "four", 0, NULL, NULL));
	STATUS(CUDA_ERROR_FILE_NOT_FOUND, cuLinkAddFile(link, CU_JIT_INPUT_PTX, "/nowhere/at/all.ptx", 0, NULL, NULL));
	OK(cuLinkComplete(link, &image, &bytes));
	CHECK(image != NULL && bytes > sizeof(kernels_ptx));
	OK(cuModuleLoadData(&module, image));
	OK(cuLinkDestroy(link));
	STATUS(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(link));
	OK(cuLaunchKernel(get(module, "bump"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cuLaunchKernel(get(module, "other"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cuCtxSynchronize());
	leave(0);
}

MAIN(T(limits_of_kernels), T(linking), T(launching), T(as_in_cuda_2), T(globals), T(functions), T(kernels), T(images),
     T(compressed), T(faults), T(write_log))
