/*
 * Inside doors/ only: which object is the driver, and what the real dlsym is.
 */
#ifndef CUCONST_DOORS_RESOLVE_H
#define CUCONST_DOORS_RESOLVE_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* Bounds of this library in memory: the linker defines both in every object; hidden, so they are this one's. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/* libc's own, read by dlsym.S; NULL before the first look-up that needed them. Set once. */
extern void *door_real_dlsym, *door_real_dlvsym;

/* Finds them in libc's symbol table. False: neither glibc nor anything like it. */
bool door_find_libc(void);

/* Is a symbol named like an entry point of the driver, cu[A-Z]*? */
static inline bool door_driver_name(const char *symbol)
{
	return symbol[0] == 'c' && symbol[1] == 'u' && symbol[2] >= 'A' && symbol[2] <= 'Z';
}

/* Is it a libcuda: by file name, or by DT_SONAME, whatever its name? */
bool door_is_driver(const struct link_map *map);

/* Does the address lie in libcuda or one of the driver's helper libraries? They must get what they ask for. */
bool door_in_driver(const void *address);

/* Does it lie in this library? */
bool door_is_ours(const void *address);

/* The driver that is hooked, or one that is loaded and would be: pinned. NULL: no driver is loaded. Loads nothing. */
struct link_map *door_driver(void);

/* Hooks this driver, and pins it, unless one is hooked already. Lock-free, re-entrant. */
void door_adopt(const struct link_map *driver);

/*
 * Copies the path of the first loaded object whose file name begins with `prefix`. False: none, or `room` is too small.
 */
bool door_find_loaded(const char *prefix, char *ret_path, size_t room);

/* The same object, with a reference that is never given back, so that its addresses stay good. NULL when it is gone. */
struct link_map *door_pin(const char *path);

const char *door_base_name(const char *path);

#endif
