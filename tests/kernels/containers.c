/* Fatbins, LZ4 and cubin headers: what they say, and what they refuse. containers FATBIN CUBIN: the two made from small.cu. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/fatbin.h"
#include "shim/kernels/paths.h"
#include "shim/kernels/zstd.h"
#include "tests/kernels/file.h"

static int faults;

#define CHECK(condition)                                                                                               \
	((condition) ? (void)0 : (void)(faults++, printf("%s:%d: %s\n", __FILE__, __LINE__, #condition)))

static void lz4(void)
{
	/* Literals, then a match that overlaps itself, then the last literals. */
	static const uint8_t packed[] = {0x2a, 'a', 'b', 2, 0, 0x30, 'x', 'y', 'z'};
	uint8_t out[32];
	CHECK(!lz4_unpack(out, 19, packed, sizeof packed) && !memcmp(out, "ababababababababxyz", 19));
	CHECK(lz4_unpack(out, 18, packed, sizeof packed) == -EINVAL);
	CHECK(lz4_unpack(out, 20, packed, sizeof packed) == -EINVAL);
	for (size_t cut = 0; cut < sizeof packed; cut++)
		CHECK(lz4_unpack(out, 19, packed, cut) == -EINVAL);
	static const uint8_t before[] = {0x10, 'a', 2, 0, 0x10, 'b'}, zero[] = {0x10, 'a', 0, 0, 0x10, 'b'};
	CHECK(lz4_unpack(out, 6, before, sizeof before) == -EINVAL);
	CHECK(lz4_unpack(out, 6, zero, sizeof zero) == -EINVAL);
	/* A literal length that goes on: 15 + 255 + 1. */
	uint8_t many[3 + 271] = {0xf0, 255, 1}, unpacked[271];
	memset(many + 3, 'q', 271);
	CHECK(!lz4_unpack(unpacked, 271, many, sizeof many) && unpacked[0] == 'q' && unpacked[270] == 'q');
	CHECK(lz4_unpack(unpacked, 271, many, 2) == -EINVAL);
	CHECK(!lz4_unpack(out, 0, NULL, 0));
}

/* A frame with one block as it is, one with a repeated byte, and what is no frame. */
static void zstd(void)
{
	static const uint8_t plain[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 4, 0x21, 0, 0, 'a', 'b', 'c', 'd'},
			     repeated[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 200, 0x43, 6, 0, 'q'};
	uint8_t *unpacked = NULL;
	struct fatbin_entry entry = {.packing = FATBIN_ZSTD, .payload = plain, .payload_bytes = sizeof plain, .bytes = 4};
	fatbin_zstd decoder = zstd_decoder();
	if (!decoder) {
		printf("no libzstd.so.1 here: zstd not tested\n");
		return;
	}
	CHECK(!fatbin_unpack(&entry, decoder, &unpacked) && !memcmp(unpacked, "abcd", 4));
	free(unpacked);
	entry.payload = repeated, entry.payload_bytes = sizeof repeated, entry.bytes = 200;
	CHECK(!fatbin_unpack(&entry, decoder, &unpacked) && unpacked[0] == 'q' && unpacked[199] == 'q');
	free(unpacked);
	unpacked = NULL;
	/* The header's size is the frame's, or it is damaged. */
	for (entry.bytes = 0; entry.bytes < 400; entry.bytes++)
		CHECK(entry.bytes == 200 || fatbin_unpack(&entry, decoder, &unpacked) == -EINVAL);
	entry.bytes = 200;
	for (entry.payload_bytes = 0; entry.payload_bytes < sizeof repeated; entry.payload_bytes++)
		CHECK(fatbin_unpack(&entry, decoder, &unpacked) == -EINVAL);
	entry.payload = (const uint8_t *)"not a frame of zstd", entry.payload_bytes = 19;
	CHECK(fatbin_unpack(&entry, decoder, &unpacked) == -EINVAL && !unpacked);
}

static int refuse_zstd(uint8_t *to, size_t bytes, const uint8_t *from, size_t from_bytes)
{
	return -EIO;
}

