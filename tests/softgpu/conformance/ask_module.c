/* Modules, functions and their parameters, symbols, linking; libraries and kernels. */
#include "tests/softgpu/conformance/conformance.h"

static const char broken_ptx[] =
	".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry f()\n{\n	nonsense;\n}\n";

static void loading(void)
{
	CUmodule module = NULL, again = NULL;
	CUmoduleLoadingMode mode = (CUmoduleLoadingMode)77;
	static const char empty_ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n";
	static const char future_ptx[] = ".version 99.0\n.target sm_75\n.address_size 64\n";
	static const char target_ptx[] = ".version 7.0\n.target sm_1000\n.address_size 64\n";
	static const char elf[64] = "\177ELF\2\1\1";
	char info[4096] = "", errors[4096] = "";
	CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
	                          CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {info, (void *)sizeof(info), errors, (void *)sizeof(errors)};

	answer_status("load", cuModuleLoadData(&module, conformance_ptx));
	answer_status("load_again", cuModuleLoadData(&again, conformance_ptx));
	answer_yes("load_again_differs", module != again);
	answer_status("load_null_output", cuModuleLoadData(NULL, conformance_ptx));
	answer_status("load_null_image", cuModuleLoadData(&again, NULL));
	answer_status("load_empty_text", cuModuleLoadData(&again, ""));
	answer_status("load_words", cuModuleLoadData(&again, "this is not PTX"));
	answer_status("load_broken", cuModuleLoadData(&again, broken_ptx));
	answer_status("load_no_functions", cuModuleLoadData(&again, empty_ptx));
	answer_status("load_future_version", cuModuleLoadData(&again, future_ptx));
	answer_status("load_unknown_target", cuModuleLoadData(&again, target_ptx));
	answer_status("load_elf_header", cuModuleLoadData(&again, elf));
	answer_status("load_no_file", cuModuleLoad(&again, "/nowhere/at/all.ptx"));
	answer_status("load_null_file", cuModuleLoad(&again, NULL));
	answer_status("load_with_log", cuModuleLoadDataEx(&again, broken_ptx, 4, options, values));
	answer_yes("load_log_not_empty", errors[0] != '\0');
	answer_yes("load_log_names_line", strstr(errors, "line 6") != NULL);
	answer_yes("load_log_size_set", (size_t)values[3] > 0 && (size_t)values[3] < sizeof(errors));
	answer_status("load_options_null", cuModuleLoadDataEx(&again, conformance_ptx, 1, NULL, NULL));
	answer_status("loading_mode", cuModuleGetLoadingMode(&mode));
	answer_number("loading_mode_value", mode);
	answer_status("unload", cuModuleUnload(module));
	answer_status("unload_null", cuModuleUnload(NULL));
}

static void functions(void)
{
	CUfunction store = NULL, other = NULL;
	CUmodule got = NULL;
	const char *name = NULL;
	size_t offset = 77, size = 77;
	unsigned count = 77;
	int value = 77;

	answer_status("function", cuModuleGetFunction(&store, kernels(), "store"));
	answer_status("function_none", cuModuleGetFunction(&other, kernels(), "nothing"));
	answer_status("function_null_name", cuModuleGetFunction(&other, kernels(), NULL));
	answer_status("function_null_output", cuModuleGetFunction(NULL, kernels(), "store"));
	answer_status("function_null_module", cuModuleGetFunction(&other, NULL, "store"));
	answer_status("function_of_variable", cuModuleGetFunction(&other, kernels(), "data"));
	NEED(cuModuleGetFunction(&other, kernels(), "store"));
	answer_yes("function_again_same", other == store);
	answer_status("count", cuModuleGetFunctionCount(&count, kernels()));
	answer_number("count_value", count);
	answer_status("name", cuFuncGetName(&name, store));
	answer("name_value", "%s", name != NULL ? name : "none");
	answer_status("module_of", cuFuncGetModule(&got, store));
	answer_yes("module_of_same", got == kernels());
	answer_status("module_of_null", cuFuncGetModule(&got, NULL));
	answer_status("parameter_0", cuFuncGetParamInfo(store, 0, &offset, &size));
	answer("parameter_0_value", "%zu+%zu", offset, size);
	answer_status("parameter_1", cuFuncGetParamInfo(store, 1, &offset, &size));
	answer("parameter_1_value", "%zu+%zu", offset, size);
	answer_status("parameter_2", cuFuncGetParamInfo(store, 2, &offset, &size));
	answer_status("parameter_null_size", cuFuncGetParamInfo(store, 0, &offset, NULL));
	answer_status("parameter_null_offset", cuFuncGetParamInfo(store, 0, NULL, &size));
	answer_status("parameter_by_value", cuFuncGetParamInfo(kernel("by_value"), 0, &offset, &size));
	answer("parameter_by_value_value", "%zu+%zu", offset, size);
	answer_status("parameter_after_value", cuFuncGetParamInfo(kernel("by_value"), 1, &offset, &size));
	answer("parameter_after_value_value", "%zu+%zu", offset, size);
	answer_status("parameter_of_none", cuFuncGetParamInfo(kernel("trap"), 0, &offset, &size));
	answer_status("shared", cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel("shared")));
	answer_number("shared_value", value);
	answer_status("threads", cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, store));
	answer_number("threads_value", value);
	NEED(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel("bounded")));
	answer_number("bounded_threads", value);
	NEED(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, store));
	answer_number("constant_value", value);
	NEED(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, store));
	answer_number("local_value", value);
	NEED(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, store));
	answer_number("ptx_version", value);
	NEED(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, store));
	answer_number("binary_version", value);
	NEED(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, store));
	answer_number("dynamic_shared_default", value);
	NEED(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel("shared")));
	answer_number("dynamic_shared_of_static", value);
	answer_status("dynamic_shared_set",
	              cuFuncSetAttribute(store, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
	answer_status("dynamic_shared_beyond",
	              cuFuncSetAttribute(store, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300000));
	answer_status("dynamic_shared_negative",
	              cuFuncSetAttribute(store, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1));
	answer_status("set_registers", cuFuncSetAttribute(store, CU_FUNC_ATTRIBUTE_NUM_REGS, 5));
	answer_status("attribute_unknown", cuFuncGetAttribute(&value, (CUfunction_attribute)99, store));
	answer_status("attribute_null", cuFuncGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, store));
	answer_status("cache_config", cuFuncSetCacheConfig(store, CU_FUNC_CACHE_PREFER_L1));
	CUfunctionLoadingState state = (CUfunctionLoadingState)77;
	answer_status("is_loaded", cuFuncIsLoaded(&state, store));
	answer_status("load_function", cuFuncLoad(store));
	answer_status("is_loaded_after", cuFuncIsLoaded(&state, store));
	answer_number("is_loaded_value", state);
}

