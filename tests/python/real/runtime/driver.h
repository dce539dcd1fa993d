/*
 * What the look-alikes of this folder have in common: the driver as the real libraries find it, by dlopen and cuGetProcAddress, and
 * the kernel `fill` of tests/misuse/kernels.ptx ($MISUSE_PTX).
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

#endif
