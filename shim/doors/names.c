/*
 * Which real function a hook on a runtime or library name has to call.
 *
 * RTLD_NEXT is not enough: it sees the global scope only, and Python extensions bring their libcudart in a local one;
 * there may be two versions in one process, and objects that carry a static cudart and export its names. So the answer
 * depends on the calling object, and is kept for each of them: what its own imports would have met, else what the
 * program got by dlsym, else the library that is loaded.
 */
#include "shim/doors/names.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shim/doors/doors.h"
#include "shim/doors/elf_read.h"
#include "shim/doors/hook.h"
#include "shim/doors/resolve.h"

static const char *const libraries[NAMES_LIBRARIES] = {"libcudart.so", "libcufft.so"};

static _Atomic(struct name_caller *) callers;
_Atomic(struct name_caller *) names_last[NAME_COUNT] HOOK_DATA __attribute__((aligned(64)));

/*
 * The object whose functions dlsym handed out hooks for: a call through a pointer must reach the version it was asked
 * from.
 */
static _Atomic(struct link_map *) handed[NAMES_LIBRARIES];

enum name_id name_find(const char *symbol)
{
	size_t low = 0, high = NAME_COUNT;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(symbol, names[middle].symbol);
		if (!order)
			return (enum name_id)middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NAME_COUNT;
}

const char *name_library(enum name_id id)
{
	return libraries[names[id].library];
}

/* Finds the bounds of the object that holds an address. */
struct bounds {
	uintptr_t address, start, end;
};

static int find_bounds(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct bounds *bounds = data;
	uintptr_t start = UINTPTR_MAX, end = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + segment->p_vaddr;
		if (segment->p_type != PT_LOAD)
			continue;
		start = from < start ? from : start;
		end = from + segment->p_memsz > end ? from + segment->p_memsz : end;
	}
	if (bounds->address < start || bounds->address >= end)
		return 0;
	bounds->start = start;
	bounds->end = end;
	return 1;
}

static struct name_caller *find_caller(uintptr_t address)
{
	for (struct name_caller *caller = atomic_load_explicit(&callers, memory_order_acquire); caller;
	     caller = caller->next)
		if (address - caller->start < atomic_load_explicit(&caller->bytes, memory_order_relaxed))
			return caller;
	return NULL;
}

/* Of an object that is gone, where one as large is now. */
static struct name_caller *revive(const struct bounds *bounds, const void *dynamic)
{
	for (struct name_caller *caller = atomic_load_explicit(&callers, memory_order_acquire); caller;
	     caller = caller->next) {
		if (caller->start != bounds->start || caller->extent != bounds->end - bounds->start)
			continue;
		atomic_store_explicit(&caller->dynamic, dynamic, memory_order_relaxed);
		atomic_store_explicit(&caller->bytes, caller->extent, memory_order_release);
		return caller;
	}
	return NULL;
}

static struct name_caller *add_caller(uintptr_t address)
{
	const struct link_map *object = door_object_at((const void *)address);
	struct bounds bounds = {.address = address, .start = address, .end = address + 1};
	dl_iterate_phdr(find_bounds, &bounds);
	struct name_caller *caller = revive(&bounds, object ? object->l_ld : NULL);
	if (caller)
		return caller;
	caller = aligned_alloc(_Alignof(struct name_caller), sizeof *caller);
	if (!caller)
		return NULL;
	memset(caller, 0, sizeof *caller);
	caller->start = bounds.start;
	caller->extent = bounds.end - bounds.start;
	atomic_init(&caller->bytes, caller->extent);
	atomic_init(&caller->dynamic, object ? object->l_ld : NULL);
	caller->next = atomic_load_explicit(&callers, memory_order_relaxed);
	/* Two threads may add the same object: the older one is then never looked at, and says the same. */
	while (!atomic_compare_exchange_weak_explicit(&callers, &caller->next, caller, memory_order_release,
	                                              memory_order_relaxed))
		;
	return caller;
}

/*
 * What the object's imports would meet besides this library: its own symbols and those of what it needs, then the
 * global scope.
 */
static void *in_scope_of(const struct link_map *object, const char *symbol)
{
	void *found = NULL;
	void *handle = object && *object->l_name ? dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	if (handle) {
		found = door_dlsym(handle, symbol);
		dlclose(handle);
	}
	if (!found || door_is_ours(found))
		found = door_dlsym(RTLD_NEXT, symbol);
	return found;
}

