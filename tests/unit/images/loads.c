/*
 * The whole way on the software GPU: a text of PTX is loaded in every way there is, and its kernels have store paths, though what was given to the driver is gone
 * when they are asked for. Runs on a real driver as well, which compiles the text.
 *
 *     loads PTX [times]
 */
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include "shim/cuconst.h"
#include "shim/kernels/function.h"
#include "shim/kernels/images.h"
#include "shim/kernels/images_internal.h"
#include "tests/unit/images/check.h"

/* The driver through the door that programs use: dlsym of a library that has ours in it gives hooks. */
#define DRIVER(name) ((__typeof__(name) *)driver_function(#name))
#define CALL(name, ...)                                                                                                \
	do {                                                                                                           \
		CUresult result_ = DRIVER(name)(__VA_ARGS__);                                                          \
		if (result_ != CUDA_SUCCESS) {                                                                         \
			fprintf(stderr, "%s:%d: %s(%s): %d\n", __FILE__, __LINE__, #name, #__VA_ARGS__, (int)result_); \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static void *driver_function(const char *name)
{
	static void *driver;
	if (!driver)
		driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	EXPECT(driver);
	void *function = dlsym(driver, name);
	EXPECT(function);
	return function;
}

/* How often the software GPU was called; on a real driver always 0. */
static uint64_t calls(const char *symbol)
{
	uint64_t (*count)(const char *) = (uint64_t(*)(const char *))dlsym(RTLD_DEFAULT, "softgpu_calls");
	return count ? count(symbol) : 0;
}

static bool software_gpu(void)
{
	return calls("cuInit") > 0;
}

static char *text;
static size_t text_length;
static const char *path;

/* fill(pointer, value, count) stores through its first parameter; copy(from, to, count) loads from its first. */
static void check_fill(CUfunction function)
{
	const struct kernel_paths *paths = images_paths(function);
	EXPECT(paths && paths->reason == PATHS_CLEAR);
	EXPECT(paths->slot_count == 2 && paths->slots[0].use == SLOT_STORE && paths->slots[0].only_base);
	EXPECT(paths->store_count >= 1 && paths->stores[0].base == 0);
	EXPECT(images_paths(function) == paths);
}

static void check_copy(CUfunction function)
{
	const struct kernel_paths *paths = images_paths(function);
	EXPECT(paths && paths->reason == PATHS_CLEAR && paths->slot_count == 3);
	EXPECT((paths->slots[0].use == SLOT_STORE) + (paths->slots[1].use == SLOT_STORE) == 1);
}

static void check_module(CUmodule module)
{
	CUfunction function;
	CALL(cuModuleGetFunction, &function, module, "fill");
	check_fill(function);
	CALL(cuModuleGetFunction, &function, module, "copy");
	check_copy(function);
	CALL(cuModuleUnload, module);
}

static void check_library(CUlibrary library)
{
	CUkernel kernel;
	CUfunction function;
	CALL(cuLibraryGetKernel, &kernel, library, "fill");
	check_fill((CUfunction)kernel);
	CALL(cuLibraryGetKernel, &kernel, library, "copy");
	/* Its function is of a module that nobody loaded; the program said which library it is of, so none is searched. */
	CALL(cuKernelGetFunction, &function, kernel);
	uint64_t searched = calls("cuLibraryGetKernel");
	check_copy(function);
	EXPECT(calls("cuLibraryGetKernel") == searched);
	check_copy((CUfunction)kernel);
	CALL(cuLibraryUnload, library);
}

/* What the program may do right after a load returns. */
static void spoil(void *image, size_t bytes)
{
	memset(image, 0x5a, bytes);
	free(image);
}

static void *text_copy(void)
{
	void *copy = malloc(text_length + 1);
	EXPECT(copy);
	return memcpy(copy, text, text_length + 1);
}

/* A fatbin with the text as its one entry, for sm_75: each field that a real driver asks of it. */
static void *make_fatbin(size_t *ret_bytes)
{
	size_t padded = (text_length + 8) / 8 * 8, bytes = 16 + 80 + padded;
	uint8_t *fatbin = calloc(1, bytes), *entry = fatbin + 16;
	EXPECT(fatbin);
	const uint32_t magic = 0xba55ed50, header_bytes = 80, options = 64, options_end = 72, sm = 75;
	const uint16_t version = 1, container_header = 16, kind = 1, entry_version = 0x0101, ptx_major = 7;
	const uint64_t rest = bytes - 16, payload = padded, flags = 0x11;
	memcpy(fatbin, &magic, 4);
	memcpy(fatbin + 4, &version, 2);
	memcpy(fatbin + 6, &container_header, 2);
	memcpy(fatbin + 8, &rest, 8);
	memcpy(entry, &kind, 2);
	memcpy(entry + 2, &entry_version, 2);
	memcpy(entry + 4, &header_bytes, 4);
	memcpy(entry + 8, &payload, 8);
	memcpy(entry + 20, &options, 4);
	memcpy(entry + 26, &ptx_major, 2);
	memcpy(entry + 28, &sm, 4);
	memcpy(entry + 40, &flags, 8);
	memcpy(entry + options, &options_end, 4);
	memcpy(entry + header_bytes, text, text_length);
	*ret_bytes = bytes;
	return fatbin;
}

struct wrapper {
	uint32_t magic, version;
	const void *data;
	void *unused;
};

/*
 * Whether a load of a wrapped image took it. NVIDIA's runtime gives its wrappers to cuLibraryLoadData; an H200's driver
 * refused one to cuModuleLoadData and cuModuleLoadFatBinary. What was refused must have loaded nothing.
 */
static bool wrapper_taken(CUresult result, const void *handle)
{
	struct load load;
	if (result == CUDA_SUCCESS)
		return true;
	if (result != CUDA_ERROR_INVALID_IMAGE || software_gpu()) {
		fprintf(stderr, "a wrapped image: %d\n", (int)result);
		exit(1);
	}
	EXPECT(!handle || !images_find(handle, &load));
	return false;
}

static void modules(void)
{
	CUmodule module;
	void *copy = text_copy();
	CALL(cuModuleLoadData, &module, copy);
	spoil(copy, text_length);
	check_module(module);

	copy = text_copy();
	CUjit_option option = CU_JIT_OPTIMIZATION_LEVEL;
	void *value = (void *)(uintptr_t)4;
	CALL(cuModuleLoadDataEx, &module, copy, 1, &option, &value);
	spoil(copy, text_length);
	check_module(module);

	size_t bytes;
	copy = make_fatbin(&bytes);
	CALL(cuModuleLoadFatBinary, &module, copy);
	spoil(copy, bytes);
	check_module(module);

	copy = make_fatbin(&bytes);
	CALL(cuModuleLoadData, &module, copy);
	spoil(copy, bytes);
	check_module(module);

	for (int i = 0; i < 2; i++) {
		copy = make_fatbin(&bytes);
		struct wrapper wrapper = {0x466243b1, 1, copy, NULL};
		module = NULL;
		CUresult result = (i ? DRIVER(cuModuleLoadFatBinary) : DRIVER(cuModuleLoadData))(&module, &wrapper);
		spoil(copy, bytes);
		if (wrapper_taken(result, module))
			check_module(module);
	}

	CALL(cuModuleLoad, &module, path);
	check_module(module);
}

/* As each runtime and cuda-bindings get it. */
static void by_proc_address(void)
{
	CUmodule module;
	void *function = NULL;
	CUdriverProcAddressQueryResult status;
	CALL(cuGetProcAddress_v2, "cuModuleLoadData", &function, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status);
	void *copy = text_copy();
	EXPECT(function && ((__typeof__(cuModuleLoadData) *)function)(&module, copy) == CUDA_SUCCESS);
	spoil(copy, text_length);
	check_module(module);
}

/* A load that failed leaves nothing, and what the handle stood for stays as it was. */
static void refused(void)
{
	CUmodule module;
	CALL(cuModuleLoadData, &module, text);
	CUmodule handle = module;
	EXPECT(DRIVER(cuModuleLoadData)(&handle, "no PTX") != CUDA_SUCCESS);
	EXPECT(DRIVER(cuModuleLoad)(&handle, "/nonexistent") != CUDA_SUCCESS);
	check_module(module);
}

static void libraries(void)
{
	CUlibrary library;
	void *copy = text_copy();
	CALL(cuLibraryLoadData, &library, copy, NULL, NULL, 0, NULL, NULL, 0);
	spoil(copy, text_length);
	check_library(library);

	size_t bytes;
	copy = make_fatbin(&bytes);
	CALL(cuLibraryLoadData, &library, copy, NULL, NULL, 0, NULL, NULL, 0);
	spoil(copy, bytes);
	check_library(library);

	copy = make_fatbin(&bytes);
	struct wrapper wrapper = {0x466243b1, 1, copy, NULL};
	library = NULL;
	CUresult result = DRIVER(cuLibraryLoadData)(&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0);
	spoil(copy, bytes);
	if (wrapper_taken(result, library))
		check_library(library);

	CALL(cuLibraryLoadFromFile, &library, path, NULL, NULL, 0, NULL, NULL, 0);
	check_library(library);
}

/* What the linker made belongs to it, and goes with it. */
static void linked(void)
{
	CUlinkState state;
	CUmodule module;
	void *code;
	size_t bytes;
	CALL(cuLinkCreate_v2, 0, NULL, NULL, &state);
	CALL(cuLinkAddData_v2, state, CU_JIT_INPUT_PTX, text, text_length + 1, "text", 0, NULL, NULL);
	CALL(cuLinkComplete, state, &code, &bytes);
	CALL(cuModuleLoadData, &module, code);
	CALL(cuLinkDestroy, state);
	check_module(module);
}

/*
 * A question in the middle of a capture is answered, and the capture goes on; `hidden`: the function was got past the hooks, so the library must be searched for.
 */
static void captured(bool hidden)
{
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	CUstream stream;
	CUgraph graph;
	CALL(cuLibraryLoadData, &library, text, NULL, NULL, 0, NULL, NULL, 0);
	CALL(cuLibraryGetKernel, &kernel, library, "fill");
	EXPECT((hidden ? drv.cuKernelGetFunction : DRIVER(cuKernelGetFunction))(&function, kernel) == CUDA_SUCCESS);
	CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	CALL(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	check_fill(function);
	CALL(cuStreamEndCapture, stream, &graph);
	CALL(cuGraphDestroy, graph);
	CALL(cuStreamDestroy_v2, stream);
	CALL(cuLibraryUnload, library);
}

/* A green context, of which the software GPU has none, as far as it matters here: it holds the primary context. */
static CUcontext primary;

static CUresult green_context(CUcontext *ret_context, CUgreenCtx green)
{
	*ret_context = primary;
	return CUDA_SUCCESS;
}

static CUresult green_destroy(CUgreenCtx green)
{
	return drv.cuDevicePrimaryCtxRelease_v2(0);
}

static uint64_t protected_ranges(void)
{
	struct cuconst_stats stats = {.size = sizeof stats};
	EXPECT((cuconst_stats)(&stats) == CUCONST_OK);
	return stats.ranges;
}

/* The end of the last green context is that of the primary one, its modules and its memory. */
static void green_ends(CUcontext context)
{
	const CUgreenCtx green = (CUgreenCtx)(uintptr_t)64;
	CUmodule module, kept;
	CUfunction function;
	CUdeviceptr memory;
	cuconst_handle handle;
	struct load load;
	primary = context;
	drv.cuCtxFromGreenCtx = green_context;
	drv.cuGreenCtxDestroy = green_destroy;
	CALL(cuMemAlloc_v2, &memory, 4096);
	EXPECT((cuconst_protect)(memory, 4096, "memory", 0, NULL, &handle) == CUCONST_OK);
	CALL(cuModuleLoadData, &module, text);
	CALL(cuModuleGetFunction, &function, module, "fill");
	check_fill(function);
	/* Somebody else holds the primary context: protections stay, and code that may be gone proves nothing. */
	CALL(cuDevicePrimaryCtxRetain, &context, 0);
	uint64_t epoch = function_epoch();
	CALL(cuGreenCtxDestroy, green);
	EXPECT(function_epoch() != epoch && !images_find(module, &load) && protected_ranges() == 1);
	CALL(cuModuleLoadData, &kept, text);
	CALL(cuGreenCtxDestroy, green);
	EXPECT(!images_find(kept, &load) && protected_ranges() == 0);
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* What a load costs beside the driver's own, and the first question about a kernel. */
static void times(void)
{
	enum { ROUNDS = 2000, QUESTIONS = 50 };
	double start = now(), asking = 0;
	for (int i = 0; i < ROUNDS; i++) {
		images_module_loaded((CUmodule)(uintptr_t)64, text);
		const void *handle = (const void *)(uintptr_t)64;
		images_ended(handle, images_ending(handle));
	}
	double keeping = (now() - start) / ROUNDS;
	CUmodule module;
	CUfunction function;
	start = now();
	for (int i = 0; i < QUESTIONS; i++) {
		CALL(cuModuleLoadData, &module, text);
		CALL(cuModuleGetFunction, &function, module, "fill");
		asking -= now();
		check_fill(function);
		asking += now();
		CALL(cuModuleUnload, module);
	}
	printf("keeping and dropping a copy of %zu bytes: %.2f us; load, ask, unload: %.1f us, of which the first question %.1f us\n",
	       text_length, keeping, (now() - start) / QUESTIONS, asking / QUESTIONS);
}

int main(int argc, char **argv)
{
	CUcontext context;
	CUdevice device;
	EXPECT(argc >= 2);
	path = argv[1];
	text = (char *)read_all(path, &text_length);
	CALL(cuInit, 0);
	const char *folder = getenv("LD_LIBRARY_PATH");
	EXPECT(!folder || !strstr(folder, "softgpu") || software_gpu());
	CALL(cuDeviceGet, &device, 0);
	CALL(cuDevicePrimaryCtxRetain, &context, device);
	CALL(cuCtxSetCurrent, context);
	modules();
	by_proc_address();
	refused();
	libraries();
	linked();
	captured(false);
	captured(true);
	if (argc > 2)
		times();
	green_ends(context); /* and with it the primary context */
	free(text);
	return 0;
}
