#include "shim/kernels/function.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shim/hook_state.h"
#include "shim/kernels/images.h"
#include "shim/report/site.h"

/*
 * Open addressing, grown by publishing a larger table; old tables and entries stay, because readers take no lock. Forgetting raises the
 * epoch: an entry of an older epoch is asked anew, and kept as it is when the answer is the same.
 */
struct entry {
	_Atomic(struct function_info *) info;
	_Atomic uint64_t epoch;
};
struct table {
	size_t size, used; /* size is a power of two; used changes under the lock */
	struct entry entries[];
};

#define FIRST_SIZE 1024
#define MAX_PARAMS 4096 /* no kernel has more: parameter blocks end at 32764 bytes */

static _Atomic(struct table *) current HOOK_DATA;
static _Atomic uint64_t epoch HOOK_DATA = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t place(CUfunction function, size_t size)
{
	return (((uintptr_t)function >> 4) * 0x9e3779b97f4a7c15u >> 20) & (size - 1);
}

static HOOK_HOT struct entry *probe(struct table *table, CUfunction function)
{
	for (size_t i = place(function, table->size);; i = (i + 1) & (table->size - 1)) {
		struct function_info *info = atomic_load_explicit(&table->entries[i].info, memory_order_acquire);
		if (!info || info->function == function)
			return &table->entries[i];
	}
}

static CUresult param_info(CUfunction function, size_t index, size_t *ret_offset, size_t *ret_bytes)
{
	CUresult result = CUDA_ERROR_NOT_FOUND;
	if (drv.cuFuncGetParamInfo)
		result = drv.cuFuncGetParamInfo(function, index, ret_offset, ret_bytes);
	/* A CUkernel passed as CUfunction (cudart, cuda.core) is refused there with CUDA_ERROR_INVALID_HANDLE. */
	if (result == CUDA_ERROR_INVALID_HANDLE && drv.cuKernelGetParamInfo)
		result = drv.cuKernelGetParamInfo((CUkernel)function, index, ret_offset, ret_bytes);
	return result;
}

static const char *function_name(CUfunction function)
{
	const char *name = NULL;
	if (drv.cuFuncGetName && drv.cuFuncGetName(&name, function) == CUDA_SUCCESS && name)
		return site_intern(name);
	if (drv.cuKernelGetName && drv.cuKernelGetName(&name, (CUkernel)function) == CUDA_SUCCESS && name)
		return site_intern(name);
	return "?";
}

static struct function_info *ask(CUfunction function)
{
	struct function_param params[MAX_PARAMS];
	size_t count = 0, offset, bytes, end = 0;
	CUresult result = CUDA_SUCCESS;
	while (count < MAX_PARAMS && (result = param_info(function, count, &offset, &bytes)) == CUDA_SUCCESS) {
		params[count++] = (struct function_param){(uint32_t)offset, (uint32_t)bytes};
		end = offset + bytes > end ? offset + bytes : end;
	}
	struct function_info *info = malloc(sizeof *info + count * sizeof *params);
	if (!info)
		return NULL;
	info->function = function;
	info->name = function_name(function);
	/* The list ends with CUDA_ERROR_INVALID_VALUE, also for a kernel without parameters. */
	info->readable = result == CUDA_ERROR_INVALID_VALUE;
	info->param_count = count;
	info->params_bytes = end;
	atomic_init(&info->paths, NULL);
	info->load = 0;
	atomic_init(&info->variants, NULL);
	memcpy(info->params, params, count * sizeof *params);
	return info;
}

static bool same(const struct function_info *a, const struct function_info *b)
{
	return a->name == b->name && a->readable == b->readable && a->param_count == b->param_count &&
	       !memcmp(a->params, b->params, a->param_count * sizeof *a->params);
}

static struct table *grown(struct table *old)
{
	size_t size = old ? 2 * old->size : FIRST_SIZE;
	struct table *table = calloc(1, sizeof *table + size * sizeof table->entries[0]);
	if (!table)
		return NULL;
	table->size = size;
	for (size_t i = 0; old && i < old->size; i++) {
		struct function_info *info = atomic_load_explicit(&old->entries[i].info, memory_order_relaxed);
		if (!info)
			continue;
		struct entry *entry = probe(table, info->function);
		atomic_store_explicit(&entry->info, info, memory_order_relaxed);
		atomic_store_explicit(&entry->epoch, atomic_load_explicit(&old->entries[i].epoch, memory_order_relaxed),
		                      memory_order_relaxed);
		table->used++;
	}
	atomic_store_explicit(&current, table, memory_order_release);
	return table;
}

