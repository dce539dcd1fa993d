/* From a launched function to the load that its code came from, and to its store paths. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/hash.h"
#include "shim/kernels/function.h"
#include "shim/kernels/image.h"
#include "shim/kernels/images.h"
#include "shim/kernels/images_internal.h"
#include "shim/kernels/variants.h"

#define MAX_MACHINES 16
#define STORE_KEY (3 * sizeof(uint32_t) + sizeof(char *)) /* bytes of a store in a key, without its kind */

/*
 * All answers ever given, each once: they are never freed, since graphs and other threads hold them, so a program that loads the same module again and again
 * must get the same ones.
 */
struct answer {
	struct kernel_paths paths;
	UT_hash_handle hh;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct answer *answers;

static const struct kernel_paths unseen = {.reason = PATHS_UNSEEN};

void function_paths_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	variants_reset();
}

void images_library_module(CUmodule module, CUlibrary library)
{
	struct load load;
	if (!images_find(library, &load))
		return;
	images_add_module(module, library, &load);
	image_put(load.image);
}

/*
 * Functions that were told of since anything was unloaded, by their handle: some libraries ask for one at each launch. Two that share a place take turns, at the cost
 * of a few questions.
 */
#define TOLD 1024
static _Atomic uint64_t told[TOLD];

static _Atomic uint64_t *told_of(CUfunction function, uint64_t *ret_mark)
{
	uint64_t mixed = (uintptr_t)function * 0x9e3779b97f4a7c15u;
	*ret_mark = mixed ^ function_epoch();
	return &told[mixed >> 54];
}

bool images_kernel_is_told(CUfunction function)
{
	uint64_t mark;
	return atomic_load_explicit(told_of(function, &mark), memory_order_relaxed) == mark;
}

void images_kernel_function(CUfunction function, CUkernel kernel)
{
	CUmodule module;
	CUlibrary library;
	uint64_t mark;
	_Atomic uint64_t *place = told_of(function, &mark);
	if (atomic_load_explicit(place, memory_order_relaxed) == mark)
		return;
	if (drv.cuFuncGetModule && drv.cuKernelGetLibrary && drv.cuFuncGetModule(&module, function) == CUDA_SUCCESS &&
	    drv.cuKernelGetLibrary(&library, kernel) == CUDA_SUCCESS)
		images_library_module(module, library);
	atomic_store_explicit(place, mark, memory_order_relaxed);
}

/* Is this library's kernel of that name the module's? It is loaded into the context, if it was not. */
static bool library_has(CUlibrary library, const char *name, CUmodule module)
{
	CUkernel kernel;
	CUfunction function;
	CUmodule its;
	return drv.cuLibraryGetKernel(&kernel, library, name) == CUDA_SUCCESS &&
	       drv.cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS &&
	       drv.cuFuncGetModule(&its, function) == CUDA_SUCCESS && its == module;
}

/*
 * A function of a library's kernel that the program did not get by cuKernelGetFunction(): each library is asked for a kernel of that name. Nothing is loaded
 * but where another library has one of the same name and is not in this context yet.
 */
static bool find_in_libraries(CUfunction function, CUmodule module, struct load *ret_load)
{
	size_t room = images_search_begin(NULL, 0);
	images_search_end();
	CUlibrary *libraries = room ? malloc(room * sizeof *libraries) : NULL;
	const struct function_info *info = libraries ? function_info(function) : NULL;
	bool seen = false;
	if (info) {
		size_t count = images_search_begin(libraries, room);
		for (size_t i = 0; i < count && i < room && !seen; i++) {
			seen = library_has(libraries[i], info->name, module) && images_find(libraries[i], ret_load);
			if (seen)
				images_add_module(module, libraries[i], ret_load);
		}
		images_search_end();
	}
	free(libraries);
	return seen;
}

/* What a thread does while any stream captures must be allowed: it is asked in relaxed mode. */
static bool find_unseen(CUfunction function, CUmodule module, struct load *ret_load)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	if (!drv.cuLibraryGetKernel || !drv.cuKernelGetFunction || !drv.cuThreadExchangeStreamCaptureMode ||
	    drv.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
		return false;
	bool seen = find_in_libraries(function, module, ret_load);
	drv.cuThreadExchangeStreamCaptureMode(&mode);
	return seen;
}

/* `search`: among the libraries too. */
static bool load_of(CUfunction function, bool search, struct load *ret_load)
{
	CUmodule module;
	CUlibrary library;
	if (drv.cuFuncGetModule && drv.cuFuncGetModule(&module, function) == CUDA_SUCCESS)
		return images_find(module, ret_load) || (search && find_unseen(function, module, ret_load));
	/* A CUkernel is refused there. */
	if (drv.cuKernelGetLibrary && drv.cuKernelGetLibrary(&library, (CUkernel)function) == CUDA_SUCCESS)
		return images_find(library, ret_load);
	return false;
}

uint64_t images_origin(CUfunction function)
{
	struct load load;
	if (!load_of(function, false, &load))
		return 0;
	image_put(load.image);
	return load.number;
}

