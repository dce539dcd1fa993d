#include "fake.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#ifndef FAKE_VERSION
#define FAKE_VERSION 13000
#endif

#if FAKE_VERSION >= 13000
#define EXPORT_V13 EXPORT
#else
#define EXPORT_V13 __attribute__((visibility("hidden")))
#endif
#define EXPORT_V11 EXPORT

#define ROW(symbol, hooked, counter, version, era) INDEX_##symbol,
enum {
#include "rows.inc"
	SYMBOLS
};
#undef ROW
static _Atomic uint64_t calls[SYMBOLS];
static void *_Atomic returns[SYMBOLS];

/* All but the resolvers: any arguments, the answer is CUDA_SUCCESS. */
#define ROW(symbol, hooked, counter, version, era)                                                                     \
	EXPORT_##era int symbol(void);                                                                                 \
	int symbol(void)                                                                                               \
	{                                                                                                              \
		atomic_fetch_add(&calls[INDEX_##symbol], 1);                                                           \
		returns[INDEX_##symbol] = __builtin_return_address(0);                                                 \
		return 0;                                                                                              \
	}
#define cuGetProcAddress generic_cuGetProcAddress
#define cuGetProcAddress_v2 generic_cuGetProcAddress_v2
#define INDEX_generic_cuGetProcAddress INDEX_cuGetProcAddress
#define INDEX_generic_cuGetProcAddress_v2 INDEX_cuGetProcAddress_v2
#include "rows.inc"
#undef cuGetProcAddress
#undef cuGetProcAddress_v2
#undef ROW

int cuGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags, int *status);

static const struct {
	const char *symbol;
	enum fake_counter counter;
	void *address;
} rows[] = {
#define ROW(symbol, hooked, counter, version, era) {#symbol, counter, (void *)symbol},
#include "rows.inc"
#undef ROW
};

static const struct {
	const char *name;
	int version, flag;
	void *address;
} answers[] = {
#define ANSWER(symbol, name, version, flag) {#name, version, flag, (void *)symbol},
#include "rows.inc"
#undef ANSWER
};

/* 1: CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 2: its VERSION_NOT_SUFFICIENT */
static int answer(const char *name, void **pfn, int version, uint64_t flags, int *ret_status)
{
	int best = -1;
	bool known = false;
	for (int wanted = flags == 2 ? 2 : 0; best < 0 && wanted >= 0; wanted -= 2)
		for (int i = 0; i < (int)(sizeof answers / sizeof *answers); i++) {
			if (answers[i].flag != wanted || strcmp(answers[i].name, name))
				continue;
			known = true;
			if (answers[i].version <= version && answers[i].version <= FAKE_VERSION &&
			    (best < 0 || answers[i].version > answers[best].version))
				best = i;
		}
	if (pfn)
		*pfn = best < 0 ? NULL : answers[best].address;
	*ret_status = best >= 0 ? 0 : known ? 2 : 1;
	return 0;
}

EXPORT int cuGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags)
{
	int status;
	atomic_fetch_add(&calls[INDEX_cuGetProcAddress], 1);
	if (!symbol || !pfn)
		return 1; /* CUDA_ERROR_INVALID_VALUE */
	answer(symbol, pfn, version, flags, &status);
	return status ? 500 : 0; /* CUDA_ERROR_NOT_FOUND */
}

EXPORT_V13 int cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags, int *status)
{
	int found;
	atomic_fetch_add(&calls[INDEX_cuGetProcAddress_v2], 1);
	if (!symbol)
		return 1;
	answer(symbol, pfn, version, flags, &found);
	if (status)
		*status = found;
	/* As the real one: without a status to fill in, a missing symbol is an error. */
	return status || !found ? 0 : 500;
}

static uint64_t fake_counted(enum fake_counter counter)
{
	uint64_t sum = 0;
	for (int i = 0; i < SYMBOLS; i++)
		sum += rows[i].counter == counter ? atomic_load(&calls[i]) : 0;
	return sum;
}

static int find(const char *symbol)
{
	for (int i = 0; i < SYMBOLS; i++)
		if (!strcmp(rows[i].symbol, symbol))
			return i;
	abort();
}

static uint64_t fake_calls(const char *symbol)
{
	return atomic_load(&calls[find(symbol)]);
}

static void *fake_returns_to(const char *symbol)
{
	return returns[find(symbol)];
}

static void *fake_address(const char *symbol)
{
	return rows[find(symbol)].address;
}

static int inner;
static int fake_inner(void)
{
	return inner;
}

EXPORT const struct fake fake_driver = {fake_counted, fake_calls, fake_address, fake_inner, fake_returns_to};

/* WSL's libcuda looks its own functions up while it is being loaded; it must get them. */
__attribute__((constructor)) static void look_up_own(void)
{
	const char *wanted = getenv("FAKE_INNER");
	Dl_info info;
	if (!wanted || !dladdr((void *)fake_counted, &info))
		return;
	void *self = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	inner = self && dlsym(self, "cuMemFree_v2") == (void *)cuMemFree_v2 &&
	                        dlsym(self, "cuGetProcAddress") == (void *)cuGetProcAddress
	                ? 1
	                : 2;
}
