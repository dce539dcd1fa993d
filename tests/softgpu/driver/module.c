#include "tests/softgpu/driver/module.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/softgpu/driver/capture.h"
#include "tests/softgpu/driver/function.h"
#include "tests/softgpu/driver/memory.h"

enum { LOG_BYTES = 4096 };

struct sg_function *sg_function_of(CUfunction handle)
{
	return sg_is(handle, SG_FUNCTION) ? (struct sg_function *)handle : NULL;
}

static struct sg_module *module_of(CUmodule handle)
{
	return sg_is(handle, SG_MODULE) ? (struct sg_module *)handle : NULL;
}

static void take_out(struct sg_module *module)
{
	sg_remove(module);
	for (size_t i = 0; i < module->count; i++)
		sg_remove(&module->functions[i]);
}

void sg_module_free(struct sg_module *module)
{
	take_out(module);
	/* The interpreter gives the module's variables back through callbacks that lock. */
	sg_unlock();
	ptx_unload(&module->ptx);
	sg_lock();
	for (size_t i = 0; i < module->count; i++)
		free(module->functions[i].remembered);
	free(module->functions);
	free(module);
}

CUresult sg_module_create(struct sg_context *context, const char *text, size_t bytes, char *log, size_t log_bytes,
                          struct sg_module **ret_module)
{
	struct sg_module *module = calloc(1, sizeof(*module));

	if (module == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult status = sg_image_load(text, bytes, &context->memory, log, log_bytes, &module->ptx);
	if (status != CUDA_SUCCESS) {
		free(module);
		return status;
	}
	size_t count = ptx_function_count(module->ptx);
	module->context = context;
	module->functions = calloc(count + 1, sizeof(*module->functions));
	if (module->functions == NULL) {
		ptx_unload(&module->ptx);
		free(module);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	sg_lock();
	bool added = sg_add(module, SG_MODULE);
	for (size_t i = 0; i < count && added; i++) {
		struct ptx_function *ptx = ptx_function_at(module->ptx, i);
		module->functions[i] = (struct sg_function){module, ptx, sg_default_dynamic_shared(ptx), NULL};
		added = sg_add(&module->functions[i], SG_FUNCTION);
		module->count += added;
	}
	if (!added)
		sg_module_free(module);
	sg_unlock();
	if (!added)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_module = module;
	return CUDA_SUCCESS;
}

struct search {
	const struct sg_context *context;
	struct sg_module *found;
};

static void find_module(void *handle, void *data)
{
	struct search *search = data;

	if (((struct sg_module *)handle)->context == search->context)
		search->found = handle;
}

void sg_modules_end(struct sg_context *context)
{
	for (;;) {
		struct search search = {context, NULL};
		sg_each(SG_MODULE, find_module, &search);
		if (search.found == NULL)
			return;
		if (search.found->library != NULL)
			sg_library_forget(search.found->library, search.found);
		sg_module_free(search.found);
	}
}

static CUresult load(CUmodule *ret_module, const void *image, unsigned count, CUjit_option *options, void **values)
{
	char log[LOG_BYTES] = "";
	struct sg_module *module = NULL;
	struct sg_text text = {.text = NULL};

	if (ret_module == NULL || image == NULL || (count > 0 && (options == NULL || values == NULL)))
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_context *context = sg_context_current();
	CUresult status = context == NULL ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
	sg_unlock();
	if (status == CUDA_SUCCESS)
		status = sg_image_text(image, &text);
	if (status == CUDA_SUCCESS)
		status = sg_module_create(context, text.text, text.bytes, log, sizeof(log), &module);
	free(text.owned);
	sg_jit_log(count, options, values, log);
	if (status == CUDA_SUCCESS)
		*ret_module = (CUmodule)module;
	return status;
}

CUresult sg_cuModuleLoadData(CUmodule *module, const void *image)
{
	return load(module, image, 0, NULL, NULL);
}

CUresult sg_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options,
                               void **optionValues)
{
	return load(module, image, numOptions, options, optionValues);
}

CUresult sg_cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return load(module, fatCubin, 0, NULL, NULL);
}

/* The whole file and a zero behind it; the caller frees. */
char *sg_read_file(const char *path)
{
	struct stat info;
	char *text = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size < (off_t)1 << 30)
		text = calloc(1, (size_t)info.st_size + 16);
	for (off_t done = 0; text != NULL && done < info.st_size;) {
		ssize_t part = read(fd, text + done, (size_t)(info.st_size - done));
		if (part <= 0) {
			free(text);
			text = NULL;
		}
		done += part;
	}
	if (fd >= 0)
		close(fd);
	return text;
}

CUresult sg_cuModuleLoad(CUmodule *module, const char *fname)
{
	if (module == NULL || fname == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	char *text = sg_read_file(fname);
	if (text == NULL)
		return CUDA_ERROR_FILE_NOT_FOUND;
	CUresult status = load(module, text, 0, NULL, NULL);
	free(text);
	return status;
}

CUresult sg_cuModuleUnload(CUmodule hmod)
{
	CUresult status = CUDA_ERROR_INVALID_HANDLE;

	sg_lock();
	struct sg_module *module = module_of(hmod);
	if (module != NULL && module->library != NULL)
		status = CUDA_ERROR_NOT_PERMITTED; /* it goes with its library */
	if (module != NULL && module->library == NULL) {
		status = sg_capture_unsafe();
		if (status == CUDA_SUCCESS)
			sg_drain_all();
		if (status == CUDA_SUCCESS && module_of(hmod) == module)
			sg_module_free(module);
	}
	sg_unlock();
	return status;
}

CUresult sg_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	if (mode == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

CUresult sg_cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	CUresult status = CUDA_ERROR_NOT_FOUND;

	if (hfunc == NULL || name == NULL || *name == '\0')
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_module *module = module_of(hmod);
	if (module == NULL)
		status = CUDA_ERROR_INVALID_HANDLE;
	for (size_t i = 0; module != NULL && i < module->count; i++)
		if (strcmp(ptx_function_name(module->functions[i].ptx), name) == 0) {
			*hfunc = (CUfunction)&module->functions[i];
			status = CUDA_SUCCESS;
			break;
		}
	sg_unlock();
	return status;
}

CUresult sg_cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	if (count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_module *module = module_of(mod);
	if (module != NULL)
		*count = (unsigned)module->count;
	sg_unlock();
	return module != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	if (functions == NULL || numFunctions == 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_module *module = module_of(mod);
	for (size_t i = 0; module != NULL && i < module->count && i < numFunctions; i++)
		functions[i] = (CUfunction)&module->functions[i];
	sg_unlock();
	return module != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* There are no texture and surface references: a module has none of any name. */
CUresult sg_cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name)
{
	return pTexRef == NULL || hmod == NULL || name == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}

CUresult sg_cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name)
{
	return pSurfRef == NULL || hmod == NULL || name == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}

CUresult sg_cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	uint64_t address;
	size_t size;

	if (name == NULL || (dptr == NULL && bytes == NULL))
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_module *module = module_of(hmod);
	CUresult status = module == NULL                                   ? CUDA_ERROR_INVALID_HANDLE
	                  : ptx_global(module->ptx, name, &address, &size) ? CUDA_SUCCESS
	                  : ptx_find(module->ptx, name) != NULL            ? CUDA_ERROR_INVALID_VALUE
	                                                                   : CUDA_ERROR_NOT_FOUND;
	sg_unlock();
	if (status == CUDA_SUCCESS && dptr != NULL)
		*dptr = address;
	if (status == CUDA_SUCCESS && bytes != NULL)
		*bytes = size;
	return status;
}
