/*
 * The table of loads: one record for each module and library that is loaded, by handle. Behind a lock, which is held for look-ups alone: a function comes
 * here once.
 */
#include "shim/kernels/images.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "shim/hash.h"
#include "shim/kernels/image.h"
#include "shim/kernels/images_internal.h"

struct record {
	const void *handle; /* CUmodule or CUlibrary */
	uint64_t load;
	struct image *image; /* a reference */
	CUcontext context;   /* of a module, NULL where that was not told */
	bool library;
	bool ending; /* a call to unload it is on its way */
	UT_hash_handle hh;
};

#define SEARCH_WAITS 50000 /* of 20 us */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct record *records;
static uint64_t loads;
static _Atomic bool any;          /* since the start */
static _Atomic unsigned searches; /* that may ask the driver about any library */

void images_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	atomic_store(&searches, 0);
	function_paths_reset();
}

void images_set_loader(const struct images_loader *loader)
{
	image_set_object_finder(loader->object_at);
	zstd_set_symbol_finder(loader->symbol);
}

/* With the lock held. */
static struct record *record_of(const void *handle)
{
	struct record *record;
	HASH_FIND_PTR(records, &handle, record);
	return record;
}

/* With the lock held: takes it out, the caller frees it. */
static void take_out(struct record *record)
{
	HASH_DEL(records, record);
}

static void free_record(struct record *record)
{
	if (!record)
		return;
	image_put(record->image);
	free(record);
}

static void free_all(struct record **list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free_record(list[i]);
}

/* Takes over the record. What had the handle before is gone: its end was not seen. */
static void put_in(struct record *record)
{
	pthread_mutex_lock(&lock);
	struct record *old = record_of(record->handle);
	if (old)
		take_out(old);
	if (!record->load)
		record->load = ++loads;
	HASH_ADD_PTR(records, handle, record);
	bool took = hash_took(record);
	atomic_store_explicit(&any, true, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	free_record(old);
	if (!took)
		free_record(record);
}

static void loaded(const void *handle, struct image *image, bool library)
{
	struct record *record = image ? calloc(1, sizeof *record) : NULL;
	if (!record) {
		if (image)
			image_put(image);
		return;
	}
	*record = (struct record){.handle = handle, .image = image, .library = library};
	if (!library && drv.cuCtxGetCurrent)
		drv.cuCtxGetCurrent(&record->context);
	put_in(record);
}

void images_module_loaded(CUmodule module, const void *image)
{
	loaded(module, image_keep(image), false);
}

void images_module_file_loaded(CUmodule module, const char *path)
{
	loaded(module, image_keep_file(path), false);
}

void images_library_loaded(CUlibrary library, const void *image)
{
	loaded(library, image_keep(image), true);
}

void images_library_file_loaded(CUlibrary library, const char *path)
{
	loaded(library, image_keep_file(path), true);
}

/* Searches are short. Bounded all the same: a thread of this one's may be stopped in the middle of one. */
static void wait_for_searches(void)
{
	const struct timespec pause = {0, 20000};
	for (int i = 0; i < SEARCH_WAITS && atomic_load(&searches); i++)
		nanosleep(&pause, NULL);
}

uint64_t images_ending(const void *handle)
{
	pthread_mutex_lock(&lock);
	struct record *record = record_of(handle);
	uint64_t load = record ? record->load : 0;
	bool library = record && record->library;
	if (record)
		record->ending = true;
	pthread_mutex_unlock(&lock);
	if (library)
		wait_for_searches();
	return load;
}

void images_stay(const void *handle, uint64_t load)
{
	pthread_mutex_lock(&lock);
	struct record *record = record_of(handle);
	if (record && record->load == load)
		record->ending = false;
	pthread_mutex_unlock(&lock);
}

#define BATCH 64

/* Takes out all records that fit, a batch at a time, so that none is freed with the lock held. */
static void remove_all(bool (*fits)(const struct record *, const void *), const void *what)
{
	struct record *batch[BATCH];
	size_t count;
	do {
		struct record *record, *next;
		count = 0;
		pthread_mutex_lock(&lock);
		HASH_ITER(hh, records, record, next)
		{
			if (count < BATCH && fits(record, what)) {
				take_out(record);
				batch[count++] = record;
			}
		}
		pthread_mutex_unlock(&lock);
		free_all(batch, count);
	} while (count == BATCH);
}

/* A library's modules share its number. */
static bool of_load(const struct record *record, const void *load)
{
	return record->load == *(const uint64_t *)load;
}

static bool of_context(const struct record *record, const void *context)
{
	return !record->library && record->context == context;
}

void images_ended(uint64_t load)
{
	if (load)
		remove_all(of_load, &load);
}

void images_context_ended(CUcontext context)
{
	remove_all(of_context, context);
}

bool images_any(void)
{
	return atomic_load_explicit(&any, memory_order_relaxed);
}

bool images_find(const void *handle, struct load *ret_load)
{
	pthread_mutex_lock(&lock);
	const struct record *record = record_of(handle);
	if (record) {
		image_get(record->image);
		*ret_load = (struct load){record->load, record->image};
	}
	pthread_mutex_unlock(&lock);
	return record;
}

void images_add_module(CUmodule module, const struct load *library)
{
	struct record *record = calloc(1, sizeof *record);
	if (!record)
		return;
	*record = (struct record){.handle = module, .load = library->number, .image = library->image};
	image_get(library->image);
	if (drv.cuCtxGetCurrent)
		drv.cuCtxGetCurrent(&record->context);
	put_in(record);
}

size_t images_search_begin(CUlibrary *libraries, size_t room)
{
	const struct record *record, *next;
	size_t count = 0;
	pthread_mutex_lock(&lock);
	atomic_fetch_add(&searches, 1);
	HASH_ITER(hh, records, record, next)
	{
		if (!record->library || record->ending)
			continue;
		if (count < room)
			libraries[count] = (CUlibrary)(uintptr_t)record->handle;
		count++;
	}
	pthread_mutex_unlock(&lock);
	return count;
}

void images_search_end(void)
{
	atomic_fetch_sub(&searches, 1);
}
