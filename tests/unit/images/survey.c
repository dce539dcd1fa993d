/*
 * By hand: every seventh kernel of a library's fatbins, asked as a launch on that machine would. Is it found, and how long does the first question take?
 *
 *     survey LIBRARY MACHINE (90 for sm_90)
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/fatbin.h"
#include "shim/kernels/image.h"
#include "shim/kernels/zstd.h"
#include "tests/unit/images/check.h"

#define EACH 7

static unsigned machine;
static size_t containers, asked, reasons[PATHS_NO_CODE + 1];
static double slowest, total;

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void ask(const struct image *image, const char *kernel)
{
	struct kernel_paths paths;
	double start = now();
	EXPECT(!image_paths(image, kernel, &machine, 1, &paths));
	double took = now() - start;
	total += took;
	slowest = took > slowest ? took : slowest;
	reasons[paths.reason]++;
	asked++;
	kernel_paths_free(&paths);
}

static void ask_entry(const struct image *image, const struct fatbin_entry *entry)
{
	uint8_t *code;
	struct elf elf;
	size_t kernels = 0;
	EXPECT(!fatbin_unpack(entry, zstd_decoder(), &code) && !elf_open(code, entry->bytes, &elf));
	for (uint32_t i = 0; i < elf.symbol_count; i++) {
		struct elf_symbol symbol;
		if (!elf_symbol_at(&elf, i, &symbol) && symbol.type == ELF_SYMBOL_FUNCTION && symbol.entry &&
		    symbol.section && kernels++ % EACH == 0)
			ask(image, symbol.name);
	}
	free(code);
}

int main(int argc, char **argv)
{
	struct stat info;
	EXPECT(argc == 3);
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	EXPECT(fd >= 0 && !fstat(fd, &info));
	machine = (unsigned)strtoul(argv[2], NULL, 10);
	size_t bytes = (size_t)info.st_size, size;
	const uint8_t *file = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	EXPECT(file != MAP_FAILED);
	for (size_t at = 0; (at = fatbin_find(file, bytes, at)) < bytes; at += size) {
		struct fatbin fatbin;
		struct fatbin_entry entry;
		EXPECT(!fatbin_open(file + at, bytes - at, &fatbin, &size));
		struct image *image = image_keep(file + at);
		EXPECT(image && image->length == size);
		containers++;
		while (fatbin_next(&fatbin, &entry) == 1)
			if (entry.kind == FATBIN_CUBIN && entry.sm == machine)
				ask_entry(image, &entry);
		image_put(image);
	}
	printf("%zu containers, %zu kernels asked; slowest %.1f ms, mean %.2f ms\n", containers, asked, slowest,
	       asked ? total / (double)asked : 0);
	for (size_t i = 0; i <= PATHS_NO_CODE; i++)
		if (reasons[i])
			printf("%8zu  %s\n", reasons[i], paths_reason_text((enum paths_reason)i));
	return 0;
}
