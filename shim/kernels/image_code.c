/*
 * Unpacked code, of which a little is kept: kernels are asked about one by one, and a library's cubin may hold thousands of them in tens of megabytes. What is
 * kept is a copy, so it does not vanish with the library; whoever analyses it holds a reference.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/fatbin.h"
#include "shim/kernels/image.h"
#include "shim/kernels/zstd.h"

#define KEPT 8
#define KEPT_BYTES ((size_t)32 << 20)
#define HASH_LEAST_BYTES 16384
#define HASH_AGAIN_BYTES ((size_t)1 << 20)
#define CODE_BYTES ((size_t)256 << 20) /* of one entry: it is memory of the program, while it is read */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct code *kept[KEPT]; /* the last used first, a reference each */
static size_t kept_bytes;

void image_code_reset(void)
{
	pthread_mutex_init(&lock, NULL);
}

void code_put(struct code *code)
{
	if (!code || atomic_fetch_sub(&code->references, 1) != 1)
		return;
	ptx_module_close(atomic_load(&code->module));
	free(code->owned);
	free(code);
}

int code_module(struct code *code, const struct ptx_module **ret_module)
{
	struct ptx_module *module = atomic_load(&code->module), *none = NULL;
	if (module) {
		*ret_module = module;
		return 0;
	}
	/* Texts end at a zero; in fatbins some are padded with more of them. */
	size_t length = strnlen((const char *)code->bytes, code->length);
	int err = ptx_module_open((const char *)code->bytes, length, &module);
	if (err)
		return err;
	/* Another thread may have read it meanwhile. */
	if (!atomic_compare_exchange_strong(&code->module, &none, module)) {
		ptx_module_close(module);
		module = none;
	}
	*ret_module = module;
	return 0;
}

/* With the lock held. The caller gives the reference back. */
static struct code *take_out(size_t place)
{
	struct code *code = kept[place];
	for (; place + 1 < KEPT; place++)
		kept[place] = kept[place + 1];
	kept[KEPT - 1] = NULL;
	kept_bytes -= code->length;
	return code;
}

/* With the lock held. */
static void put_first(struct code *code)
{
	for (size_t i = KEPT - 1; i > 0; i--)
		kept[i] = kept[i - 1];
	kept[0] = code;
	kept_bytes += code->length;
}

static struct code *find(const struct image *image, size_t offset)
{
	struct code *code = NULL;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < KEPT && kept[i] && !code; i++) {
		if (kept[i]->image != image || kept[i]->offset != offset)
			continue;
		code = take_out(i);
		put_first(code);
		atomic_fetch_add(&code->references, 1);
	}
	pthread_mutex_unlock(&lock);
	return code;
}

/* Another thread may have done the same: then it is there twice, and the older one goes first. */
static void keep(struct code *code)
{
	struct code *out[KEPT + 1];
	size_t count = 0;
	if (code->length > KEPT_BYTES / 2)
		return;
	pthread_mutex_lock(&lock);
	for (size_t last = KEPT; last-- > 0;)
		if (kept[last] && (last == KEPT - 1 || kept_bytes + code->length > KEPT_BYTES))
			out[count++] = take_out(last);
	put_first(code);
	atomic_fetch_add(&code->references, 1);
	pthread_mutex_unlock(&lock);
	while (count)
		code_put(out[--count]);
}

void image_code_forget(const struct image *image)
{
	struct code *out[KEPT];
	size_t count = 0;
	pthread_mutex_lock(&lock);
	for (size_t i = KEPT; i-- > 0;)
		if (kept[i] && kept[i]->image == image)
			out[count++] = take_out(i);
	pthread_mutex_unlock(&lock);
	while (count)
		code_put(out[--count]);
}

/* A copy of a part of the image, with a zero behind it. */
static int copy_part(const struct image *image, size_t offset, size_t bytes, uint8_t **ret_part)
{
	uint8_t *part = malloc(bytes + 1);
	if (!part)
		return -ENOMEM;
	int err = image_read(image, offset, part, bytes);
	if (err) {
		free(part);
		return err;
	}
	part[bytes] = 0;
	*ret_part = part;
	return 0;
}

static int unpack(const struct image *image, size_t offset, const struct fatbin_entry *entry, uint8_t **ret_code)
{
	struct fatbin_entry whole = *entry;
	uint8_t *packed;
	int err = copy_part(image, offset, entry->payload_bytes, &packed);
	if (err)
		return err;
	whole.payload = packed;
	err = fatbin_unpack(&whole, entry->packing == FATBIN_ZSTD ? zstd_decoder() : NULL, ret_code);
	free(packed);
	return err;
}

static struct code *new_code(const struct image *image, size_t offset, size_t length)
{
	struct code *code = calloc(1, sizeof *code);
	if (code) {
		code->references = 1;
		code->image = image;
		code->offset = offset;
		code->length = length;
	}
	return code;
}

/*
 * A copied image needs no second copy, and machine code in it nothing that is kept; of a text what was read of it is, and the image outlives that
 * (image_code_forget()).
 */
static bool keeps(const struct image *image, const struct fatbin_entry *entry)
{
	return entry->packing != FATBIN_PLAIN || !image->copied || entry->kind == FATBIN_PTX;
}

/* Small code is analysed sooner than a file is read. */
static void hash(struct code *code)
{
	if (code->length >= HASH_LEAST_BYTES && cache_in_use())
		code->hash = cache_hash(code->bytes, code->length);
}

int image_code(const struct image *image, size_t offset, const struct fatbin_entry *entry, struct code **ret_code)
{
	bool plain = entry->packing == FATBIN_PLAIN;
	if (entry->bytes > CODE_BYTES || entry->payload_bytes > CODE_BYTES)
		return -E2BIG;
	struct code *code = keeps(image, entry) ? find(image, offset) : NULL;
	int err = 0;
	if (!code) {
		code = new_code(image, offset, entry->bytes);
		if (!code)
			return -ENOMEM;
		if (plain && image->copied) {
			code->bytes = image->bytes + offset;
			/* Machine code is asked for again with each kernel: a large one would be read through each time. */
			if (code->length <= HASH_AGAIN_BYTES || keeps(image, entry))
				hash(code);
			if (keeps(image, entry))
				keep(code);
			*ret_code = code;
			return 0;
		}
		err = plain ? copy_part(image, offset, entry->bytes, &code->owned)
		            : unpack(image, offset, entry, &code->owned);
		if (err) {
			code_put(code);
			return err;
		}
		code->bytes = code->owned;
		hash(code);
		keep(code);
	}
	*ret_code = code;
	return 0;
}
