#include "shim/kernels/fatbin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/elf.h"

#define FLAG_LZ4 0x2000
#define FLAG_ZSTD 0x8000
#define UNPACKED_LIMIT ((uint64_t)1 << 30)

int fatbin_open(const void *image, size_t bytes, struct fatbin *ret_fatbin, size_t *ret_bytes)
{
	const uint8_t *header = image;
	if (bytes < 16 || elf_u32(header) != FATBIN_CONTAINER_MAGIC || elf_u16(header + 4) != 1)
		return -EINVAL;
	size_t header_bytes = elf_u16(header + 6);
	uint64_t rest = elf_u64(header + 8);
	if (header_bytes < 16 || header_bytes > bytes || rest > bytes - header_bytes)
		return -EINVAL;
	*ret_fatbin = (struct fatbin){header + header_bytes, header + header_bytes + rest};
	if (ret_bytes)
		*ret_bytes = header_bytes + (size_t)rest;
	return 0;
}

const void *fatbin_of_wrapper(const void *wrapper)
{
	uint64_t pointer;
	if (elf_u32(wrapper) != FATBIN_WRAPPER_MAGIC)
		return NULL;
	memcpy(&pointer, (const uint8_t *)wrapper + 8, sizeof pointer);
	return (const void *)(uintptr_t)pointer;
}

int fatbin_entry(const uint8_t *header, size_t left, struct fatbin_entry *ret_entry, size_t *ret_payload, size_t *ret_step)
{
	/* 64 bytes at least; the header says how long it is. */
	uint32_t header_bytes = elf_u32(header + 4), packed = elf_u32(header + 16);
	uint64_t payload = elf_u64(header + 8);
	if (header_bytes < FATBIN_ENTRY_BYTES || header_bytes > left || payload > left - header_bytes || packed > payload)
		return -EINVAL;
	struct fatbin_entry entry = {.kind = elf_u16(header),
	                             .sm = elf_u32(header + 28),
	                             .flags = elf_u64(header + 40),
	                             .payload_bytes = (size_t)payload,
	                             .bytes = (size_t)payload};
	if (entry.flags & (FLAG_LZ4 | FLAG_ZSTD)) {
		entry.packing = entry.flags & FLAG_ZSTD ? FATBIN_ZSTD : FATBIN_LZ4;
		entry.payload_bytes = packed ? packed : (size_t)payload;
		entry.bytes = (size_t)elf_u64(header + 56);
	}
	*ret_entry = entry;
	*ret_payload = header_bytes;
	*ret_step = header_bytes + (size_t)payload;
	return 0;
}

int fatbin_next(struct fatbin *fatbin, struct fatbin_entry *ret_entry)
{
	const uint8_t *header = fatbin->at;
	size_t left = (size_t)(fatbin->end - header), payload, step;
	struct fatbin_entry entry;
	if (left < FATBIN_ENTRY_BYTES)
		return 0;
	if (fatbin_entry(header, left, &entry, &payload, &step))
		return -EINVAL;
	entry.payload = header + payload;
	fatbin->at = header + step;
	*ret_entry = entry;
	return 1;
}

size_t fatbin_find(const void *file, size_t bytes, size_t from)
{
	static const uint8_t magic[4] = {0x50, 0xed, 0x55, 0xba};
	struct fatbin fatbin;
	while (from < bytes) {
		const uint8_t *found = memmem((const uint8_t *)file + from, bytes - from, magic, sizeof magic);
		if (!found)
			return bytes;
		from = (size_t)(found - (const uint8_t *)file);
		if (!fatbin_open(found, bytes - from, &fatbin, NULL))
			return from;
		from += sizeof magic;
	}
	return bytes;
}

int fatbin_unpack(const struct fatbin_entry *entry, fatbin_zstd zstd, uint8_t **ret_bytes)
{
	if (entry->packing == FATBIN_ZSTD && !zstd)
		return -ENOTSUP;
	if (entry->bytes > UNPACKED_LIMIT)
		return -E2BIG;
	uint8_t *bytes = malloc(entry->bytes + 1);
	if (!bytes)
		return -ENOMEM;
	int err = 0;
	if (entry->packing == FATBIN_PLAIN)
		memcpy(bytes, entry->payload, entry->bytes);
	else if (entry->packing == FATBIN_LZ4)
		err = lz4_unpack(bytes, entry->bytes, entry->payload, entry->payload_bytes);
	else
		err = zstd(bytes, entry->bytes, entry->payload, entry->payload_bytes);
	if (err) {
		free(bytes);
		return err;
	}
	*ret_bytes = bytes;
	return 0;
}
