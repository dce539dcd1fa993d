/* cuGetProcAddress: which function a name, a version and a flag stand for. */
#include <dlfcn.h>

#include "tests/softgpu/conformance/conformance.h"

enum {
	LEGACY = CU_GET_PROC_ADDRESS_LEGACY_STREAM,
	PER_THREAD = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
};

/* The exported name of an answer, among those that the name could stand for. */
static void ask_for(const char *question, const char *name, int version, cuuint64_t flags)
{
	static const char *const endings[] = {"",      "_v2",      "_v3",      "_v4",     "_ptds",
	                                      "_ptsz", "_v2_ptds", "_v2_ptsz", "_v3_ptsz"};
	CUdriverProcAddressQueryResult result = (CUdriverProcAddressQueryResult)77;
	void *found = (void *)&result;
	CUresult status = cuGetProcAddress(name, &found, version, flags, &result);
	const char *what = NULL;
	char symbol[128] = "another address";

	cuGetErrorName(status, &what);
	for (size_t i = 0; status == CUDA_SUCCESS && name != NULL && i < sizeof(endings) / sizeof(*endings); i++) {
		char candidate[128];
		snprintf(candidate, sizeof(candidate), "%s%s", name, endings[i]);
		void *address = dlsym(RTLD_DEFAULT, candidate);
		if (address != NULL && address == found)
			memcpy(symbol, candidate, sizeof(symbol));
	}
	answer(question, "%s, result %d, %s", what != NULL ? what : "?", (int)result,
	       found == NULL              ? "null"
	       : found == (void *)&result ? "untouched"
	                                  : symbol);
}

