/* Loading and unloading code: state to keep, so that a launched function is found in its image. Runs when nothing is protected, too. */
#include "shim/effects/call.h"
#include "shim/kernels/function.h"
#include "shim/kernels/images.h"
#include "shim/verdict/protect.h"

enum { HANDLE, SOURCE }; /* places in call->state */

/* What becomes of the call's output and of what it was given, once the driver took it. */
#define LOADED_AFTER(name, handle_type, record, source_type)                                                           \
	static void name(struct call *call, CUresult result)                                                           \
	{                                                                                                              \
		if (result == CUDA_SUCCESS)                                                                            \
			record(*(handle_type *)call->state[HANDLE].pointer,                                            \
			       (const source_type *)call->state[SOURCE].pointer);                                      \
	}
LOADED_AFTER(module_loaded, CUmodule, images_module_loaded, void)
LOADED_AFTER(module_file_loaded, CUmodule, images_module_file_loaded, char)
LOADED_AFTER(library_loaded, CUlibrary, images_library_loaded, void)
LOADED_AFTER(library_file_loaded, CUlibrary, images_library_file_loaded, char)

static void remember(struct call *call, void *handle, const void *source, void (*after)(struct call *, CUresult))
{
	call->state[HANDLE].pointer = handle;
	call->state[SOURCE].pointer = (void *)(uintptr_t)source;
	call->after = after;
}

void effect_module_load(struct call *call, CUmodule *module, const void *image)
{
	remember(call, module, image, module_loaded);
}

void effect_module_load_file(struct call *call, CUmodule *module, const char *path)
{
	remember(call, module, path, module_file_loaded);
}

void effect_library_load(struct call *call, CUlibrary *library, const void *image)
{
	remember(call, library, image, library_loaded);
}

void effect_library_load_file(struct call *call, CUlibrary *library, const char *path)
{
	remember(call, library, path, library_file_loaded);
}

static void kernel_function_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		images_kernel_function(*(CUfunction *)call->state[HANDLE].pointer, call->state[SOURCE].pointer);
}

void effect_kernel_function(struct call *call, CUfunction *function, CUkernel kernel)
{
	remember(call, function, kernel, kernel_function_after);
}

HOOK_COLD bool effect_kernel_function_is_known(CUfunction function)
{
	uint64_t stamp = hook_stamp();
	bool known = images_kernel_is_told(function);
	if (known)
		told_add(function, stamp);
	return known;
}

static void library_module_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		images_library_module(*(CUmodule *)call->state[HANDLE].pointer, call->state[SOURCE].pointer);
}

void effect_library_module(struct call *call, CUmodule *module, CUlibrary library)
{
	remember(call, module, library, library_module_after);
}

static void end_after(struct call *call, CUresult result)
{
	uint64_t load = call->state[1].number;
	if (result != CUDA_SUCCESS) {
		images_stay(call->state[HANDLE].pointer, load);
		return;
	}
	images_ended(call->state[HANDLE].pointer, load);
	protect_variables_ended(call);
}

/* Functions are forgotten before the call: when it returns, another thread may have been given their handles already. */
void effect_module_end(struct call *call, const void *handle)
{
	function_forget();
	call->state[HANDLE].pointer = (void *)(uintptr_t)handle;
	call->state[1].number = images_ending(handle);
	call->after = end_after;
}
