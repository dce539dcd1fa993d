/* Every exported name, cuGetProcAddress, the private entry points. */
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softgpu/tests/check.h"

static void *exported(const char *name)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *found = library != NULL ? dlsym(library, name) : NULL;

	if (library != NULL)
		dlclose(library);
	return found;
}

/* Each row of the table: exported, and the answer to its own question. */
static void whole_table(void)
{
	FILE *table = fopen(getenv("SOFTGPU_SYMBOLS"), "r");
	char line[512], symbol[128], name[128];
	int version, flag, rows = 0;

	CHECK(table != NULL);
	while (table != NULL && fgets(line, sizeof(line), table) != NULL) {
		if (sscanf(line, "%127s %127s %d %d", symbol, name, &version, &flag) != 4 || strstr(line, "\tabsent"))
			continue;
		CUdriverProcAddressQueryResult result = (CUdriverProcAddressQueryResult)9;
		void *answer = NULL;
		rows++;
		if (exported(symbol) == NULL)
			fprintf(stderr, "%s is not exported\n", symbol);
		CHECK(exported(symbol) != NULL);
		OK(cuGetProcAddress(name, &answer, version, (cuuint64_t)flag, &result));
		if (answer != exported(symbol))
			fprintf(stderr, "%s %d %d does not answer %s\n", name, version, flag, symbol);
		CHECK(answer == exported(symbol) && result == CU_GET_PROC_ADDRESS_SUCCESS);
		if (flag == 0) {
			OK(cuGetProcAddress(name, &answer, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL));
			CHECK(answer == exported(symbol));
		}
	}
	if (table != NULL)
		fclose(table);
	CHECK(rows > 600);
}

