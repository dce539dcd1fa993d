/*
 * One image that the program loaded, and what is kept of it. For images.c and its neighbours.
 */
#ifndef CUCONST_KERNELS_IMAGE_H
#define CUCONST_KERNELS_IMAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/kernels/cache.h"
#include "shim/kernels/paths.h"

struct fatbin_entry;
struct link_map;

/* One image is copied up to this size, and all together up to that: they cost the program its memory. */
#define IMAGE_COPY_BYTES ((size_t)64 << 20)
#define IMAGE_COPIES_BYTES ((size_t)256 << 20)

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

/*
 * The object that holds all these bytes in a part that its file backs and that is never written; NULL: none. `writable`: it may be one that could be. For a load, during
 * which the object stays.
 */
const struct link_map *image_holder(const uint8_t *bytes, size_t length, bool writable);

/* A hash of the first bytes of an image, where sizes and packed code are: a look at all would read the file at each load. */
#define IMAGE_LEAD_BYTES 256
uint64_t image_lead(const uint8_t *lead, size_t length);

/* Part of the image. 0, -EINVAL (outside), -EFAULT (no longer there). Never faults, whatever the program unmaps meanwhile. */
int image_read(const struct image *image, size_t offset, void *to, size_t bytes);

/*
 * The code of an entry whose payload lies at `offset`, unpacked: for as long as the reference is held and the image is. Kept for the next kernel of it where it is
 * not too large. 0, and as image_read() and fatbin_unpack().
 */
struct code {
	_Atomic unsigned references;
	const struct image *image;
	size_t offset;
	const uint8_t *bytes;
	size_t length;
	uint8_t *owned;                    /* NULL: lies in the image */
	struct ptx_module *_Atomic module; /* of a text: NULL until it was read */
	struct cache_hash hash;            /* of the bytes, for results on disk; 0 bytes: not worth its time */
};
int image_code(const struct image *image, size_t offset, const struct fatbin_entry *entry, struct code **ret_code);
void code_put(struct code *code);
/* Its text, read once for all its kernels; as long as the code. 0 or -ENOMEM. */
int code_module(struct code *code, const struct ptx_module **ret_module);
/* The image is about to be freed. */
void image_code_forget(const struct image *image);
/* fork child. */
void image_code_reset(void);
void image_where_reset(void);

/*
 * Store paths of one kernel, by the code that the driver takes for each of these machines (compute capability times ten); where that is not known, of
 * all it may take, put together on the safe side. 0, also with a reason; -ENOMEM.
 */
int image_paths(const struct image *image, const char *kernel, const unsigned *machines, size_t machine_count,
                struct kernel_paths *ret_paths);

/*
 * The same where the parameters have these values (paths_for_cubin()). *ret_paths is empty where it is not better.
 * -EFAULT: the image is gone, or a part of it, and the answer would be one about that.
 */
int image_paths_for(const struct image *image, const char *kernel, const unsigned *machines, size_t machine_count,
                    struct paths_values *values, struct kernel_paths *ret_paths, bool *ret_better);

/* For images_start(). The environment is read once, as the driver does: getenv() and another thread's setenv() do not mix. */
void image_read_environment(void);
void image_set_object_finder(struct link_map *(*object_at)(const void *address));

#endif
