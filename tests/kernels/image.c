#include "tests/kernels/image.h"

#include <stdlib.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/fatbin.h"
#include "shim/kernels/paths.h"
#include "tests/kernels/fuzz_values.h"

#define KERNELS 24
#define KERNELS_FOR_VALUES 2 /* they take some runs each */

static void analyse_for_values(const uint8_t *image, size_t bytes, const char *kernel)
{
	struct fuzz_values room;
	struct paths_values values = fuzz_values(&room, image, bytes);
	struct kernel_paths paths;
	bool better = false;
	int answer = paths_for_cubin(image, bytes, kernel, &values, &paths, &better);
	fuzz_check(answer, better, &paths);
}

static void analyse_cubin(const uint8_t *image, size_t bytes)
{
	struct elf elf;
	if (elf_open(image, bytes, &elf))
		return;
	unsigned kernels = 0;
	for (uint32_t i = 0; i < elf.symbol_count && i < 4096 && kernels < KERNELS; i++) {
		struct elf_symbol symbol;
		struct kernel_paths paths;
		if (elf_symbol_at(&elf, i, &symbol) || symbol.type != ELF_SYMBOL_FUNCTION || !symbol.section)
			continue;
		kernels++;
		if (!paths_of_cubin(image, bytes, symbol.name, &paths))
			kernel_paths_free(&paths);
		if (kernels <= KERNELS_FOR_VALUES)
			analyse_for_values(image, bytes, symbol.name);
	}
}

void analyse_image(const uint8_t *image, size_t bytes)
{
	struct fatbin fatbin;
	struct fatbin_entry entry;
	size_t container;
	analyse_cubin(image, bytes);
	for (size_t at = 0; (at = fatbin_find(image, bytes, at)) < bytes; at += container) {
		if (fatbin_open(image + at, bytes - at, &fatbin, &container))
			return;
		while (fatbin_next(&fatbin, &entry) == 1) {
			uint8_t *unpacked;
			/* Room that a mutated header asks for is not the subject. */
			if (entry.bytes > (1u << 24) || fatbin_unpack(&entry, NULL, &unpacked))
				continue;
			if (entry.kind == FATBIN_CUBIN)
				analyse_cubin(unpacked, entry.bytes);
			free(unpacked);
		}
	}
}