static void symbols(void)
{
	CUdeviceptr data = 0, fixed = 0, base = 0;
	size_t size = 77;

	answer_status("global", cuModuleGetGlobal(&data, &size, kernels(), "data"));
	answer_number("global_size", (long long)size);
	answer_number("global_value", word_at(data));
	answer_status("global_constant", cuModuleGetGlobal(&fixed, &size, kernels(), "fixed"));
	answer_number("global_constant_size", (long long)size);
	answer_number("global_constant_value", word_at(fixed));
	answer_status("global_none", cuModuleGetGlobal(&base, &size, kernels(), "nothing"));
	answer_status("global_of_function", cuModuleGetGlobal(&base, &size, kernels(), "store"));
	answer_status("global_null_name", cuModuleGetGlobal(&base, &size, kernels(), NULL));
	answer_status("global_size_alone", cuModuleGetGlobal(NULL, &size, kernels(), "data"));
	answer_status("global_no_outputs", cuModuleGetGlobal(NULL, NULL, kernels(), "data"));
	answer_status("set_global", cuMemsetD8(data, 1, 64));
	answer_status("set_constant", cuMemsetD8(fixed, 1, 16));
	answer_status("free_global", cuMemFree(data));
	answer_status("range_of_global", cuMemGetAddressRange(&base, &size, data));
	unsigned type = 77;
	answer_status("pointer_type_of_global", cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, data));
	CUtexref reference;
	answer_status("texture_reference_none", cuModuleGetTexRef(&reference, kernels(), "nothing"));
}

static void linking(void)
{
	CUlinkState state = NULL;
	void *image = NULL;
	size_t size = 0;
	CUmodule module = NULL;
	CUfunction function = NULL;

	answer_status("link_create", cuLinkCreate(0, NULL, NULL, &state));
	answer_status("link_create_null", cuLinkCreate(0, NULL, NULL, NULL));
	if (state == NULL)
		return;
	answer_status("link_add", cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)conformance_ptx,
	                                        strlen(conformance_ptx) + 1, "one", 0, NULL, NULL));
	answer_status("link_add_type", cuLinkAddData(state, (CUjitInputType)99, (void *)(uintptr_t)conformance_ptx, 16,
	                                             "two", 0, NULL, NULL));
	answer_status("link_add_no_file", cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/nowhere/at/all.ptx", 0, NULL, NULL));
	answer_status("link_complete", cuLinkComplete(state, &image, &size));
	answer_yes("link_image", image != NULL && size > 0);
	if (image != NULL)
		answer_status("link_load", cuModuleLoadData(&module, image));
	if (module != NULL)
		answer_status("link_function", cuModuleGetFunction(&function, module, "store"));
	answer_status("link_destroy", cuLinkDestroy(state));
}

static void link_broken(void)
{
	CUlinkState state = NULL;
	void *image = NULL;
	size_t size = 0;

	NEED(cuLinkCreate(0, NULL, NULL, &state));
	answer_status("link_add_broken", cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)broken_ptx,
	                                               sizeof(broken_ptx), "one", 0, NULL, NULL));
	answer_status("link_complete_broken", cuLinkComplete(state, &image, &size));
	answer_status("link_destroy_broken", cuLinkDestroy(state));
	NEED(cuLinkCreate(0, NULL, NULL, &state));
	answer_status("link_complete_nothing", cuLinkComplete(state, &image, &size));
}

