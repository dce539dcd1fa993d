/* Libraries and kernels. */
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/function.h"
#include "tests/softgpu/driver/memory.h"
#include "tests/softgpu/driver/module.h"

enum { LOG_BYTES = 4096 };

/*
 * A CUlibrary. Its sketch is parsed at once, with variables in ordinary memory; a module is loaded for each context
 * that asks for more.
 */
struct sg_library {
	char *text;
	size_t bytes;
	struct ptx_module *sketch;
	struct sg_kernel *kernels;
	size_t count;
	struct sg_module *modules;
};

static struct sg_library *library_of(CUlibrary handle)
{
	return sg_is(handle, SG_LIBRARY) ? (struct sg_library *)handle : NULL;
}

static struct sg_kernel *kernel_of(const void *handle)
{
	return sg_is(handle, SG_KERNEL) ? (struct sg_kernel *)(uintptr_t)handle : NULL;
}

static bool sketch_check(void *data, uint64_t address, size_t bytes, bool write)
{
	(void)data;
	(void)address;
	(void)bytes;
	(void)write;
	return false;
}

static uint64_t sketch_alloc(void *data, size_t bytes, size_t align)
{
	(void)data;
	if (align < sizeof(void *))
		align = sizeof(void *);
	size_t room = (bytes + align - 1) / align * align;
	void *memory = aligned_alloc(align, room > 0 ? room : align);
	if (memory != NULL)
		memset(memory, 0, room);
	return (uint64_t)(uintptr_t)memory;
}

static void sketch_free(void *data, uint64_t address)
{
	(void)data;
	free((void *)(uintptr_t)address);
}

static const struct ptx_memory sketch_memory = {.check = sketch_check, .alloc = sketch_alloc, .free = sketch_free};

CUresult sg_image_check(const char *text, size_t bytes, char *log, size_t log_bytes)
{
	struct ptx_module *sketch = NULL;
	CUresult status = sg_image_load(text, bytes, &sketch_memory, log, log_bytes, &sketch);

	ptx_unload(&sketch);
	return status;
}

static void free_library(struct sg_library *library)
{
	if (library == NULL)
		return;
	ptx_unload(&library->sketch);
	free(library->kernels);
	free(library->text);
	free(library);
}

