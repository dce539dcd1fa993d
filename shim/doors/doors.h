/*
 * Doors: the ways by which a program reaches a driver entry point. README.md says how each is closed.
 */
#ifndef CUCONST_DOORS_DOORS_H
#define CUCONST_DOORS_DOORS_H

#include <stddef.h>

struct link_map;

/* The real dlsym of libc, as if called by the shim. NULL when it cannot be found (then every door is transparent). */
void *door_dlsym(void *handle, const char *name);

/*
 * Our hook for an address inside the real driver, or NULL: not one of ours, or the driver was not found. Lock-free, a
 * few ns.
 */
void *door_swap(const void *real);

/* The object in which an address lies, or NULL. Not pinned. Lock-free from glibc 2.35 on. */
struct link_map *door_object_at(const void *address);

/*
 * An exported symbol of whatever is loaded, found without dlsym's caller rules: dl_iterate order over the link map.
 * NULL: none. For site_set_resolver().
 */
void *door_find_symbol(const char *name);

/*
 * What reaches the driver past the hooks, as text for the summary: "RTLD_DEEPBIND library libcufftMp.so; dlmopen
 * namespace with libcuda.so.1". Returns how many there are, "" and 0 when none is known; those that do not fit in
 * `room` (at least 1) are only counted. Takes the loader's lock and reads all relocations: for the end of a run, not
 * for a hook.
 */
size_t door_blind(char *ret_text, size_t room);

#endif