static const struct topic topics[] = {
	{.name = "loading", .ask = loading},
	{.name = "functions", .ask = functions},
	{.name = "symbols", .ask = symbols},
	{.name = "linking", .ask = linking, .alone = true},
	{.name = "link_broken", .ask = link_broken, .alone = true},
	{.name = NULL},
};
const struct family module_family = {.name = "module", .topics = topics};

static void libraries(void)
{
	CUlibrary library = NULL, other = NULL;
	CUkernel one = NULL, again = NULL, list[16];
	CUfunction function = NULL;
	CUmodule module = NULL;
	const char *name = NULL;
	size_t offset = 77, size = 77;
	unsigned count = 77;
	int value = 77;
	CUdeviceptr data = 0;
	CUlibrary got = NULL;

	answer_status("load", cuLibraryLoadData(&library, conformance_ptx, NULL, NULL, 0, NULL, NULL, 0));
	answer_status("load_null", cuLibraryLoadData(&other, NULL, NULL, NULL, 0, NULL, NULL, 0));
	answer_status("load_null_output", cuLibraryLoadData(NULL, conformance_ptx, NULL, NULL, 0, NULL, NULL, 0));
	answer_status("load_broken", cuLibraryLoadData(&other, broken_ptx, NULL, NULL, 0, NULL, NULL, 0));
	answer_status("load_no_file", cuLibraryLoadFromFile(&other, "/nowhere/at/all.ptx", NULL, NULL, 0, NULL, NULL, 0));
	answer_status("kernel", cuLibraryGetKernel(&one, library, "store"));
	answer_status("kernel_none", cuLibraryGetKernel(&again, library, "nothing"));
	NEED(cuLibraryGetKernel(&again, library, "store"));
	answer_yes("kernel_again_same", one == again);
	answer_status("count", cuLibraryGetKernelCount(&count, library));
	answer_number("count_value", count);
	answer_status("enumerate", cuLibraryEnumerateKernels(list, 16, library));
	answer_status("enumerate_two", cuLibraryEnumerateKernels(list, 2, library));
	answer_status("name", cuKernelGetName(&name, one));
	answer("name_value", "%s", name != NULL ? name : "none");
	answer_status("library_of", cuKernelGetLibrary(&got, one));
	answer_yes("library_of_same", got == library);
	answer_status("parameter_1", cuKernelGetParamInfo(one, 1, &offset, &size));
	answer("parameter_1_value", "%zu+%zu", offset, size);
	answer_status("parameter_2", cuKernelGetParamInfo(one, 2, &offset, &size));
	answer_status("attribute", cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, one, 0));
	answer_number("attribute_value", value);
	answer_status("attribute_no_device", cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, one, 99));
	answer_status("attribute_set",
	              cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000, one, 0));
	answer_status("function", cuKernelGetFunction(&function, one));
	answer_status("function_name", cuFuncGetName(&name, function));
	answer_status("function_module", cuFuncGetModule(&module, function));
	CUmodule of_library = NULL;
	answer_status("module", cuLibraryGetModule(&of_library, library));
	answer_yes("module_same", of_library == module);
	answer_status("module_unload", cuModuleUnload(of_library));
	answer_status("kernel_as_function_name", cuFuncGetName(&name, (CUfunction)one));
	answer_status("kernel_as_function_module", cuFuncGetModule(&module, (CUfunction)one));
	answer_status("kernel_as_function_parameter", cuFuncGetParamInfo((CUfunction)one, 0, &offset, &size));
	answer_status("kernel_as_function_attribute",
	              cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, (CUfunction)one));
	answer_status("function_as_kernel_name", cuKernelGetName(&name, (CUkernel)function));
	answer_status("function_as_kernel_library", cuKernelGetLibrary(&got, (CUkernel)function));
	answer_status("function_as_kernel_parameter", cuKernelGetParamInfo((CUkernel)function, 0, &offset, &size));
	answer_status("global", cuLibraryGetGlobal(&data, &size, library, "data"));
	answer_number("global_size", (long long)size);
	answer_status("global_none", cuLibraryGetGlobal(&data, &size, library, "nothing"));
	answer_status("managed_none", cuLibraryGetManaged(&data, &size, library, "nothing"));
	answer_status("unified_none", cuLibraryGetUnifiedFunction(&(void *){NULL}, library, "nothing"));
	uint32_t word = 3;
	CUdeviceptr memory = device_memory(64);
	void *parameters[] = {&memory, &word};
	answer_status("launch_kernel", cuLaunchKernel((CUfunction)one, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	answer_number("launch_kernel_value", word_at(memory));
	answer_status("unload", cuLibraryUnload(library));
	answer_status("unload_null", cuLibraryUnload(NULL));
}

static const struct topic library_topics[] = {
	{.name = "libraries", .ask = libraries},
	{.name = NULL},
};
const struct family library_family = {.name = "library", .topics = library_topics};
