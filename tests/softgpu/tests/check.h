/*
 * A test program is a list of functions. Each CHECK that fails says where and what was wrong and counts; the program's
 * status says whether any did. Plain programs, so that they run under ThreadSanitizer too.
 */
#ifndef SOFTGPU_CHECK_H
#define SOFTGPU_CHECK_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/softgpu.h"

static _Atomic unsigned checks, failures;

static inline void check_true(bool good, const char *file, int line, const char *what)
{
	checks++;
	if (!good) {
		failures++;
		fprintf(stderr, "%s:%d: %s\n", file, line, what);
	}
}

static inline void check_status(CUresult got, CUresult wanted, const char *file, int line, const char *call)
{
	const char *name = "?", *wanted_name = "?";

	checks++;
	if (got == wanted)
		return;
	failures++;
	cuGetErrorName(got, &name);
	cuGetErrorName(wanted, &wanted_name);
	fprintf(stderr, "%s:%d: %s: %s (%d) instead of %s (%d)\n", file, line, call, name, (int)got, wanted_name,
	        (int)wanted);
}

#define CHECK(condition) check_true((condition), __FILE__, __LINE__, #condition)
#define STATUS(wanted, call) check_status((call), (wanted), __FILE__, __LINE__, #call)
#define OK(call) STATUS(CUDA_SUCCESS, call)

/* A context to work in, which goes away with everything in it at leave(). */
static inline CUcontext enter(int device)
{
	CUcontext context = NULL;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, device));
	OK(cuCtxSetCurrent(context));
	return context;
}

/* After a fault, with SOFTGPU_FAULT=context: a context with the same handle, and nothing in it. */
static inline void renew(int device)
{
	OK(cuDevicePrimaryCtxReset(device));
	OK(cuDevicePrimaryCtxRelease(device));
	enter(device);
}

static inline void leave(int device)
{
	cuCtxSetCurrent(NULL);
	cuDevicePrimaryCtxReset(device);
	cuDevicePrimaryCtxRelease(device);
}

struct test {
	const char *name;
	void (*run)(void);
};

/* Runs all, or those named on the command line. */
static inline int run_tests(const struct test *tests, size_t count, int argc, char **argv)
{
	setenv("SOFTGPU_FAULT", "context", 0); /* all in one process, which goes on after the tests of faults */
	for (size_t i = 0; i < count; i++) {
		bool wanted = argc < 2;
		for (int a = 1; a < argc; a++)
			wanted |= strcmp(argv[a], tests[i].name) == 0;
		unsigned before = failures;
		if (!wanted)
			continue;
		tests[i].run();
		printf("%s %s\n", failures == before ? "ok    " : "FAILED", tests[i].name);
		fflush(stdout);
	}
	printf("%u checks, %u failed\n", checks, failures);
	return failures != 0 || checks == 0;
}

#define MAIN(...)                                                                                                      \
	int main(int argc, char **argv)                                                                                \
	{                                                                                                              \
		static const struct test tests[] = {__VA_ARGS__};                                                      \
		return run_tests(tests, sizeof(tests) / sizeof(*tests), argc, argv);                                   \
	}
#define T(function)                                                                                                    \
	{                                                                                                              \
#function, function                                                                                    \
	}

#endif
