/*
 * What the look-alikes of this folder have in common: the driver as the real libraries find it, by dlopen and
 * cuGetProcAddress, and the kernel `fill` of tests/misuse/kernels.ptx ($MISUSE_PTX).
 */
#ifndef RUNTIME_DRIVER_H
#define RUNTIME_DRIVER_H

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define OFFER __attribute__((visibility("default")))

/* Aborts when there is none: the test is then without ground. */
static void *driver_function(const char *name, int version)
{
	CUresult (*ask)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *function = NULL;
	if (!library)
		abort();
	*(void **)&ask = dlsym(library, "cuGetProcAddress_v2");
	if (!ask || ask(name, &function, version, 0, NULL) || !function)
		abort();
	return function;
}

__attribute__((unused)) static CUfunction kernel(void)
{
	CUresult (*load)(CUmodule *, const void *), (*get)(CUfunction *, CUmodule, const char *);
	static char text[1 << 16];
	CUmodule module;
	CUfunction function;
	FILE *file = fopen(getenv("MISUSE_PTX"), "r");
	if (!file || !fread(text, 1, sizeof text - 1, file))
		abort();
	fclose(file);
	*(void **)&load = driver_function("cuModuleLoadData", 2000);
	*(void **)&get = driver_function("cuModuleGetFunction", 2000);
	if (load(&module, text) || get(&function, module, "fill"))
		abort();
	return function;
}

__attribute__((unused)) static CUresult fill(void *out, int value, int count)
{
	CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
	                   void **, void **);
	void *arguments[] = {&out, &value, &count};
	*(void **)&launch = driver_function("cuLaunchKernel", 4000);
	return launch(kernel(), 1, 1, 1, (unsigned)count, 1, 1, 0, NULL, arguments, NULL);
}

#endif