static CUresult create(const char *text, size_t bytes, char *log, struct sg_library **ret_library)
{
	struct sg_library *library = calloc(1, sizeof(*library));

	if (library == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult status = sg_image_load(text, bytes, &sketch_memory, log, LOG_BYTES, &library->sketch);
	if (status != CUDA_SUCCESS) {
		free(library);
		return status;
	}
	size_t count = ptx_function_count(library->sketch);
	library->text = strndup(text, bytes);
	library->bytes = bytes;
	library->kernels = calloc(count + 1, sizeof(*library->kernels));
	if (library->text == NULL || library->kernels == NULL) {
		free_library(library);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	sg_lock();
	bool added = sg_add(library, SG_LIBRARY);
	for (size_t i = 0; i < count && added; i++) {
		struct ptx_function *ptx = ptx_function_at(library->sketch, i);
		library->kernels[i] = (struct sg_kernel){library, ptx, sg_default_dynamic_shared(ptx)};
		added = sg_add(&library->kernels[i], SG_KERNEL);
		library->count += added;
	}
	for (size_t i = 0; i < library->count && !added; i++)
		sg_remove(&library->kernels[i]);
	if (!added)
		sg_remove(library);
	sg_unlock();
	if (!added) {
		free_library(library);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_library = library;
	return CUDA_SUCCESS;
}

CUresult sg_cuLibraryLoadData(CUlibrary *ret_library, const void *code, CUjit_option *jitOptions,
                              void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                              void **libraryOptionValues, unsigned int numLibraryOptions)
{
	char log[LOG_BYTES] = "";
	struct sg_library *library = NULL;
	struct sg_text text = {.text = NULL};

	if (ret_library == NULL || code == NULL ||
	    (numJitOptions > 0 && (jitOptions == NULL || jitOptionsValues == NULL)) ||
	    (numLibraryOptions > 0 && (libraryOptions == NULL || libraryOptionValues == NULL)))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult status = sg_image_text(code, &text);
	if (status == CUDA_SUCCESS)
		status = create(text.text, text.bytes, log, &library);
	free(text.owned);
	sg_jit_log(numJitOptions, jitOptions, jitOptionsValues, log);
	if (status == CUDA_SUCCESS)
		*ret_library = (CUlibrary)library;
	return status;
}

CUresult sg_cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                                  void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                                  void **libraryOptionValues, unsigned int numLibraryOptions)
{
	if (library == NULL || fileName == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	char *text = sg_read_file(fileName);
	if (text == NULL)
		return CUDA_ERROR_FILE_NOT_FOUND;
	CUresult status = sg_cuLibraryLoadData(library, text, jitOptions, jitOptionsValues, numJitOptions,
	                                       libraryOptions, libraryOptionValues, numLibraryOptions);
	free(text);
	return status;
}

CUresult sg_cuLibraryUnload(CUlibrary handle)
{
	sg_lock();
	struct sg_library *library = library_of(handle);
	if (library != NULL) {
		sg_drain_all();
		sg_remove(library);
		for (size_t i = 0; i < library->count; i++)
			sg_remove(&library->kernels[i]);
		while (library->modules != NULL) {
			struct sg_module *module = library->modules;
			library->modules = module->next;
			sg_module_free(module);
		}
	}
	sg_unlock();
	free_library(library);
	return library != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void sg_library_forget(struct sg_library *library, struct sg_module *module)
{
	struct sg_module **link = &library->modules;

	while (*link != module)
		link = &(*link)->next;
	*link = module->next;
}

static struct sg_module *loaded_in(const struct sg_library *library, const struct sg_context *context)
{
	struct sg_module *module = library->modules;

	while (module != NULL && module->context != context)
		module = module->next;
	return module;
}

/* Without the lock: the library's module in a context, loaded if it was not. */
static CUresult module_in(struct sg_library *library, struct sg_context *context, struct sg_module **ret_module)
{
	char log[LOG_BYTES];

	sg_lock();
	struct sg_module *module = loaded_in(library, context), *fresh = NULL;
	sg_unlock();
	if (module == NULL) {
		CUresult status = sg_module_create(context, library->text, library->bytes, log, sizeof(log), &fresh);
		if (status != CUDA_SUCCESS)
			return status;
		sg_lock();
		module = loaded_in(library, context);
		if (module != NULL) {
			sg_module_free(fresh); /* another thread was faster */
		} else {
			module = fresh;
			module->library = library;
			module->next = library->modules;
			library->modules = module;
		}
		sg_unlock();
	}
	*ret_module = module;
	return CUDA_SUCCESS;
}

CUresult sg_function_in(CUfunction handle, struct sg_context *context, struct sg_function **ret_function)
{
	struct sg_module *module;

	sg_lock();
	struct sg_function *function = sg_function_of(handle);
	struct sg_kernel *kernel = kernel_of(handle);
	sg_unlock();
	if (function != NULL) {
		*ret_function = function;
		return CUDA_SUCCESS;
	}
	if (kernel == NULL || context == NULL)
		return kernel == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_CONTEXT;
	CUresult status = module_in(kernel->library, context, &module);
	if (status == CUDA_SUCCESS) {
		*ret_function = &module->functions[kernel - kernel->library->kernels];
		if ((*ret_function)->max_dynamic_shared < kernel->max_dynamic_shared)
			(*ret_function)->max_dynamic_shared = kernel->max_dynamic_shared;
	}
	return status;
}

CUresult sg_cuLibraryGetKernel(CUkernel *pKernel, CUlibrary handle, const char *name)
{
	CUresult status = CUDA_ERROR_NOT_FOUND;

	if (pKernel == NULL || name == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_library *library = library_of(handle);
	if (library == NULL)
		status = CUDA_ERROR_INVALID_HANDLE;
	for (size_t i = 0; library != NULL && i < library->count; i++)
		if (strcmp(ptx_function_name(library->kernels[i].ptx), name) == 0) {
			*pKernel = (CUkernel)&library->kernels[i];
			status = CUDA_SUCCESS;
			break;
		}
	sg_unlock();
	return status;
}

CUresult sg_cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	if (count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_library *library = library_of(lib);
	if (library != NULL)
		*count = (unsigned)library->count;
	sg_unlock();
	return library != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	if (kernels == NULL || numKernels == 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_library *library = library_of(lib);
	for (size_t i = 0; library != NULL && i < library->count && i < numKernels; i++)
		kernels[i] = (CUkernel)&library->kernels[i];
	sg_unlock();
	return library != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult current_module(CUlibrary handle, struct sg_module **ret_module)
{
	sg_lock();
	struct sg_library *library = library_of(handle);
	struct sg_context *context = sg_context_current();
	sg_unlock();
	if (library == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	return context == NULL ? CUDA_ERROR_INVALID_CONTEXT : module_in(library, context, ret_module);
}

CUresult sg_cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	struct sg_module *module;
	CUresult status = pMod == NULL ? CUDA_ERROR_INVALID_VALUE : current_module(library, &module);

	if (status == CUDA_SUCCESS)
		*pMod = (CUmodule)module;
	return status;
}

CUresult sg_cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	struct sg_module *module;
	uint64_t address;
	size_t size;
	CUresult status = name == NULL || (dptr == NULL && bytes == NULL) ? CUDA_ERROR_INVALID_VALUE
	                                                                  : current_module(library, &module);

	if (status != CUDA_SUCCESS)
		return status;
	sg_lock();
	bool found = ptx_global(module->ptx, name, &address, &size);
	sg_unlock();
	if (found && dptr != NULL)
		*dptr = address;
	if (found && bytes != NULL)
		*bytes = size;
	return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* PTX knows no managed variables apart from an attribute that the interpreter ignores. */
CUresult sg_cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	(void)dptr;
	(void)bytes;
	sg_lock();
	bool known = library_of(library) != NULL;
	sg_unlock();
	return !known ? CUDA_ERROR_INVALID_HANDLE : name == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}

/* No module has functions that the host can call, too. */
CUresult sg_cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
	(void)symbol;
	sg_lock();
	bool known = library_of(library) != NULL;
	sg_unlock();
	return known || fptr == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	struct sg_function *function;

	if (pFunc == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_context *context = sg_context_current();
	bool known = kernel_of(kernel) != NULL;
	sg_unlock();
	CUresult status = known ? sg_function_in((CUfunction)kernel, context, &function) : CUDA_ERROR_INVALID_HANDLE;
	if (status == CUDA_SUCCESS)
		*pFunc = (CUfunction)function;
	return status;
}

CUresult sg_cuKernelGetLibrary(CUlibrary *pLib, CUkernel handle)
{
	if (pLib == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_kernel *kernel = kernel_of(handle);
	if (kernel != NULL)
		*pLib = (CUlibrary)kernel->library;
	sg_unlock();
	return kernel != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuKernelGetName(const char **name, CUkernel hfunc)
{
	if (name == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_kernel *kernel = kernel_of(hfunc);
	if (kernel != NULL)
		*name = ptx_function_name(kernel->ptx);
	sg_unlock();
	return kernel != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuKernelGetParamInfo(CUkernel handle, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	size_t offset, bytes;

	if (paramOffset == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_kernel *kernel = kernel_of(handle);
	bool found = kernel != NULL && ptx_function_param(kernel->ptx, paramIndex, &offset, &bytes);
	sg_unlock();
	if (!found)
		return kernel == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
	*paramOffset = offset;
	if (paramSize != NULL)
		*paramSize = bytes;
	return CUDA_SUCCESS;
}