static void *in_handed(enum name_id id)
{
	const struct link_map *map = atomic_load_explicit(&handed[names[id].library], memory_order_acquire);
	if (!map)
		return NULL;
	struct elf_object object = elf_of_map(map);
	return elf_symbol(&object, names[id].symbol);
}

static void *in_loaded(enum name_id id)
{
	char path[PATH_MAX];
	const struct link_map *map = door_find_loaded(name_library(id), path, sizeof path) ? door_pin(path) : NULL;
	if (!map)
		return NULL;
	struct elf_object object = elf_of_map(map);
	return elf_symbol(&object, names[id].symbol);
}

static void *resolve(enum name_id id, const void *address)
{
	const struct link_map *object = door_object_at(address);
	const char *symbol = names[id].symbol;
	struct elf_object elf = object ? elf_of_map(object) : (struct elf_object){0};
	/* An object that does not import the name calls through a pointer that somebody asked for. */
	void *real = object && elf_import(&elf, symbol) ? NULL : in_handed(id);
	if (!real)
		real = in_scope_of(object, symbol);
	if (!real)
		real = in_handed(id);
	if (!real)
		real = in_loaded(id);
	const struct link_map *owner = real ? door_object_at(real) : NULL;
	if (owner && owner != object && *owner->l_name)
		door_pin(owner->l_name);
	return real;
}

/* Two libraries that take turns come here each time. */
static __attribute__((noinline)) void *find_real(enum name_id id, const void *address)
{
	struct name_caller *caller = find_caller((uintptr_t)address);
	void *real = caller ? atomic_load_explicit(&caller->real[id], memory_order_relaxed) : NULL;
	if (!real) {
		int saved = errno;
		real = resolve(id, address);
		if (!caller)
			caller = add_caller((uintptr_t)address);
		if (caller)
			atomic_store_explicit(&caller->real[id], real, memory_order_relaxed);
		errno = saved;
	}
	if (caller && real)
		atomic_store_explicit(&names_last[id], caller, memory_order_release);
	return real;
}

void *name_real(enum name_id id, const void *caller)
{
	void *real = name_of_last(id, caller);
	return real ? real : find_real(id, caller);
}

void *name_swap(enum name_id id, void *found, const void *caller)
{
	enum names_library library = names[id].library;
	struct link_map *owner = door_object_at(found);
	if (!owner || strncmp(door_base_name(owner->l_name), libraries[library], strlen(libraries[library])))
		return found;
	struct link_map *first = NULL;
	owner = door_pin(owner->l_name);
	if (!owner || (!atomic_compare_exchange_strong(&handed[library], &first, owner) && first != owner))
		return found;
	return name_real(id, caller) == found ? names[id].hook : found;
}

/*
 * What was kept of objects that are gone: a function of their own lies where there is nothing now, or another object.
 */
static void forget_gone(void)
{
	for (struct name_caller *caller = atomic_load_explicit(&callers, memory_order_acquire); caller;
	     caller = caller->next) {
		const void *dynamic = atomic_load_explicit(&caller->dynamic, memory_order_relaxed);
		const struct link_map *object = dynamic ? door_object_at((const void *)caller->start) : NULL;
		if (!dynamic || (object && object->l_ld == dynamic))
			continue;
		atomic_store_explicit(&caller->bytes, 0, memory_order_relaxed);
		for (size_t i = 0; i < NAME_COUNT; i++)
			atomic_store_explicit(&caller->real[i], NULL, memory_order_relaxed);
	}
}

/*
 * Behind the close, since what runs in it may still call; before the program can load anything in the place of what is
 * gone.
 */
HOOK_EXPORT int dlclose(void *handle)
{
	static _Atomic(void *) next;
	void *found = atomic_load_explicit(&next, memory_order_relaxed);
	if (!found) {
		found = door_dlsym(RTLD_NEXT, "dlclose");
		atomic_store_explicit(&next, found, memory_order_relaxed);
	}
	int (*real)(void *);
	*(void **)&real = found;
	int result = real ? real(handle) : -1;
	if (atomic_load_explicit(&callers, memory_order_relaxed))
		forget_gone();
	return result;
}
