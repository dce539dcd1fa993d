/*
 * Fatbins: containers of code for several machines, as the runtime hands them to the driver and as they lie in libraries. Reads in place.
 */
#ifndef CUCONST_KERNELS_FATBIN_H
#define CUCONST_KERNELS_FATBIN_H

#include <stddef.h>
#include <stdint.h>

enum fatbin_kind { FATBIN_PTX = 1, FATBIN_CUBIN = 2 }; /* others (8: intermediate code for the linker) occur */
enum fatbin_packing { FATBIN_PLAIN, FATBIN_LZ4, FATBIN_ZSTD };

struct fatbin_entry {
	unsigned kind, sm; /* enum fatbin_kind where known; compute capability times ten */
	enum fatbin_packing packing;
	uint64_t flags;
	const uint8_t *payload;      /* in the image, packed */
	size_t payload_bytes, bytes; /* packed; unpacked */
};

/* Where a walk over the entries is; set `at` and `end` by fatbin_open. */
struct fatbin {
	const uint8_t *at, *end;
};

#define FATBIN_CONTAINER_MAGIC 0xba55ed50u
#define FATBIN_WRAPPER_MAGIC 0x466243b1u

/*
 * A container at the start of an image of `bytes`. 0, or -EINVAL. *ret_bytes (may be NULL) becomes the size of the container with its header.
 */
int fatbin_open(const void *image, size_t bytes, struct fatbin *ret_fatbin, size_t *ret_bytes);

/*
 * The container that a wrapper (what the runtime registers) points to, in this process's memory. NULL: not a wrapper. The size of what is pointed to is only
 * known from its header, so a wrapper is trusted as the driver trusts it.
 */
const void *fatbin_of_wrapper(const void *wrapper);

/* The next entry. 1, 0 at the end, -EINVAL where the container contradicts itself. */
int fatbin_next(struct fatbin *fatbin, struct fatbin_entry *ret_entry);

/*
 * One entry by its header alone, of which FATBIN_ENTRY_BYTES are there: for images that cannot be read in place. `left`: bytes from the header to the end of the
 * container. *ret_payload: from the header to the payload; *ret_step: to the next entry. entry->payload is not set. 0, -EINVAL.
 */
#define FATBIN_ENTRY_BYTES 64
int fatbin_entry(const uint8_t *header, size_t left, struct fatbin_entry *ret_entry, size_t *ret_payload,
                 size_t *ret_step);

/* The first container in a file of any kind at or behind `from`; returns its offset, or `bytes` if there is none. */
size_t fatbin_find(const void *file, size_t bytes, size_t from);

/* Unpacks a zstd frame into exactly `bytes`; 0 or negative errno. Given by who links a decoder. */
typedef int (*fatbin_zstd)(uint8_t *to, size_t bytes, const uint8_t *from, size_t from_bytes);

/*
 * The unpacked payload, allocated (free it). 0, -EINVAL (damaged), -ENOMEM, -E2BIG (claims more than 1 GiB), -ENOTSUP (zstd, and no decoder given).
 */
int fatbin_unpack(const struct fatbin_entry *entry, fatbin_zstd zstd, uint8_t **ret_bytes);

/* One LZ4 block into exactly `bytes`. 0 or -EINVAL. */
int lz4_unpack(uint8_t *to, size_t bytes, const uint8_t *from, size_t from_bytes);

#endif
