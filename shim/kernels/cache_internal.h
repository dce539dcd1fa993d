/*
 * Between the files of the cache: a file for each key, what it holds, and store paths as bytes.
 */
#ifndef CUCONST_KERNELS_CACHE_INTERNAL_H
#define CUCONST_KERNELS_CACHE_INTERNAL_H

#include "shim/kernels/cache.h"

/* What is kept about a kernel of an image, each in a file of its own. */
struct cache_key {
	const struct cache_hash *image;
	const char *kernel;
	enum { CACHE_ANY_VALUES, CACHE_VALUES } kind;
};

/* The content of its file, in `buffer` of CACHE_FILE_BYTES: whole, and of this version. 0 bytes: none. */
size_t cache_read(const struct cache_key *key, unsigned char *buffer, const unsigned char **ret_content);

/* Where in such a buffer the content of a new file goes, and how much; NULL: nowhere. Then the file is written. */
unsigned char *cache_content(const struct cache_key *key, unsigned char *buffer, size_t *ret_room);
void cache_write(const struct cache_key *key, unsigned char *buffer, size_t content);

/* Bytes taken; 0: there is no room, or it is nothing to keep. */
size_t cache_pack(const struct kernel_paths *paths, unsigned char *to, size_t room);
/* False: they are not such bytes, or no memory. Else *ret_paths is filled. */
bool cache_unpack(const unsigned char *from, size_t bytes, struct kernel_paths *ret_paths);

#endif
