/* Plain assertions for programs that run under the preload: no framework between them and the loader. */
#ifndef CUCONST_TESTS_DOORS_CHECK_H
#define CUCONST_TESTS_DOORS_CHECK_H

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "shim/cuconst.h"

/* The project hides all symbols; what a test library offers is said one by one. */
#define OFFER __attribute__((visibility("default")))

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                        \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

#define CHECK_EQUAL(a, b)                                                                                              \
	do {                                                                                                           \
		unsigned long long a_ = (unsigned long long)(a), b_ = (unsigned long long)(b);                         \
		if (a_ != b_) {                                                                                        \
			fprintf(stderr, "%s:%d: %s is %llu, %s is %llu\n", __FILE__, __LINE__, #a, a_, #b, b_);        \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* File name of the object that holds an address; "" for none. */
static inline const char *object_of(const void *address)
{
	Dl_info info;
	if (!address || !dladdr(address, &info) || !info.dli_fname)
		return "";
	const char *slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}

static inline bool is_hook(const void *address)
{
	return !strcmp(object_of(address), "libcuconst.so");
}

static inline bool is_driver(const void *address)
{
	return !strncmp(object_of(address), "libcuda.so", 10);
}

static inline void *open_driver(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);
	CHECK(handle);
	return handle;
}

static inline const struct fake *fake_of(void *handle)
{
	const struct fake *fake = dlsym(handle, "fake_driver");
	CHECK(fake);
	return fake;
}

static inline struct cuconst_stats shim_stats(void)
{
	struct cuconst_stats stats = {.size = sizeof stats};
	CHECK_EQUAL(cuconst_stats(&stats), CUCONST_OK);
	return stats;
}

/* The oracle: what the driver counted is what the shim counted. Returns the sum. */
static inline uint64_t check_counts(const struct fake *fake)
{
	struct cuconst_stats stats = shim_stats();
	CHECK_EQUAL(stats.calls, fake->counted(CALL));
	CHECK_EQUAL(stats.launches, fake->counted(LAUNCH));
	CHECK_EQUAL(stats.graph_launches, fake->counted(GRAPH_LAUNCH));
	return stats.calls + stats.launches + stats.graph_launches;
}

typedef int (*any_function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                            uint64_t, uint64_t, uint64_t);

/* Calls a driver function with zeros for all it can have. */
static inline int call_zero(void *address)
{
	any_function function;
	*(void **)&function = address;
	return function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

#endif