static void questions(void)
{
	CUdriverProcAddressQueryResult result = (CUdriverProcAddressQueryResult)9;
	void *answer = (void *)1;
	CUresult (*first)(const char *, void **, int, cuuint64_t) = NULL;

	OK(cuGetProcAddress("cuNothing", &answer, 13000, 0, &result));
	CHECK(answer == NULL && result == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	answer = (void *)1;
	OK(cuGetProcAddress("", &answer, 0, 0, NULL));
	CHECK(answer == NULL);
	OK(cuGetProcAddress("cuGraphAddNode", &answer, 12000, 0, &result));
	CHECK(answer == NULL && result == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	OK(cuGetProcAddress("cuMemAlloc", &answer, 12080, 0, NULL));
	CHECK(answer == exported("cuMemAlloc_v2"));
	OK(cuGetProcAddress("cuMemcpyHtoD", &answer, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
	CHECK(answer == exported("cuMemcpyHtoD_v2_ptds"));
	OK(cuGetProcAddress("cuMemAlloc", &answer, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
	CHECK(answer == exported("cuMemAlloc_v2"));
	OK(cuGetProcAddress("cuGetProcAddress", &answer, 12000, 0, NULL));
	CHECK(answer == exported("cuGetProcAddress_v2"));
	OK(cuGetProcAddress("cuGetProcAddress", (void **)&first, 11030, 0, NULL));
	CHECK((void *)first == exported("cuGetProcAddress"));
	OK(first("cuInit", &answer, 2000, 0));
	CHECK(answer == exported("cuInit"));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress(NULL, &answer, 13000, 0, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", NULL, 13000, 0, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &answer, 13000, 8, NULL));
	CUuuid id = {"no such table"};
	const void *table = NULL;
	STATUS(CUDA_ERROR_NOT_FOUND, cuGetExportTable(&table, &id));
}

static void counters(void)
{
	CUdeviceptr a = 0, none = 0;

	enter(0);
	softgpu_reset_calls();
	CHECK(softgpu_calls_total() == 0);
	OK(cuMemAlloc(&a, 64));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&none, 0));
	CHECK(softgpu_calls("cuMemAlloc_v2") == 2 && softgpu_calls("cuMemAlloc") == 0 &&
	      softgpu_calls("cuNothing") == UINT64_MAX);
	CUresult (*per_thread)(CUdeviceptr, unsigned char, size_t) = NULL;
	OK(cuGetProcAddress("cuMemsetD8", (void **)&per_thread, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
	                    NULL));
	OK(per_thread(a, 1, 64));
	CHECK(softgpu_calls("cuMemsetD8_v2_ptds") == 1 && softgpu_calls("cuMemsetD8_v2") == 0);
	softgpu_trace(true);
	OK(cuMemFree(a));
	OK(cuCtxSynchronize());
	softgpu_trace(false);
	CHECK(strcmp(softgpu_traced(0), "cuMemFree_v2") == 0 && strcmp(softgpu_traced(1), "cuCtxSynchronize") == 0 &&
	      softgpu_traced(2) == NULL);
	leave(0);
}

static void injected_faults(void)
{
	CUdeviceptr a = 0;

	enter(0);
	CHECK(softgpu_fail("cuMemAlloc_v2", 2, CUDA_ERROR_OUT_OF_MEMORY));
	CHECK(!softgpu_fail("cuNothing", 1, CUDA_ERROR_OUT_OF_MEMORY) && !softgpu_fail("cuInit", 0, 1));
	OK(cuMemAlloc(&a, 64));
	STATUS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&a, 64));
	OK(cuMemAlloc(&a, 64));
	CHECK(softgpu_fail("cuMemAlloc_v2", 1, CUDA_ERROR_OUT_OF_MEMORY));
	softgpu_fail_none();
	OK(cuMemAlloc(&a, 64));
	leave(0);
}

/*
 * Every function there is, with nothing but zeros, before and after a context is current: an answer from each, and a
 * driver that still works.
 */
static void all_zero(void)
{
	typedef unsigned (*any_function)(long, long, long, long, long, long, long, long, long, long, long, long);
	char line[512], symbol[128];
	CUcontext context = NULL;
	CUdeviceptr memory;
	int rows = 0;

	setenv("SOFTGPU_QUIET", "1", 1);
	for (int round = 0; round < 2; round++) {
		FILE *table = fopen(getenv("SOFTGPU_SYMBOLS"), "r");
		CHECK(table != NULL);
		while (table != NULL && fgets(line, sizeof(line), table) != NULL) {
			any_function function = NULL;
			/* A capture of the thread's own stream would begin, and all that follows would be refused. */
			if (sscanf(line, "%127s", symbol) != 1 || strncmp(symbol, "cuStreamBeginCapture", 20) == 0 ||
			    (*(void **)&function = exported(symbol)) == NULL)
				continue;
			/* Some of them release the context. */
			if (round == 1) {
				OK(cuDevicePrimaryCtxRetain(&context, 0));
				OK(cuCtxSetCurrent(context));
			}
			unsigned status = function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
			rows++;
			if (status > 999)
				fprintf(stderr, "%s: status %u\n", symbol, status);
			CHECK(status <= 999);
		}
		if (table != NULL)
			fclose(table);
		OK(cuInit(0));
	}
	CHECK(rows > 1200);
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc(&memory, 64));
	OK(cuMemsetD8(memory, 1, 64));
	OK(cuCtxSynchronize());
	unsetenv("SOFTGPU_QUIET");
	leave(0);
}

/* What a call without an implementation writes to stderr, run as a child of its own. */
static size_t stderr_of(void (*run)(void), char *text, size_t room)
{
	int pipes[2];
	size_t have = 0;

	if (pipe(pipes) != 0)
		return 0;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		dup2(pipes[1], STDERR_FILENO);
		run();
		_exit(0);
	}
	close(pipes[1]);
	for (ssize_t part; have < room - 1 && (part = read(pipes[0], text + have, room - 1 - have)) > 0;)
		have += (size_t)part;
	text[have] = '\0';
	close(pipes[0]);
	waitpid(child, NULL, 0);
	return have;
}

static CUresult (*unimplemented)(void *, void *);

static void call_twice(void)
{
	for (int i = 0; i < 2; i++)
		if (unimplemented(NULL, NULL) != CUDA_ERROR_NOT_SUPPORTED)
			fprintf(stderr, "wrong status");
}

static void not_implemented(void)
{
	char text[256];

	*(void **)&unimplemented = exported("cuTexRefCreate");
	CHECK(unimplemented != NULL);
	stderr_of(call_twice, text, sizeof(text));
	CHECK(strcmp(text, "softgpu: cuTexRefCreate is not implemented\n") == 0);
	setenv("SOFTGPU_QUIET", "1", 1);
	stderr_of(call_twice, text, sizeof(text));
	CHECK(text[0] == '\0');
	unsetenv("SOFTGPU_QUIET");
}

MAIN(T(all_zero), T(whole_table), T(questions), T(not_implemented), T(counters), T(injected_faults))
