/*
 * Finding the driver. Nothing happens before a program calls a hook or asks for the address of a driver function.
 *
 * No lock and no pthread_once: a dlopen may run constructors that come back here, on this thread or through another
 * one. Instead every thread that comes before `ready` does all the work itself; all of them store the same values, so
 * nobody waits.
 */
#include "shim/doors/resolve.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "shim/doors/doors.h"
#include "shim/doors/elf_read.h"
#include "shim/doors/hook.h"
#include "shim/report/report.h"
#include "shim/verdict/lifecycle.h"

struct driver drv HOOK_DATA;
void *door_real_dlsym, *door_real_dlvsym;

static _Atomic(struct link_map *) hooked_driver;
static _Atomic bool ready;
static __thread bool opening __attribute__((tls_model("initial-exec")));

/*
 * Real address -> hook. Open addressing; filled before `ready`, by several threads perhaps, and only read afterwards.
 */
#define SWAP_SLOTS 1024u
static struct swap_slot {
	_Atomic(void *) real, hook;
} swap_slots[SWAP_SLOTS];
_Static_assert(SWAP_SLOTS >= 2 * (ENTRY_COUNT + 2), "the table of hooks must stay half empty");

static const struct {
	const char *name;
	void **pointer;
} pointers[] = {
#define POINTER(name) {#name, (void **)&drv.name},
	DRIVER_POINTERS(POINTER)
#undef POINTER
};

static unsigned swap_start(const void *real)
{
	return (unsigned)((uintptr_t)real >> 4) * 2654435761u >> 22;
}
_Static_assert(SWAP_SLOTS == 1u << (32 - 22), "swap_start() yields the top 10 bits");

static void swap_insert(void *real, void *hook)
{
	for (unsigned slot = swap_start(real);; slot = (slot + 1) % SWAP_SLOTS) {
		void *there = NULL;
		if (atomic_compare_exchange_strong(&swap_slots[slot].real, &there, real) || there == real) {
			atomic_store_explicit(&swap_slots[slot].hook, hook, memory_order_release);
			return;
		}
	}
}

void *door_swap(const void *real)
{
	if (!real || !atomic_load_explicit(&ready, memory_order_acquire))
		return NULL;
	for (unsigned slot = swap_start(real);; slot = (slot + 1) % SWAP_SLOTS) {
		void *there = atomic_load_explicit(&swap_slots[slot].real, memory_order_relaxed);
		if (!there)
			return NULL;
		if (there == real)
			return atomic_load_explicit(&swap_slots[slot].hook, memory_order_relaxed);
	}
}

const char *door_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static bool names_driver(const char *path, const struct elf_object *object)
{
	return starts_with(door_base_name(path), "libcuda.so") || starts_with(elf_soname(object), "libcuda.so");
}

/* struct dl_find_object of glibc 2.35, which older headers do not have. */
struct found_object {
	unsigned long long flags;
	void *start, *end;
	struct link_map *map;
	void *eh_frame;
	unsigned long long reserved[7];
};
typedef int (*find_object_function)(void *, struct found_object *);

/*
 * _dl_find_object takes some ns and no lock; dladdr1, where there is none, reads the object's whole symbol table: 5 us
 * for a driver.
 */
static find_object_function find_object(void)
{
	static _Atomic(uintptr_t) known; /* 1: there is none */
	uintptr_t function = atomic_load_explicit(&known, memory_order_relaxed);
	if (!function) {
		function = (uintptr_t)door_find_symbol("_dl_find_object");
		atomic_store_explicit(&known, function ? function : 1, memory_order_relaxed);
	}
	return function > 1 ? (find_object_function)function : NULL;
}

struct link_map *door_object_at(const void *address)
{
	find_object_function find = find_object();
	struct found_object object;
	struct link_map *map;
	Dl_info info;
	if (find)
		return find((void *)(uintptr_t)address, &object) ? NULL : object.map;
	return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

bool door_is_driver(const struct link_map *map)
{
	struct elf_object object = elf_of_map(map);
	return names_driver(map->l_name, &object);
}

bool door_in_driver(const void *address)
{
	static const char *const helpers[] = {"libnvidia-", "libcudadebugger.so", "libcuda_loader", "libnvcuda"};
	const struct link_map *map = door_object_at(address);
	if (!map)
		return false;
	for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
		if (starts_with(door_base_name(map->l_name), helpers[i]))
			return true;
	return door_is_driver(map);
}

bool door_is_ours(const void *address)
{
	return (const char *)address >= __ehdr_start && (const char *)address < _end;
}

/*
 * One walk over the loaded objects: the path of the first that fits. The loader's lock is held, so nothing here calls
 * dl*.
 */
struct walk {
	const char *prefix; /* NULL: a driver */
	char *path;
	size_t room;
	bool found;
};

static int walk_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct walk *walk = data;
	struct elf_object object;
	if (!info->dlpi_name || !*info->dlpi_name || !elf_of_phdr(info, &object))
		return 0;
	bool fits = walk->prefix ? starts_with(door_base_name(info->dlpi_name), walk->prefix)
	                         : names_driver(info->dlpi_name, &object);
	size_t length = strlen(info->dlpi_name);
	if (!fits || length >= walk->room)
		return 0;
	memcpy(walk->path, info->dlpi_name, length + 1);
	walk->found = true;
	return 1;
}

