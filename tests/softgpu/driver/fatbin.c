/* The PTX in a fat binary: the newest that this device can use, unpacked where it is compressed. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/module.h"
#include "tests/softgpu/driver/probe.h"

enum { KIND_PTX = 1, DEVICE_ARCH = 90, TEXT_MAX = 1 << 30 };
#define FLAG_LZ4 UINT64_C(0x2000)
#define FLAG_ZSTD UINT64_C(0x8000)

struct header {
	uint32_t magic;
	uint16_t version, header_bytes;
	uint64_t bytes; /* of what follows the header */
};

/* Older writers' entries are shorter: what they do not have is zero. */
struct entry {
	uint16_t kind, version;
	uint32_t header_bytes;
	uint64_t bytes; /* of the payload behind the header, padded */
	uint32_t compressed_bytes, options;
	uint16_t minor, major;
	uint32_t arch, name, name_bytes;
	uint64_t flags, zero, unpacked_bytes;
};
enum { SHORTEST_ENTRY = offsetof(struct entry, options) };

/* A run of 4-bit length that goes on in bytes as long as they are 255. False past the end. */
static bool length_of(const uint8_t **at, const uint8_t *end, size_t *length)
{
	uint8_t more = 255;

	if (*length != 15)
		return true;
	while (more == 255) {
		if (*at == end)
			return false;
		more = *(*at)++;
		*length += more;
	}
	return true;
}

/* An LZ4 block: literals, then a piece of what is there already, again and again; the last has literals only. */
static bool unpack_lz4(uint8_t *to, size_t room, const uint8_t *from, size_t from_bytes)
{
	const uint8_t *end = from + from_bytes;
	size_t done = 0;

	while (from < end) {
		uint8_t token = *from++;
		size_t literals = token >> 4, match = token & 15;
		if (!length_of(&from, end, &literals) || literals > (size_t)(end - from) || literals > room - done)
			return false;
		memcpy(to + done, from, literals);
		from += literals;
		done += literals;
		if (from == end)
			break;
		if (end - from < 2)
			return false;
		size_t distance = from[0] | (size_t)from[1] << 8;
		from += 2;
		if (!length_of(&from, end, &match) || distance == 0 || distance > done || match + 4 > room - done)
			return false;
		/* Byte by byte: the piece may reach into what it makes. */
		for (match += 4; match > 0; match--, done++)
			to[done] = to[done - distance];
	}
	return done == room;
}

/* By the machine's libzstd, if it has one. */
static bool unpack_zstd(uint8_t *to, size_t room, const uint8_t *from, size_t from_bytes)
{
	size_t (*decompress)(void *to, size_t room, const void *from, size_t bytes);
	void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
	void *found = library == NULL ? NULL : dlsym(library, "ZSTD_decompress");

	if (found == NULL) {
		sg_say("the PTX of a fat binary is compressed with zstd, and there is no libzstd.so.1: install it, or build with --compress-mode=none");
		return false;
	}
	memcpy(&decompress, &found, sizeof(decompress));
	return decompress(to, room, from, from_bytes) == room;
}

static CUresult take(const struct entry *entry, const char *payload, struct sg_text *ret_text)
{
	if (entry->compressed_bytes == 0) {
		*ret_text = (struct sg_text){.text = payload, .bytes = strnlen(payload, entry->bytes)};
		return CUDA_SUCCESS;
	}
	bool lz4 = (entry->flags & FLAG_LZ4) != 0, zstd = (entry->flags & FLAG_ZSTD) != 0;
	if (lz4 == zstd || entry->unpacked_bytes > TEXT_MAX || entry->compressed_bytes > entry->bytes)
		return CUDA_ERROR_INVALID_IMAGE;
	char *text = malloc(entry->unpacked_bytes + 1);
	if (text == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	bool good = (lz4 ? unpack_lz4 : unpack_zstd)((uint8_t *)text, entry->unpacked_bytes, (const uint8_t *)payload,
	                                             entry->compressed_bytes);
	if (!good) {
		free(text);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	text[entry->unpacked_bytes] = '\0';
	*ret_text = (struct sg_text){.text = text, .bytes = strlen(text), .owned = text};
	return CUDA_SUCCESS;
}

CUresult sg_fatbin_text(const void *image, struct sg_text *ret_text)
{
	struct header header;
	struct entry best = {.kind = 0};
	const char *payload = NULL;

	memcpy(&header, image, sizeof(header));
	if (header.header_bytes < sizeof(header))
		return CUDA_ERROR_INVALID_IMAGE;
	const char *at = (const char *)image + header.header_bytes, *end = at + header.bytes;
	while ((size_t)(end - at) >= SHORTEST_ENTRY) {
		struct entry entry = {.kind = 0};
		memcpy(&entry, at, SHORTEST_ENTRY);
		if (entry.header_bytes < SHORTEST_ENTRY || entry.header_bytes > (size_t)(end - at) ||
		    entry.bytes > (size_t)(end - at) - entry.header_bytes)
			return CUDA_ERROR_INVALID_IMAGE;
		memcpy(&entry, at, entry.header_bytes < sizeof(entry) ? entry.header_bytes : sizeof(entry));
		if (entry.kind == KIND_PTX && entry.arch <= DEVICE_ARCH && (payload == NULL || entry.arch > best.arch)) {
			best = entry;
			payload = at + entry.header_bytes;
		}
		at += entry.header_bytes + entry.bytes;
	}
	if (payload != NULL)
		return take(&best, payload, ret_text);
	sg_say("a fat binary has no PTX for this device: build with -gencode arch=compute_80,code=compute_80");
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}
