/*
 * A library that calls the driver, built once for each way to reach it. caller_run() makes some calls of each kind and
 * returns how many of them the shim must count; -1: the way itself failed.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

OFFER int caller_run(const char *how);

/* clang-format off */
#define CALLS(X) \
	X(cuMemcpyHtoD_v2) X(cuMemcpyDtoDAsync_v2) X(cuMemsetD8_v2) X(cuMemsetD32Async_ptsz) \
	X(cuLaunchKernel) X(cuLaunchKernelEx_ptsz) X(cuStreamWriteValue32_v2) X(cuGraphLaunch)
/* clang-format on */
enum { NAMES = 8 };

#if defined(CALLER_LINKED)

#define DECLARE(name)                                                                                                  \
	int name(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,   \
	         uint64_t, uint64_t);
CALLS(DECLARE)

int caller_run(const char *how)
{
#define CALL_IT(name) name(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	CALLS(CALL_IT)
	CALLS(CALL_IT)
	/* Through an address that the linker filled in. */
	int (*volatile pointer)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
	                        uint64_t, uint64_t, uint64_t, uint64_t) = cuMemcpyHtoD_v2;
	pointer(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	return 2 * NAMES + 1;
}

#else

static int call_all(void *handle)
{
	int calls = 0;
#define FETCH(name)                                                                                                    \
	{                                                                                                              \
		void *address = dlsym(handle, #name);                                                                  \
		if (!address)                                                                                          \
			return -1;                                                                                     \
		call_zero(address);                                                                                    \
		calls++;                                                                                               \
	}
	CALLS(FETCH)
	return calls;
}

/* As a static cudart does it: everything through cuGetProcAddress_v2, never a status, flags 0 and 2, before cuInit. */
static int call_by_getproc(void *driver)
{
	static const struct {
		const char *name;
		int version;
		uint64_t flag;
	} queries[] = {{"cuMemcpyHtoD", 3020, 0},        {"cuMemcpyHtoD", 13000, 2},      {"cuMemsetD8", 13000, 0},
	               {"cuLaunchKernel", 7000, 2},      {"cuLaunchKernelEx", 11060, 0},  {"cuGraphLaunch", 10000, 0},
	               {"cuMemcpyBatchAsync", 12080, 0}, {"cuMemcpyBatchAsync", 13000, 0}};
	typedef int (*resolver_v2)(const char *, void **, int, uint64_t, int *);
	typedef int (*resolver_v1)(const char *, void **, int, uint64_t);
	resolver_v2 resolve, again;
	resolver_v1 old;
	int calls = 0;
	void *address = dlsym(driver, "cuGetProcAddress_v2");
	if (!address)
		return -1;
	*(void **)&resolve = address;
	/* The probe, then the look-up of cuGetProcAddress itself in both its forms. */
	resolve("", &address, 0, 0, NULL);
	if (resolve("cuGetProcAddress", (void **)&old, 11030, 0, NULL) ||
	    resolve("cuGetProcAddress", (void **)&again, 12000, 0, NULL))
		return -1;
	for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
		void *first = NULL, *second = NULL, *third = NULL;
		if (resolve(queries[i].name, &first, queries[i].version, queries[i].flag, NULL) ||
		    again(queries[i].name, &second, queries[i].version, queries[i].flag, NULL) ||
		    old(queries[i].name, &third, queries[i].version, queries[i].flag) || first != second ||
		    first != third)
			return -1;
		call_zero(first);
		calls++;
	}
	return calls;
}

/* As cuFFT does it: 73 look-ups by name, of old forms too. Only some are called. */
static int call_as_cufft(void *driver)
{
	int looked_up = 0, calls = 0;
#define ROW(symbol, hooked, counter, version, era)                                                                     \
	if (looked_up < 73 && version && version <= 11000) {                                                           \
		void *address = dlsym(driver, #symbol);                                                                \
		if (!address)                                                                                          \
			return -1;                                                                                     \
		looked_up++;                                                                                           \
		if (counter != NONE) {                                                                                 \
			call_zero(address);                                                                            \
			calls++;                                                                                       \
		}                                                                                                      \
	}
#include "rows.inc"
#undef ROW
	return looked_up == 73 ? calls : -1;
}

int caller_run(const char *how)
{
	if (!strcmp(how, "default"))
		return call_all(RTLD_DEFAULT);
	if (!strcmp(how, "next"))
		return call_all(RTLD_NEXT);
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
	if (!driver)
		return -1;
	if (!strcmp(how, "getproc"))
		return call_by_getproc(driver);
	if (!strcmp(how, "cufft"))
		return call_as_cufft(driver);
	return call_all(driver);
}

#endif

#ifdef CALLER_CONSTRUCTOR
OFFER int caller_constructed;
__attribute__((constructor)) static void construct(void)
{
	caller_constructed = caller_run("handle");
}
#endif