bool door_find_loaded(const char *prefix, char *ret_path, size_t room)
{
	struct walk walk = {.prefix = prefix, .path = ret_path, .room = room};
	dl_iterate_phdr(walk_object, &walk);
	return walk.found;
}

struct link_map *door_pin(const char *path)
{
	struct link_map *map;
	void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	return handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map) ? map : NULL;
}

struct link_map *door_driver(void)
{
	struct link_map *driver = atomic_load_explicit(&hooked_driver, memory_order_acquire);
	char path[PATH_MAX];
	if (driver || !door_find_loaded(NULL, path, sizeof path))
		return driver;
	return door_pin(path);
}

static void fill(const struct link_map *driver)
{
	struct elf_object object = elf_of_map(driver);
	for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
		void *real = elf_symbol(&object, pointers[i].name);
		if (real)
			__atomic_store_n(pointers[i].pointer, real, __ATOMIC_RELAXED);
	}
	for (size_t i = 0; i < ENTRY_COUNT; i++)
		if (*entrypoints[i].real)
			swap_insert(*entrypoints[i].real, entrypoints[i].hook);
	if (drv.cuGetProcAddress)
		swap_insert((void *)drv.cuGetProcAddress, (void *)cuGetProcAddress);
	if (drv.cuGetProcAddress_v2)
		swap_insert((void *)drv.cuGetProcAddress_v2, (void *)cuGetProcAddress_v2);
}

static void hook_driver(struct link_map *driver)
{
	struct link_map *first = NULL;
	if (!atomic_compare_exchange_strong(&hooked_driver, &first, driver))
		driver = first;
	fill(driver);
	if (!atomic_exchange(&ready, true))
		lifecycle_start();
}

void door_adopt(const struct link_map *driver)
{
	if (atomic_load_explicit(&ready, memory_order_acquire))
		return;
	struct link_map *pinned = door_pin(driver->l_name);
	if (pinned)
		hook_driver(pinned);
}

/*
 * Only a hook that was called without a driver in the process comes here: a trampoline (XLA's) whose own loading we
 * took the place of.
 */
static struct link_map *load_driver(void)
{
	struct link_map *map;
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	return handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map) ? map : NULL;
}

bool hook_open(void **pointer)
{
	if (!atomic_load_explicit(&ready, memory_order_acquire) && !opening) {
		int saved = errno;
		opening = true;
		struct link_map *driver = door_driver();
		if (!driver)
			driver = load_driver();
		if (driver)
			hook_driver(driver);
		opening = false;
		errno = saved;
	} else if (opening) {
		/* A constructor of the driver that we are loading came back: it gets the driver it is in. */
		struct link_map *driver = door_driver();
		if (driver)
			fill(driver);
	}
	return __atomic_load_n(pointer, __ATOMIC_RELAXED) != NULL;
}

/*
 * dlsym and dlvsym, from libc's own table: a look-up by dlvsym(RTLD_NEXT) would meet our own dlvsym, and may not touch
 * dlerror.
 */
static int find_libc(struct dl_phdr_info *info, size_t bytes, void *data)
{
	const char *name = door_base_name(info->dlpi_name ? info->dlpi_name : "");
	struct elf_object object;
	if ((!strcmp(name, "libc.so.6") || !strcmp(name, "libdl.so.2")) && elf_of_phdr(info, &object)) {
		void *real_dlsym = elf_symbol(&object, "dlsym"), *real_dlvsym = elf_symbol(&object, "dlvsym");
		if (real_dlsym && real_dlvsym) {
			__atomic_store_n(&door_real_dlvsym, real_dlvsym, __ATOMIC_RELAXED);
			__atomic_store_n(&door_real_dlsym, real_dlsym, __ATOMIC_RELEASE);
			return 1;
		}
	}
	return 0;
}

bool door_find_libc(void)
{
	return __atomic_load_n(&door_real_dlsym, __ATOMIC_ACQUIRE) || dl_iterate_phdr(find_libc, NULL);
}

void *door_dlsym(void *handle, const char *name)
{
	void *(*real)(void *, const char *);
	if (!door_find_libc())
		return NULL;
	*(void **)&real = door_real_dlsym;
	return real(handle, name);
}

struct search {
	const char *name;
	void *found;
};

static int search_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct search *search = data;
	struct elf_object object;
	if (elf_of_phdr(info, &object))
		search->found = elf_symbol(&object, search->name);
	if (search->found && door_is_ours(search->found))
		search->found = NULL;
	return search->found != NULL;
}

void *door_find_symbol(const char *name)
{
	struct search search = {.name = name};
	dl_iterate_phdr(search_object, &search);
	return search.found;
}
