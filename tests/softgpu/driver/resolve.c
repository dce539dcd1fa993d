#include "tests/softgpu/driver/resolve.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/core.h"

/* Rows sorted by exported name and by (asked name, flag, version): built once, read without a lock. */
enum { SYMBOLS_MAX = 1024 };
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct sg_symbol *by_name[SYMBOLS_MAX], *by_question[SYMBOLS_MAX];

static int compare_names(const void *a, const void *b)
{
	return strcmp((*(const struct sg_symbol *const *)a)->name, (*(const struct sg_symbol *const *)b)->name);
}

static int compare_questions(const void *a, const void *b)
{
	const struct sg_symbol *x = *(const struct sg_symbol *const *)a, *y = *(const struct sg_symbol *const *)b;
	int order = strcmp(x->gpa_name, y->gpa_name);

	if (order == 0)
		order = x->flag - y->flag;
	return order != 0 ? order : x->min_version - y->min_version;
}

static void sort(void)
{
	for (size_t i = 0; i < sg_symbol_count; i++)
		by_name[i] = by_question[i] = &sg_symbols[i];
	qsort(by_name, sg_symbol_count, sizeof(*by_name), compare_names);
	qsort(by_question, sg_symbol_count, sizeof(*by_question), compare_questions);
}

const struct sg_symbol *sg_symbol_named(const char *name)
{
	const struct sg_symbol key = {.name = name}, *wanted = &key;

	pthread_once(&once, sort);
	const struct sg_symbol **found = bsearch(&wanted, by_name, sg_symbol_count, sizeof(*by_name), compare_names);
	return found != NULL ? *found : NULL;
}

static const struct sg_symbol *answer(const char *name, int flag, int version, bool *ret_known)
{
	const struct sg_symbol *best = NULL;
	size_t low = 0, high = sg_symbol_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (strcmp(by_question[middle]->gpa_name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < sg_symbol_count && strcmp(by_question[low]->gpa_name, name) == 0; low++) {
		*ret_known = true;
		if (by_question[low]->flag == flag && by_question[low]->min_version <= version)
			best = by_question[low];
	}
	return best;
}

CUresult sg_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                CUdriverProcAddressQueryResult *symbolStatus)
{
	const cuuint64_t every_flag = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	const struct sg_symbol *found = NULL;
	bool known = false, per_thread = false;

	if (symbol == NULL || pfn == NULL || (flags & ~every_flag) != 0 || cudaVersion > SG_DRIVER_VERSION)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_once(&once, sort);
	if (cudaVersion < 0)
		cudaVersion = SG_DRIVER_VERSION;
	/*
	 * A function of a stream has a form for the thread's own, or was too young then; one without a stream has one
	 * form.
	 */
	if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0) {
		per_thread = answer(symbol, 2, SG_DRIVER_VERSION, &known) != NULL;
		found = answer(symbol, 2, cudaVersion, &known);
	}
	if (!per_thread)
		found = answer(symbol, 0, cudaVersion, &known);
	*pfn = found != NULL ? (void *)(uintptr_t)found->address : NULL;
	/* A failure is the status's alone, also for who does not ask for it. */
	if (symbolStatus != NULL)
		*symbolStatus = found != NULL ? CU_GET_PROC_ADDRESS_SUCCESS
		                : known       ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
		                              : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return CUDA_SUCCESS;
}

CUresult sg_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	void *found = NULL;

	if (pfn == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult status = sg_cuGetProcAddress_v2(symbol, &found, cudaVersion, flags, NULL);
	if (status == CUDA_SUCCESS && found == NULL)
		return CUDA_ERROR_NOT_FOUND;
	if (status == CUDA_SUCCESS)
		*pfn = found;
	return status;
}

CUresult sg_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	if (ppExportTable == NULL || pExportTableId == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_ERROR_NOT_FOUND;
}
