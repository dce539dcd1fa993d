/*
 * One image that the program loaded, and what is kept of it. For images.c and its neighbours.
 */
#ifndef CUCONST_KERNELS_IMAGE_H
#define CUCONST_KERNELS_IMAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/kernels/paths.h"

struct link_map;

/* One image is copied up to this size, and all together up to that: they cost the program its memory. */
#define IMAGE_COPY_BYTES ((size_t)64 << 20)
#define IMAGE_COPIES_BYTES ((size_t)512 << 20)

enum image_form { IMAGE_PTX, IMAGE_CUBIN, IMAGE_FATBIN };

struct image {
	_Atomic unsigned references;
	enum image_form form;
	enum paths_reason reason; /* why nothing is kept; PATHS_CLEAR: it is */
	const uint8_t *bytes;     /* the copy, or the program's memory: to be read by image_read() alone */
	size_t length;
	bool copied;
	/* By reference: the library that it lies in, and what its first bytes were. */
	const struct link_map *object;
	uint64_t lead;
};

/* What a successful load was given. NULL: out of memory. One reference, for image_put(). */
struct image *image_keep(const void *given);
struct image *image_keep_file(const char *path);

void image_get(struct image *image);
void image_put(struct image *image);

/* Is what was kept still there? False for the image of a library that was closed. */
bool image_present(const struct image *image);

/* Part of the image. 0, -EINVAL (outside), -EFAULT (no longer there). Never faults, whatever the program unmaps meanwhile. */
int image_read(const struct image *image, size_t offset, void *to, size_t bytes);

/*
 * Store paths of one kernel, by the code that the driver takes for each of these machines (compute capability times ten); where that is not known, of
 * all it may take, put together on the safe side. 0, also with a reason; -ENOMEM.
 */
int image_paths(const struct image *image, const char *kernel, const unsigned *machines, size_t machine_count,
                struct kernel_paths *ret_paths);

/* For images_set_loader(). */
void image_set_object_finder(struct link_map *(*object_at)(const void *address));
void zstd_set_symbol_finder(void *(*symbol)(void *library, const char *name));

/* The process's libzstd, loaded at the first call; as fatbin_zstd. -ENOTSUP: there is none. */
int zstd_unpack(uint8_t *to, size_t bytes, const uint8_t *from, size_t from_bytes);

#endif