static void names(void)
{
	ask_for("plain", "cuMemAlloc", 13000, 0);
	ask_for("legacy_flag", "cuMemAlloc", 13000, LEGACY);
	ask_for("per_thread_flag_no_stream", "cuMemAlloc", 13000, PER_THREAD);
	ask_for("both_flags", "cuMemAlloc", 13000, LEGACY | PER_THREAD);
	ask_for("unknown_flag", "cuMemAlloc", 13000, 8);
	ask_for("huge_flag", "cuMemAlloc", 13000, (cuuint64_t)1 << 40);
	ask_for("per_thread_copy", "cuMemcpyHtoD", 13000, PER_THREAD);
	ask_for("per_thread_launch", "cuLaunchKernel", 13000, PER_THREAD);
	ask_for("per_thread_first_version", "cuMemcpyHtoD", 7000, PER_THREAD);
	ask_for("per_thread_old_version", "cuMemcpyHtoD", 6050, PER_THREAD);
	ask_for("old_version", "cuMemAlloc", 2000, 0);
	ask_for("next_version", "cuMemAlloc", 3020, 0);
	ask_for("between", "cuMemAlloc", 3010, 0);
	ask_for("version_zero", "cuMemAlloc", 0, 0);
	ask_for("version_negative", "cuMemAlloc", -1, 0);
	ask_for("version_1000", "cuInit", 1000, 0);
	ask_for("version_13010", "cuMemAlloc", 13010, 0);
	ask_for("version_13020", "cuMemAlloc", 13020, 0);
	ask_for("version_14000", "cuMemAlloc", 14000, 0);
	ask_for("version_99999", "cuMemAlloc", 99999, 0);
	ask_for("unknown_name", "cuNothing", 13000, 0);
	ask_for("unknown_name_future", "cuNothing", 99999, 0);
	ask_for("unknown_name_old", "cuNothing", 2000, 0);
	ask_for("empty_name", "", 13000, 0);
	ask_for("not_cu", "malloc", 13000, 0);
	ask_for("runtime_name", "cudaMalloc", 13000, 0);
	ask_for("suffixed_name", "cuMemAlloc_v2", 13000, 0);
	ask_for("suffixed_ptds", "cuMemcpyHtoD_v2_ptds", 13000, 0);
	ask_for("suffixed_ptsz", "cuLaunchKernel_ptsz", 13000, 0);
	ask_for("lower_case", "cumemalloc", 13000, 0);
	ask_for("trailing_space", "cuMemAlloc ", 13000, 0);
	ask_for("too_new", "cuGraphAddNode", 12000, 0);
	ask_for("new_enough", "cuGraphAddNode", 12020, 0);
	ask_for("third_version", "cuGraphAddNode", 12030, 0);
	ask_for("itself_12000", "cuGetProcAddress", 12000, 0);
	ask_for("itself_11030", "cuGetProcAddress", 11030, 0);
	ask_for("itself_11000", "cuGetProcAddress", 11000, 0);
	ask_for("context_2000", "cuCtxCreate", 2000, 0);
	ask_for("context_3020", "cuCtxCreate", 3020, 0);
	ask_for("context_11040", "cuCtxCreate", 11040, 0);
	ask_for("context_12050", "cuCtxCreate", 12050, 0);
	ask_for("context_13000", "cuCtxCreate", 13000, 0);
	ask_for("capture_info_10010", "cuStreamGetCaptureInfo", 10010, 0);
	ask_for("capture_info_11030", "cuStreamGetCaptureInfo", 11030, 0);
	ask_for("capture_info_12030", "cuStreamGetCaptureInfo", 12030, PER_THREAD);
	ask_for("prefetch_8000", "cuMemPrefetchAsync", 8000, 0);
	ask_for("prefetch_12020", "cuMemPrefetchAsync", 12020, 0);
	ask_for("prefetch_per_thread", "cuMemPrefetchAsync", 12020, PER_THREAD);
	ask_for("elapsed_2000", "cuEventElapsedTime", 2000, 0);
	ask_for("elapsed_12080", "cuEventElapsedTime", 12080, 0);
	ask_for("update_10020", "cuGraphExecUpdate", 10020, 0);
	ask_for("update_12000", "cuGraphExecUpdate", 12000, 0);
	ask_for("memop_8000", "cuStreamWriteValue32", 8000, 0);
	ask_for("memop_11070", "cuStreamWriteValue32", 11070, 0);
	ask_for("batch_12080", "cuMemcpyBatchAsync", 12080, 0);
	ask_for("batch_13000", "cuMemcpyBatchAsync", 13000, 0);
	ask_for("legacy_launch", "cuLaunchGrid", 13000, 0);
	ask_for("texture_reference", "cuTexRefCreate", 13000, 0);
	ask_for("profiler", "cuProfilerStart", 13000, 0);
	ask_for("gl", "cuGraphicsGLRegisterBuffer", 13000, 0);
	ask_for("export_table", "cuGetExportTable", 13000, 0);
	ask_for("green", "cuGreenCtxCreate", 13000, 0);
	ask_for("multicast", "cuMulticastCreate", 13000, 0);
	ask_for("checkpoint", "cuCheckpointProcessLock", 13000, 0);
	ask_for("core_dump", "cuCoredumpGetAttribute", 13000, 0);
	ask_for("logs", "cuLogsDumpToMemory", 13000, 0);
}

static void outputs(void)
{
	void *found = NULL;
	CUresult (*first)(const char *, void **, int, cuuint64_t) = NULL;
	CUuuid id = {"no such table"};
	const void *table = &id;

	answer_status("null_result", cuGetProcAddress("cuInit", &found, 13000, 0, NULL));
	answer_status("null_result_unknown", cuGetProcAddress("cuNothing", &found, 13000, 0, NULL));
	*(void **)&first = dlsym(RTLD_DEFAULT, "cuGetProcAddress");
	answer_yes("first_exported", first != NULL);
	if (first != NULL) {
		answer_status("first_known", first("cuInit", &found, 11030, 0));
		answer_status("first_unknown", first("cuNothing", &found, 11030, 0));
		answer_yes("first_unknown_null", found == NULL);
		answer_status("first_too_new", first("cuGraphAddNode", &found, 11030, 0));
		answer_status("first_future", first("cuInit", &found, 14000, 0));
	}
	answer_status("table_unknown", cuGetExportTable(&table, &id));
}

static const struct topic topics[] = {
	{.name = "names", .ask = names},
	{.name = "outputs", .ask = outputs},
	{.name = NULL},
};
const struct family resolve_family = {.name = "resolve", .topics = topics, .bare = true};
