/*
 * The table of loads: one record for each module and library that is loaded, by handle. Behind a lock, which is held for look-ups alone: a function comes
 * here once.
 */
#include "shim/kernels/images.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "shim/hash.h"
#include "shim/kernels/function.h"
#include "shim/kernels/image.h"
#include "shim/kernels/images_internal.h"
#include "shim/kernels/zstd.h"

struct record {
	const void *handle; /* CUmodule or CUlibrary */
	uint64_t load;
	struct image *image; /* a reference */
	CUcontext context;   /* of a module, NULL where that was not told */
	bool library;
	bool ending;            /* a call to unload it is on its way */
	CUlibrary of;           /* a module that the driver made of a library; else NULL */
	struct record *owner;   /* that library, where this is in its list */
	struct record *modules; /* a library's, which end with it */
	struct record *next;    /* in such a list, or in one of what is to be freed */
	UT_hash_handle hh;
};

#define SEARCH_WAITS 50000 /* of 20 us */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct record *records;
static uint64_t loads;
static _Atomic bool any;          /* since the start */
static _Atomic bool missed;       /* some function was not seen, since the last load */
static _Atomic unsigned searches; /* that may ask the driver about any library */

void images_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	atomic_store(&searches, 0);
	function_paths_reset();
	image_code_reset();
	image_where_reset();
}

void images_start(struct link_map *(*object_at)(const void *address), void *(*symbol)(void *library, const char *name))
{
	zstd_set_symbol_finder(symbol);
	image_read_environment();
	image_set_object_finder(object_at);
}

/* With the lock held. */
static struct record *record_of(const void *handle)
{
	struct record *record;
	HASH_FIND_PTR(records, &handle, record);
	return record;
}

/* With the lock held: takes it out, and a library's modules with it, and puts all into `list` for free_list(). */
static void take_out(struct record *record, struct record **list)
{
	struct record *module;
	for (struct record **link = record->owner ? &record->owner->modules : NULL; link && *link; link = &(*link)->next) {
		if (*link == record) {
			*link = record->next;
			break;
		}
	}
	/* The analyzer takes the table for one without these elements. NOLINTBEGIN(clang-analyzer-core.NullDereference) */
	while ((module = record->modules)) {
		record->modules = module->next;
		HASH_DEL(records, module);
		module->next = *list;
		*list = module;
	}
	HASH_DEL(records, record);
	/* NOLINTEND(clang-analyzer-core.NullDereference) */
	record->next = *list;
	*list = record;
}

static void free_list(struct record *list)
{
	while (list) {
		struct record *record = list;
		list = record->next;
		image_put(record->image);
		free(record);
	}
}

/* With the lock held: is there nothing to put in? A library is gone whose module this is, or another thread found the same. */
static bool needless(const struct record *record, const struct record *old)
{
	if (!record->of)
		return false;
	const struct record *library = record_of(record->of);
	return !library || library->load != record->load || (old && old->load == record->load);
}

/*
 * Takes over the record. What had the handle before is gone, and its functions with it: its end was not seen. Functions that were not seen are asked about
 * anew: it may be theirs.
 */
static void put_in(struct record *record)
{
	struct record *gone = NULL;
	pthread_mutex_lock(&lock);
	struct record *old = record_of(record->handle);
	bool stays = !needless(record, old);
	if (stays && old)
		take_out(old, &gone);
	if (stays) {
		record->load = record->load ? record->load : ++loads;
		record->owner = record->of ? record_of(record->of) : NULL;
		HASH_ADD_PTR(records, handle, record);
		stays = hash_took(record);
	}
	if (stays && record->owner) {
		record->next = record->owner->modules;
		record->owner->modules = record;
	}
	atomic_store_explicit(&any, true, memory_order_relaxed);
	/* Before the next load can find that this one has seen to it. */
	if (gone || atomic_exchange(&missed, false))
		function_forget();
	pthread_mutex_unlock(&lock);
	if (!stays) {
		record->next = gone;
		gone = record;
	}
	free_list(gone);
}

static void loaded(const void *handle, bool library, const void *image, const char *path)
{
	int saved = errno, cancel;
	/* Reading a file is a point of cancellation: the program would have a module that nobody knows. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	struct record *record = calloc(1, sizeof *record);
	if (record) {
		*record = (struct record){.handle = handle, .library = library};
		record->image = path ? image_keep_file(path) : image_keep(image);
	}
	if (record && record->image) {
		if (!library && drv.cuCtxGetCurrent)
			drv.cuCtxGetCurrent(&record->context);
		put_in(record);
	} else {
		free(record);
	}
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

void images_module_loaded(CUmodule module, const void *image)
{
	loaded(module, false, image, NULL);
}

void images_module_file_loaded(CUmodule module, const char *path)
{
	loaded(module, false, NULL, path);
}

void images_library_loaded(CUlibrary library, const void *image)
{
	loaded(library, true, image, NULL);
}

void images_library_file_loaded(CUlibrary library, const char *path)
{
	loaded(library, true, NULL, path);
}

/* Searches are short. Bounded all the same: a thread of this one's may be stopped in the middle of one. */
static void wait_for_searches(void)
{
	const struct timespec pause = {0, 20000};
	int saved = errno, cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (int i = 0; i < SEARCH_WAITS && atomic_load(&searches); i++)
		nanosleep(&pause, NULL);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
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

/* Functions are forgotten once more: one that was asked about while the call was on its way has an answer of what is gone. */
void images_ended(const void *handle, uint64_t load)
{
	struct record *gone = NULL;
	pthread_mutex_lock(&lock);
	struct record *record = record_of(handle);
	if (record && record->load == load) {
		take_out(record, &gone);
		function_forget();
	}
	pthread_mutex_unlock(&lock);
	free_list(gone);
}

void images_context_ended(CUcontext context)
{
	struct record *record, *next, *gone = NULL;
	pthread_mutex_lock(&lock);
	HASH_ITER(hh, records, record, next)
	{
		if (!record->library && record->context == context)
			take_out(record, &gone);
	}
	if (gone)
		function_forget();
	pthread_mutex_unlock(&lock);
	free_list(gone);
}

void images_missed(void)
{
	atomic_store(&missed, true);
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

void images_add_module(CUmodule module, CUlibrary library, const struct load *load)
{
	struct record *record = calloc(1, sizeof *record);
	if (!record)
		return;
	*record = (struct record){.handle = module, .of = library, .load = load->number, .image = load->image};
	image_get(load->image);
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
