/*
 * Results on disk, by content: what was worked out about a kernel in one process need not be in the next. Nothing here fails: what cannot be read or
 * written, or is not what it should be, is as if it were not there.
 *
 * A folder of CACHE_PLACES files at most, of CACHE_FILE_BYTES at most each: an entry's place follows from its hash, and a later one for the same place takes it.
 */
#ifndef CUCONST_KERNELS_CACHE_H
#define CUCONST_KERNELS_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/kernels/paths.h"

#ifndef CACHE_PLACES /* a test takes fewer */
#define CACHE_PLACES 16384
#endif
#define CACHE_FILE_BYTES 16384

/* Of the bytes of an image: worked out once for all its kernels. */
struct cache_hash {
	uint64_t low, high, bytes;
};
struct cache_hash cache_hash(const void *image, size_t bytes);

/*
 * The folder: `directory`, or with NULL $XDG_CACHE_HOME/cuconst, else $HOME/.cache/cuconst. Made when there is something to put there; used only while it is this user's alone to
 * write. False where there is no absolute path, as in set-user-ID programs. Call once, before cache_get and cache_put, which do nothing until it succeeded.
 */
bool cache_use(const char *directory);
bool cache_in_use(void);

/*
 * True, and *ret_paths filled (kernel_paths_free), where this kernel of this image is known to this version of the analysis. All are thread-safe, and keep errno; no descriptor
 * stays open.
 */
bool cache_get(const struct cache_hash *image, const char *kernel, struct kernel_paths *ret_paths);
void cache_put(const struct cache_hash *image, const char *kernel, const struct kernel_paths *paths);

/*
 * The same for given values: an answer as paths_for_cubin() gave it, with its values->used, for values that are alike in
 * what it hangs on. *ret_paths is filled where *ret_better. cache_put_values: `paths` NULL: not better.
 */
bool cache_get_values(const struct cache_hash *image, const char *kernel, struct paths_values *values,
                      struct kernel_paths *ret_paths, bool *ret_better);
void cache_put_values(const struct cache_hash *image, const char *kernel, const struct paths_values *values,
                      const struct kernel_paths *paths);

#endif