static void fatbins(const uint8_t *image, size_t bytes)
{
	struct fatbin fatbin;
	struct fatbin_entry entry;
	size_t container = 0;
	unsigned cubins = 0, ptx = 0, packed = 0;
	CHECK(!fatbin_open(image, bytes, &fatbin, &container) && container <= bytes);
	int answer;
	while ((answer = fatbin_next(&fatbin, &entry)) == 1) {
		uint8_t *unpacked = NULL;
		CHECK(!fatbin_unpack(&entry, NULL, &unpacked));
		packed += entry.packing == FATBIN_LZ4;
		if (entry.kind == FATBIN_CUBIN && unpacked) {
			struct elf elf;
			struct kernel_paths paths;
			CHECK(!elf_open(unpacked, entry.bytes, &elf) && elf.sm == entry.sm);
			CHECK(!paths_of_cubin(unpacked, entry.bytes, "copy", &paths) && paths.reason == PATHS_CLEAR &&
			      paths.slot_count == 3);
			CHECK(paths.slots[0].use == SLOT_STORE && paths.slots[0].only_base &&
			      paths.slots[1].use == SLOT_LOAD);
			CHECK(paths.store_count && paths.stores[0].base == 0 && !strcmp(paths.stores[0].kind, "STG"));
			kernel_paths_free(&paths);
			CHECK(!paths.slots && !paths.stores && !paths.slot_count);
			cubins++;
		} else if (entry.kind == FATBIN_PTX) {
			ptx++;
		}
		free(unpacked);
		entry.packing = FATBIN_ZSTD;
		CHECK(fatbin_unpack(&entry, NULL, &unpacked) == -ENOTSUP);
		CHECK(fatbin_unpack(&entry, refuse_zstd, &unpacked) == -EIO);
		entry.bytes = (size_t)2 << 30;
		CHECK(fatbin_unpack(&entry, refuse_zstd, &unpacked) == -E2BIG);
	}
	CHECK(!answer && cubins == 2 && ptx == 1 && packed > 0);
	CHECK(fatbin_find(image, bytes, 0) == 0 && fatbin_find(image, bytes, 1) == bytes);
	for (size_t cut = 0; cut < container; cut++)
		CHECK(fatbin_open(image, cut, &fatbin, NULL) == -EINVAL);
	struct {
		uint32_t magic, version;
		const void *data, *file;
	} wrapper = {FATBIN_WRAPPER_MAGIC, 1, image, NULL};
	CHECK(fatbin_of_wrapper(&wrapper) == image);
	wrapper.magic = FATBIN_CONTAINER_MAGIC;
	CHECK(!fatbin_of_wrapper(&wrapper));
}

static void cubin(const uint8_t *image, size_t bytes)
{
	struct kernel_paths paths;
	CHECK(paths_of_cubin(image, bytes, "nosuch", &paths) == -ENOENT);
	CHECK(paths_of_cubin(image, bytes, "", &paths) == -ENOENT);
	CHECK(!paths_of_cubin(image, 0, "copy", &paths) && paths.reason == PATHS_DAMAGED && !paths.slots);
	uint8_t *changed = malloc(bytes);
	memcpy(changed, image, bytes);
	/* The machine's version, in the flags of ABI 7 and ABI 8. */
	changed[48] = changed[49] = 99;
	CHECK(!paths_of_cubin(changed, bytes, "copy", &paths) && paths.reason == PATHS_ARCHITECTURE);
	kernel_paths_free(&paths);
	changed[18] = 62; /* x86-64 */
	CHECK(!paths_of_cubin(changed, bytes, "copy", &paths) && paths.reason == PATHS_DAMAGED);
	kernel_paths_free(&paths);
	kernel_paths_free(NULL);
	free(changed);
}

/* Every instruction in turn replaced by one that is not known: where it is reached, the kernel must not be clear. */
static void unknown_instruction(const uint8_t *image, size_t bytes)
{
	struct elf elf;
	struct elf_section text;
	struct kernel_paths paths;
	uint8_t *changed = malloc(bytes);
	CHECK(!elf_open(image, bytes, &elf) && !elf_section_named(&elf, ".text.", "copy", &text));
	unsigned met = 0;
	for (size_t at = 0; at < text.bytes; at += 16) {
		memcpy(changed, image, bytes);
		uint8_t *insn = changed + (text.data - image) + at;
		insn[0] = 0xff, insn[1] = 0x7f; /* base 0x1ff, no guard */
		CHECK(!paths_of_cubin(changed, bytes, "copy", &paths));
		CHECK(paths.reason != PATHS_INSTRUCTION || paths.reason_offset == at);
		met += paths.reason == PATHS_INSTRUCTION;
		kernel_paths_free(&paths);
	}
	/* What is not reached is padding behind the end. */
	CHECK(met >= 8);
	free(changed);
}

int main(int argc, char **argv)
{
	size_t fatbin_bytes, cubin_bytes;
	uint8_t *fatbin = argc == 3 ? read_whole(argv[1], &fatbin_bytes) : NULL,
		*image = argc == 3 ? read_whole(argv[2], &cubin_bytes) : NULL;
	if (!fatbin || !image)
		return 1;
	lz4();
	zstd();
	fatbins(fatbin, fatbin_bytes);
	cubin(image, cubin_bytes);
	unknown_instruction(image, cubin_bytes);
	for (int reason = PATHS_CLEAR; reason <= PATHS_NO_CODE; reason++)
		CHECK(strlen(paths_reason_text(reason)) > 5);
	CHECK(!strcmp(paths_reason_text(PATHS_NO_CODE + 1), "?"));
	free(fatbin);
	free(image);
	printf("%d faults\n", faults);
	return faults != 0;
}