/* With the lock held: they are of code that is gone. */
static void drop_variants(struct function_info *info)
{
	struct function_variants *variants = atomic_load_explicit(&info->variants, memory_order_acquire);
	for (size_t i = 0; variants && i < FUNCTION_VARIANTS; i++)
		atomic_store_explicit(&variants->of[i], NULL, memory_order_relaxed);
	if (variants)
		atomic_store_explicit(&variants->asked, 0, memory_order_relaxed);
}

/* Publishes what the driver said; the caller asked it with no lock held. `load`: of the function's code, 0 where no paths were known. */
static const struct function_info *publish(struct function_info *info, uint64_t now, uint64_t load)
{
	pthread_mutex_lock(&lock);
	struct table *table = atomic_load_explicit(&current, memory_order_relaxed);
	if (!table || 2 * (table->used + 1) > table->size) {
		struct table *larger = grown(table);
		table = larger ? larger : table;
	}
	const struct function_info *kept = info;
	if (table && table->used + 1 < table->size) {
		struct entry *entry = probe(table, info->function);
		struct function_info *old = atomic_load_explicit(&entry->info, memory_order_relaxed);
		if (old && same(old, info)) {
			free(info);
			/* The same name and parameters, but another image: an edited kernel that was loaded again. What was not seen is looked for again. */
			if (old->load != load || !load) {
				atomic_store_explicit(&old->paths, NULL, memory_order_release);
				old->load = 0;
				drop_variants(old);
			}
			kept = old;
		} else {
			table->used += !old;
			atomic_store_explicit(&entry->info, info, memory_order_release);
		}
		atomic_store_explicit(&entry->epoch, now, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return kept;
}

/* `paths`: of what had this handle before they were known. */
static HOOK_COLD const struct function_info *learn(CUfunction function, uint64_t now, bool paths)
{
	struct function_info *info = ask(function);
	return info ? publish(info, now, paths ? images_origin(function) : 0) : NULL;
}

HOOK_HOT const struct function_info *function_info(CUfunction function)
{
	uint64_t now = atomic_load_explicit(&epoch, memory_order_acquire);
	struct table *table = atomic_load_explicit(&current, memory_order_acquire);
	bool paths = false;
	if (table) {
		struct entry *entry = probe(table, function);
		const struct function_info *info = atomic_load_explicit(&entry->info, memory_order_acquire);
		if (info && atomic_load_explicit(&entry->epoch, memory_order_acquire) == now)
			return info;
		paths = info && function_paths(info);
	}
	return learn(function, now, paths);
}

uint64_t function_epoch(void)
{
	return atomic_load_explicit(&epoch, memory_order_acquire);
}

/* With the lock held: the entry, if it is the function's, and nothing was unloaded since then. */
static struct function_info *current_info(const struct function_info *info, uint64_t then)
{
	struct table *table = atomic_load_explicit(&current, memory_order_relaxed);
	struct entry *entry = table ? probe(table, info->function) : NULL;
	struct function_info *kept = entry ? atomic_load_explicit(&entry->info, memory_order_relaxed) : NULL;
	bool same = kept && kept == info && function_epoch() == then &&
	            atomic_load_explicit(&entry->epoch, memory_order_relaxed) == then;
	return same ? kept : NULL;
}

void function_set_paths(const struct function_info *info, const struct kernel_paths *paths, uint64_t load, uint64_t then)
{
	pthread_mutex_lock(&lock);
	struct function_info *kept = current_info(info, then);
	if (kept) {
		kept->load = load;
		atomic_store_explicit(&kept->paths, paths, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
}

struct function_variants *function_variants(const struct function_info *info)
{
	struct function_variants *variants = atomic_load_explicit(&info->variants, memory_order_acquire), *none = NULL;
	struct function_info *place = (struct function_info *)(uintptr_t)info;
	if (variants)
		return variants;
	variants = calloc(1, sizeof *variants);
	if (variants && !atomic_compare_exchange_strong(&place->variants, &none, variants)) {
		free(variants);
		variants = none;
	}
	return variants;
}

bool function_add_variant(const struct function_info *info, const struct variant *variant, uint64_t load, uint64_t then)
{
	bool there = false;
	pthread_mutex_lock(&lock);
	struct function_info *kept = current_info(info, then);
	struct function_variants *variants = kept ? atomic_load_explicit(&kept->variants, memory_order_acquire) : NULL;
	for (size_t i = 0; variants && kept->load == load && i < FUNCTION_VARIANTS; i++) {
		const struct variant *old = atomic_load_explicit(&variants->of[i], memory_order_relaxed);
		if (!old)
			atomic_store_explicit(&variants->of[i], variant, memory_order_release);
		there = old == variant;
		if (!old || there)
			break;
	}
	pthread_mutex_unlock(&lock);
	return !there;
}

void function_forget(void)
{
	atomic_fetch_add_explicit(&epoch, 1, memory_order_acq_rel);
	hook_stamp_renew();
}