/* All kinds of devices: a CUkernel runs on each. Returns how many. */
static size_t list_machines(unsigned *ret_machines)
{
	int devices = 0, major, minor;
	size_t count = 0;
	if (!drv.cuDeviceGetCount || !drv.cuDeviceGet || !drv.cuDeviceGetAttribute ||
	    drv.cuDeviceGetCount(&devices) != CUDA_SUCCESS)
		return 0;
	for (int i = 0; i < devices && count < MAX_MACHINES; i++) {
		CUdevice device;
		if (drv.cuDeviceGet(&device, i) != CUDA_SUCCESS ||
		    drv.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) !=
		            CUDA_SUCCESS ||
		    drv.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) != CUDA_SUCCESS)
			continue;
		unsigned machine = (unsigned)(10 * major + minor);
		bool known = false;
		for (size_t k = 0; k < count; k++)
			known |= ret_machines[k] == machine;
		if (!known)
			ret_machines[count++] = machine;
	}
	return count;
}

static size_t kind_bytes(const struct store_site *store)
{
	return strlen(store->kind) + 1;
}

/*
 * Everything that is compared, one after the other: structs have gaps, and equal texts need not be one (what an analysis found may have another than what
 * was read from disk). NULL: out of memory.
 */
static uint8_t *key_of(const struct kernel_paths *paths, size_t *ret_bytes)
{
	size_t stores = paths->store_count < PATHS_STORES ? paths->store_count : PATHS_STORES, kinds = 0;
	for (size_t i = 0; i < stores; i++)
		kinds += kind_bytes(&paths->stores[i]);
	uint8_t *key = malloc(3 * sizeof(uint64_t) + 3 * paths->slot_count + stores * STORE_KEY + kinds);
	uint8_t *at = key;
	if (!key)
		return NULL;
	const uint64_t head[3] = {(uint64_t)paths->reason << 32 | paths->reason_offset, paths->slot_count,
	                          paths->store_count};
	memcpy(at, head, sizeof head);
	at += sizeof head;
	for (size_t i = 0; i < paths->slot_count; i++) {
		*at++ = paths->slots[i].use;
		*at++ = paths->slots[i].only_base;
		*at++ = paths->slots[i].compared;
	}
	for (size_t i = 0; i < stores; i++) {
		memcpy(at, &paths->stores[i].offset, sizeof(uint32_t));
		memcpy(at + 4, &paths->stores[i].base, sizeof(uint32_t));
		memcpy(at + 8, &paths->stores[i].line, sizeof(uint32_t));
		memcpy(at + 12, &paths->stores[i].file, sizeof(char *));
		memcpy(at + STORE_KEY, paths->stores[i].kind, kind_bytes(&paths->stores[i]));
		at += STORE_KEY + kind_bytes(&paths->stores[i]);
	}
	*ret_bytes = (size_t)(at - key);
	return key;
}

/* Takes over what the analysis found. NULL: out of memory. */
static const struct kernel_paths *kept(struct kernel_paths *paths)
{
	size_t bytes;
	uint8_t *key = key_of(paths, &bytes);
	struct answer *fresh = key ? malloc(sizeof *fresh) : NULL, *answer = NULL;
	if (fresh) {
		*fresh = (struct answer){.paths = *paths};
		pthread_mutex_lock(&lock);
		HASH_FIND(hh, answers, key, bytes, answer);
		if (!answer) {
			HASH_ADD_KEYPTR(hh, answers, key, bytes, fresh);
			answer = hash_took(fresh) ? fresh : NULL;
		}
		pthread_mutex_unlock(&lock);
	}
	if (answer != fresh || !fresh) {
		free(key);
		free(fresh);
		kernel_paths_free(paths);
	}
	return answer ? &answer->paths : NULL;
}

/* NULL: out of memory. */
static const struct kernel_paths *read_paths(const struct load *load, const char *name)
{
	unsigned machines[MAX_MACHINES];
	size_t count = list_machines(machines);
	struct kernel_paths paths;
	return image_paths(load->image, name, machines, count, &paths) ? NULL : kept(&paths);
}

static const struct kernel_paths *find_paths(CUfunction function, const struct function_info *info, uint64_t epoch)
{
	const struct kernel_paths *paths = &unseen;
	struct load load = {0};
	bool seen = load_of(function, true, &load);
	if (!seen) {
		/* From now on a load makes all functions ask anew. One that came before, and after the search, is looked for again. */
		images_missed();
		seen = load_of(function, true, &load);
	}
	if (seen) {
		paths = read_paths(&load, info->name);
		image_put(load.image);
	}
	if (paths)
		function_set_paths(info, paths, load.number, epoch);
	return paths;
}

const struct kernel_paths *images_paths(CUfunction function)
{
	uint64_t epoch = function_epoch();
	const struct function_info *info = function_info(function);
	const struct kernel_paths *paths = info ? function_paths(info) : NULL;
	if (paths || !info)
		return paths;
	int saved = errno;
	paths = find_paths(function, info, epoch);
	errno = saved;
	return paths;
}

bool images_paths_for(const struct function_info *info, struct paths_values *values,
                      const struct kernel_paths **ret_paths, uint64_t *ret_load)
{
	unsigned machines[MAX_MACHINES];
	size_t count = list_machines(machines);
	struct kernel_paths paths = {0};
	struct load load;
	bool better = false;
	*ret_paths = NULL;
	if (!load_of(info->function, false, &load))
		return false;
	int err = image_paths_for(load.image, info->name, machines, count, values, &paths, &better);
	image_put(load.image);
	*ret_load = load.number;
	if (!err && better)
		*ret_paths = kept(&paths);
	return !err && (!better || *ret_paths);
}
