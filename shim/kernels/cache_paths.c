/* Store paths as bytes, and back: for results on disk. Of this machine's byte order. */
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/cache_internal.h"
#include "shim/kernels/line_info.h"

#define TEXTS 64         /* kinds of stores and source files of one kernel */
#define TEXTS_BYTES 8192 /* of all, with their ends */

/* In front; then the slots (a byte each), the texts, the stores. */
struct packed {
	uint64_t store_count;
	uint32_t slots, stores_kept, texts_bytes, reason, reason_offset, none;
};

struct stored_site {
	uint32_t offset, base, line;
	uint32_t kind, file; /* texts, by number; NO_TEXT */
};
#define NO_TEXT UINT32_MAX

struct texts {
	char bytes[TEXTS_BYTES];
	uint32_t used, count, at[TEXTS];
};

static size_t size_of(const struct packed *packed)
{
	return sizeof *packed + packed->slots + packed->texts_bytes +
	       (size_t)packed->stores_kept * sizeof(struct stored_site);
}

static bool read_slots(const unsigned char *at, struct kernel_paths *paths)
{
	for (size_t i = 0; i < paths->slot_count; i++) {
		if ((at[i] & 3) > SLOT_STORE || at[i] >> 5)
			return false;
		paths->slots[i] = (struct slot_paths){at[i] & 3, at[i] >> 4, at[i] >> 2 & 1, at[i] >> 3 & 1};
	}
	return true;
}

static bool read_texts(const unsigned char *from, uint32_t bytes, struct texts *texts)
{
	texts->count = 0;
	if (bytes > sizeof texts->bytes || (bytes && from[bytes - 1]))
		return false;
	memcpy(texts->bytes, from, bytes);
	for (uint32_t at = 0; at < bytes; at += (uint32_t)strlen(texts->bytes + at) + 1) {
		if (texts->count == TEXTS)
			return false;
		texts->at[texts->count++] = at;
	}
	return true;
}

static const char *text_of(const struct texts *texts, uint32_t number)
{
	return number < texts->count ? texts->bytes + texts->at[number] : NULL;
}

/* Kinds are static text, files live for ever: each is found by its name. */
static bool read_stores(const struct packed *packed, const unsigned char *from, struct kernel_paths *paths)
{
	struct texts texts;
	if (!read_texts(from, packed->texts_bytes, &texts))
		return false;
	from += packed->texts_bytes;
	for (uint32_t i = 0; i < packed->stores_kept; i++, from += sizeof(struct stored_site)) {
		struct stored_site site;
		memcpy(&site, from, sizeof site);
		const char *kind = text_of(&texts, site.kind), *file = text_of(&texts, site.file);
		kind = kind ? paths_kind_named(kind) : NULL;
		if (!kind || (site.file != NO_TEXT && !file) ||
		    (site.base != UINT32_MAX && site.base >= paths->slot_count))
			return false;
		if (file)
			file = line_file((struct line_text){"", 0}, (struct line_text){file, strlen(file)});
		paths->stores[i] = (struct store_site){site.offset, site.base, kind, file, file ? site.line : 0};
	}
	return true;
}

bool cache_unpack(const unsigned char *from, size_t bytes, struct kernel_paths *ret_paths)
{
	struct packed packed;
	if (bytes < sizeof packed)
		return false;
	memcpy(&packed, from, sizeof packed);
	const unsigned char *slots = from + sizeof packed;
	if (packed.slots > CACHE_FILE_BYTES || packed.texts_bytes > TEXTS_BYTES || packed.stores_kept > PATHS_STORES ||
	    packed.store_count < packed.stores_kept || packed.reason > PATHS_LIMIT || size_of(&packed) != bytes)
		return false;
	struct kernel_paths paths = {.reason = (enum paths_reason)packed.reason,
	                             .reason_offset = packed.reason_offset,
	                             .slot_count = packed.slots,
	                             .slots = calloc(packed.slots + (size_t)1, sizeof *paths.slots),
	                             .store_count = packed.store_count,
	                             .stores = calloc(packed.stores_kept + (size_t)1, sizeof *paths.stores)};
	if (paths.slots && paths.stores && read_slots(slots, &paths) &&
	    read_stores(&packed, slots + packed.slots, &paths)) {
		*ret_paths = paths;
		return true;
	}
	kernel_paths_free(&paths);
	return false;
}

/* The number of a text; TEXTS where there is no room. */
static uint32_t add_text(struct texts *texts, const char *text)
{
	size_t bytes = strlen(text) + 1;
	for (uint32_t i = 0; i < texts->count; i++)
		if (!strcmp(texts->bytes + texts->at[i], text))
			return i;
	if (texts->count == TEXTS || bytes == 1 || bytes > sizeof texts->bytes - texts->used)
		return TEXTS;
	memcpy(texts->bytes + texts->used, text, bytes);
	texts->at[texts->count] = texts->used;
	texts->used += (uint32_t)bytes;
	return texts->count++;
}

size_t cache_pack(const struct kernel_paths *paths, unsigned char *to, size_t room)
{
	struct texts texts = {.used = 0};
	struct stored_site sites[PATHS_STORES];
	struct packed packed = {
		.store_count = paths->store_count,
		.stores_kept = (uint32_t)(paths->store_count < PATHS_STORES ? paths->store_count : PATHS_STORES),
		.reason = paths->reason,
		.reason_offset = paths->reason_offset};
	if (paths->slot_count > CACHE_FILE_BYTES || paths->reason > PATHS_LIMIT || paths->reason == PATHS_DAMAGED)
		return 0;
	packed.slots = (uint32_t)paths->slot_count;
	for (uint32_t i = 0; i < packed.stores_kept; i++) {
		const struct store_site *site = &paths->stores[i];
		sites[i] = (struct stored_site){site->offset, site->base, site->line, add_text(&texts, site->kind),
		                                site->file ? add_text(&texts, site->file) : NO_TEXT};
		if (sites[i].kind == TEXTS || sites[i].file == TEXTS)
			return 0;
	}
	packed.texts_bytes = texts.used;
	if (size_of(&packed) > room)
		return 0;
	memcpy(to, &packed, sizeof packed);
	to += sizeof packed;
	for (size_t i = 0; i < paths->slot_count; i++)
		*to++ = (unsigned char)(paths->slots[i].use | paths->slots[i].only_base << 2 |
		                        paths->slots[i].compared << 3 | paths->slots[i].loaded << 4);
	memcpy(to, texts.bytes, texts.used);
	memcpy(to + texts.used, sites, packed.stores_kept * sizeof sites[0]);
	return size_of(&packed);
}
