/*
 * How long the analysis of a kernel takes: kernels_bench FILE.cubin... For each kernel the best of some runs, in CPU time of this thread; then the slowest, the
 * mean, and the peak of the process's memory. With -q only the last lines. With -1 FILE.cubin: once, the one kernel that FILE.kernel names (kernels_count.py).
 * With -3 FILE.cubin...: those kernels once each, the last one three times, and of these runs the time and the pages that were touched for the first time.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/paths.h"
#include "tests/kernels/file.h"

#define RUNS 20

struct totals {
	unsigned long kernels, above;
	double sum, slowest;
};

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static double best_of(const void *image, size_t bytes, const char *kernel, enum paths_reason *ret_reason)
{
	double best = 1e9;
	for (int run = 0; run < RUNS; run++) {
		struct kernel_paths paths;
		double start = now();
		if (paths_of_cubin(image, bytes, kernel, &paths))
			exit(1);
		double took = now() - start;
		best = took < best ? took : best;
		*ret_reason = paths.reason;
		kernel_paths_free(&paths);
	}
	return best;
}

static void each_kernel(const struct elf *elf, bool quiet, struct totals *totals)
{
	for (uint32_t i = 0; i < elf->symbol_count; i++) {
		struct elf_symbol symbol;
		enum paths_reason reason = PATHS_CLEAR;
		if (elf_symbol_at(elf, i, &symbol) || symbol.type != ELF_SYMBOL_FUNCTION || !symbol.entry ||
		    !symbol.section)
			continue;
		double best = best_of(elf->image, elf->bytes, symbol.name, &reason);
		totals->kernels++;
		totals->sum += best;
		totals->above += best > 1 && symbol.bytes <= 100 * 1024;
		totals->slowest = best > totals->slowest ? best : totals->slowest;
		if (!quiet)
			printf("%8.3f ms %8lu bytes of code, %s: %.80s\n", best, (unsigned long)symbol.bytes,
			       reason == PATHS_CLEAR ? "clear" : "unknown", symbol.name);
	}
}

/* Of `library_survey --keep`. */
static int once(const char *image_path)
{
	char path[4096];
	size_t bytes, name_bytes;
	struct kernel_paths paths;
	snprintf(path, sizeof path, "%.*s.kernel", (int)(strlen(image_path) - strlen(".cubin")), image_path);
	void *image = read_whole(image_path, &bytes), *text = read_whole(path, &name_bytes);
	char *name = text ? strndup(text, name_bytes) : NULL;
	bool analysed = image && name && !paths_of_cubin(image, bytes, name, &paths);
	if (analysed)
		kernel_paths_free(&paths);
	else
		fprintf(stderr, "%s: cannot be analysed\n", image_path);
	free(image);
	free(text);
	free(name);
	return !analysed;
}

static long faults(void)
{
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt;
}

/* Of `library_survey --keep`. Mapped, and touched before: what the heap does is the analysis' own. */
static int some_times(const char *image_path, unsigned runs, bool tell)
{
	char path[4096];
	size_t name_bytes;
	struct stat stat;
	snprintf(path, sizeof path, "%.*s.kernel", (int)(strlen(image_path) - strlen(".cubin")), image_path);
	char *text = read_whole(path, &name_bytes), *name = text ? strndup(text, name_bytes) : NULL;
	int fd = open(image_path, O_RDONLY | O_CLOEXEC);
	uint8_t *image = fd < 0 || fstat(fd, &stat) ? MAP_FAILED
	                                            : mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (!name || image == MAP_FAILED) {
		fprintf(stderr, "%s: cannot be analysed\n", image_path);
		exit(1);
	}
	volatile uint8_t touched = 0;
	for (off_t at = 0; at < stat.st_size; at += 64)
		touched = touched + image[at];
	for (unsigned run = 0; run < runs; run++) {
		struct kernel_paths paths;
		long before = faults();
		double start = now();
		if (paths_of_cubin(image, (size_t)stat.st_size, name, &paths))
			exit(1);
		double took = now() - start;
		if (tell)
			printf("%.3f ms, %ld pages%s", took, faults() - before, run + 1 < runs ? "; " : "\n");
		kernel_paths_free(&paths);
	}
	free(text);
	free(name);
	return 0;
}

int main(int argc, char **argv)
{
	struct totals totals = {0};
	for (int i = 2; argc > 2 && !strcmp(argv[1], "-3"); i++) {
		bool is_last = i + 1 == argc;
		if (some_times(argv[i], is_last ? 3 : 1, is_last) || is_last)
			return !is_last;
	}
	if (argc == 3 && !strcmp(argv[1], "-1") && strlen(argv[2]) > strlen(".cubin"))
		return once(argv[2]);
	bool quiet = argc > 1 && !strcmp(argv[1], "-q");
	for (int i = 1 + quiet; i < argc; i++) {
		size_t bytes;
		struct elf elf;
		void *image = read_whole(argv[i], &bytes);
		if (!image || elf_open(image, bytes, &elf)) {
			fprintf(stderr, "%s: not a cubin\n", argv[i]);
			return 1;
		}
		each_kernel(&elf, quiet, &totals);
		free(image);
	}
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	printf("%lu kernels, mean %.3f ms, slowest %.3f ms, above 1 ms with up to 100 KB of code %lu; peak memory %ld KB\n",
	       totals.kernels, totals.kernels ? totals.sum / (double)totals.kernels : 0, totals.slowest, totals.above,
	       usage.ru_maxrss);
	return !totals.kernels;
}
