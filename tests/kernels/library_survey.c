/*
 * What the analysis says about all kernels of a library: library_survey [--every=N] [--sm=80,90] [--show] [--answers] [--times=FILE] [--keep=FOLDER] FILE...
 * Walks the fatbins embedded in each file. One line per file and machine. Not part of the test suites: run by hand, its table is in shim/kernels/MEASURED.md.
 * --every=N takes each Nth kernel; --values asks about each kernel that is not clear again, with pointers where its code uses one and 1000 in all other words of its
 * parameters, then with 0 in one word after the other of those that decide something, until it is clear; --show names kernels with const pointers that are said to be stored through, unknown instructions, and the slowest.
 * --answers: a line for each kernel with a hash of all that is said of it, to compare one version of the analysis with another; --keep=FOLDER: images of those kernels with up to
 * 100 KB of code that took more than 1 ms, with their names beside them (tests/bench/kernels_count.py). --times=FILE: a line for each kernel, its machine, bytes of code, and
 * milliseconds; those that took more than 1 ms are analysed twice more, and the best of the three follows (tests/bench/survey_times.py).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/fatbin.h"
#include "shim/kernels/paths.h"
#include "shim/kernels/program.h"
#include "shim/kernels/zstd.h"

/* Of the C++ runtime, which has no header for C. */
char *__cxa_demangle(const char *name, char *buffer, size_t *bytes, int *status);

#define REASONS (PATHS_LIMIT + 1)
#define PARAMS 128

struct tally {
	unsigned long kernels, reasons[REASONS], unpacked_not, damaged;
	unsigned long pointers, const_pointers, const_stored, plain_pointers, plain_stored;
	unsigned long no_store, slowest_insns;
	double seconds, slowest;
	unsigned long small_slow, slow; /* above 1 ms with at most 100 KB of code; above 20 ms */
	char slowest_name[120];
	/* --values: asked again; clear with all words alike, with a 0 in one of them; answers, and conditions of these */
	unsigned long asked, alike, by_one, answers, guards;
	double value_seconds, slowest_value;
};

static unsigned long every = 1, seen;
static bool show, with_values, answers;
static const char *keep_folder;
static FILE *times;
static unsigned wanted[16];
static size_t wanted_count;

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Splits the last top-level parentheses of a demangled name at its commas. The number of arguments, or -1. */
static int arguments(char *name, char *args[PARAMS])
{
	size_t length = strlen(name);
	if (!length || name[length - 1] != ')')
		return -1;
	int depth = 0;
	size_t open = length;
	while (open--) {
		depth += name[open] == ')' || name[open] == '>' || name[open] == ']' || name[open] == '}';
		depth -= name[open] == '(' || name[open] == '<' || name[open] == '[' || name[open] == '{';
		if (!depth)
			break;
	}
	if (depth || open == length)
		return -1;
	name[length - 1] = 0;
	int count = 0;
	char *start = name + open + 1;
	if (!*start)
		return 0;
	for (char *at = start;; at++) {
		depth += *at == '(' || *at == '<' || *at == '[' || *at == '{';
		depth -= *at == ')' || *at == '>' || *at == ']' || *at == '}';
		if (*at && (*at != ',' || depth))
			continue;
		if (count == PARAMS)
			return -1;
		args[count++] = start;
		if (!*at)
			return count;
		*at = 0;
		start = at + 1 + (at[1] == ' ');
	}
}

enum pointer { NO_POINTER, PLAIN, CONST, TABLE };

static enum pointer pointer_of(const char *arg)
{
	char text[4096];
	snprintf(text, sizeof text, "%s", arg);
	char *restrict_at = strstr(text, " __restrict__");
	if (restrict_at && !restrict_at[13])
		*restrict_at = 0;
	size_t length = strlen(text);
	if (!length || text[length - 1] != '*')
		return NO_POINTER;
	text[--length] = 0;
	bool is_const = length > 6 && !strcmp(text + length - 5, "const");
	if (strchr(text, '*') && strrchr(text, '*') >= text + length - 8)
		return TABLE;
	return is_const ? CONST : PLAIN;
}

static int by_offset(const void *a, const void *b)
{
	const struct program_param *x = a, *y = b;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void compare(const struct elf *elf, const char *kernel, const struct kernel_paths *paths, struct tally *tally)
{
	struct program program;
	int err, status;
	char *name = __cxa_demangle(kernel, NULL, NULL, &status), *args[PARAMS];
	char *copy = name ? strdup(name) : NULL;
	int count = copy ? arguments(copy, args) : -1;
	if (count > 0 && program_build(&program, elf, kernel, &err) == PATHS_CLEAR && !err &&
	    (size_t)count == program.param_count) {
		qsort(program.params, program.param_count, sizeof *program.params, by_offset);
		for (int i = 0; i < count; i++) {
			enum pointer pointer = pointer_of(args[i]);
			size_t slot = program.params[i].offset / 8;
			if (pointer == NO_POINTER || pointer == TABLE || program.params[i].bytes != 8 ||
			    slot >= paths->slot_count)
				continue;
			bool stored = paths->slots[slot].use == SLOT_STORE;
			tally->pointers++;
			tally->const_pointers += pointer == CONST;
			tally->const_stored += pointer == CONST && stored;
			tally->plain_pointers += pointer == PLAIN;
			tally->plain_stored += pointer == PLAIN && stored;
			if (show && pointer == CONST && stored)
				printf("  const %d stored (reason %d): %.160s\n", i, paths->reason, name);
		}
	}
	if (count > 0)
		program_free(&program);
	free(copy);
	free(name);
}

#define VALUE_BYTES 4096
#define NUMBER 1000u

static bool clear_for(const struct elf *elf, const char *kernel, uint8_t *block, size_t bytes, uint8_t *used,
                      struct tally *tally)
{
	uint8_t known[VALUE_BYTES];
	struct paths_values values = {block, known, used, bytes, NULL};
	struct kernel_paths paths = {0};
	bool better = false;
	double start = now();
	memset(known, VALUE_EXACT, sizeof known);
	if (paths_for_cubin(elf->image, elf->bytes, kernel, &values, &paths, &better))
		return false;
	double seconds = now() - start;
	bool clear = better && paths.reason == PATHS_CLEAR;
	tally->value_seconds += seconds;
	tally->answers++;
	tally->slowest_value = seconds > tally->slowest_value ? seconds : tally->slowest_value;
	for (size_t i = 0; clear && i < bytes; i += 4)
		tally->guards += used[i] || used[i + 1] || used[i + 2] || used[i + 3];
	kernel_paths_free(&paths);
	return clear;
}

static void survey_values(const struct elf *elf, const char *kernel, const struct kernel_paths *paths, struct tally *tally)
{
	uint8_t block[VALUE_BYTES], used[VALUE_BYTES], decides[VALUE_BYTES];
	size_t bytes = paths->slot_count * 8;
	const uint32_t number = NUMBER, none = 0;
	if (bytes > sizeof block)
		return;
	tally->asked++;
	for (size_t i = 0; i < bytes; i += 4)
		memcpy(block + i, &number, sizeof number);
	for (uint64_t i = 0; i < paths->slot_count; i++) {
		uint64_t pointer = 0x7f2000000000u + (i << 24);
		if (paths->slots[i].use != SLOT_NONE)
			memcpy(block + 8 * i, &pointer, sizeof pointer);
	}
	if (clear_for(elf, kernel, block, bytes, decides, tally)) {
		tally->alike++;
		return;
	}
	for (size_t i = 0; i < bytes; i += 4) {
		if (!(decides[i] || decides[i + 1] || decides[i + 2] || decides[i + 3]) ||
		    memcmp(block + i, &number, 4) != 0)
			continue;
		memcpy(block + i, &none, sizeof none);
		bool clear = clear_for(elf, kernel, block, bytes, used, tally);
		memcpy(block + i, &number, sizeof number);
		tally->by_one += clear;
		if (clear)
			return;
	}
}

static uint64_t hashed(uint64_t hash, const void *data, size_t bytes)
{
	for (const uint8_t *at = data; bytes--; at++)
		hash = (hash ^ *at) * 0x100000001b3u;
	return hash;
}

static void print_answer(const struct elf *elf, const char *kernel, const struct kernel_paths *paths)
{
	size_t kept = paths->store_count < PATHS_STORES ? paths->store_count : PATHS_STORES;
	uint64_t hash = hashed(0xcbf29ce484222325u, paths->slots, paths->slot_count * sizeof *paths->slots);
	for (size_t i = 0; i < kept; i++) {
		const struct store_site *store = &paths->stores[i];
		hash = hashed(hash, &store->offset, sizeof store->offset);
		hash = hashed(hash, &store->base, sizeof store->base);
		hash = hashed(hash, store->kind, strlen(store->kind));
		hash = hashed(hash, &store->line, sizeof store->line);
	}
	printf("  answer %lu sm_%u: reason %d at %#x, %zu slots, %zu stores, %016lx: %.100s\n", seen, elf->sm,
	       paths->reason, paths->reason_offset, paths->slot_count, paths->store_count, hash, kernel);
}

static void write_file(const char *ending, const void *data, size_t bytes)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%lu.%s", keep_folder, seen, ending);
	FILE *file = fopen(path, "w");
	if (!file || fwrite(data, 1, bytes, file) != bytes)
		perror(path);
	if (file)
		fclose(file);
}

/* What a busy machine adds to one run it mostly does not add to another. */
static void tell_time(const struct elf *elf, const struct elf_symbol *symbol, double first)
{
	double best = first;
	for (unsigned i = 0; i < 2 && first > 1e-3; i++) {
		struct kernel_paths paths;
		double start = now();
		if (paths_of_cubin(elf->image, elf->bytes, symbol->name, &paths))
			break;
		double seconds = now() - start;
		best = seconds < best ? seconds : best;
		kernel_paths_free(&paths);
	}
	fprintf(times, "%u %lu %.4f %.4f\n", elf->sm, symbol->bytes, 1e3 * first, 1e3 * best);
}

static void survey_kernel(const struct elf *elf, const struct elf_symbol *symbol, struct tally *tally)
{
	struct kernel_paths paths;
	double start = now();
	if (paths_of_cubin(elf->image, elf->bytes, symbol->name, &paths)) {
		tally->damaged++;
		return;
	}
	double seconds = now() - start;
	tally->kernels++;
	tally->seconds += seconds;
	tally->small_slow += seconds > 1e-3 && symbol->bytes <= 100 * 1024;
	tally->slow += seconds > 20e-3;
	if (times)
		tell_time(elf, symbol, seconds);
	if (answers)
		print_answer(elf, symbol->name, &paths);
	if (keep_folder && seconds > 1e-3 && symbol->bytes <= 100 * 1024) {
		write_file("cubin", elf->image, elf->bytes);
		write_file("kernel", symbol->name, strlen(symbol->name));
	}
	if (show && seconds > 1e-3)
		printf("  %.2f ms, %lu instructions: %s\n", 1e3 * seconds, symbol->bytes / SASS_BYTES, symbol->name);
	tally->reasons[paths.reason]++;
	tally->no_store += paths.reason == PATHS_CLEAR && !paths.store_count;
	if (seconds > tally->slowest) {
		tally->slowest = seconds;
		tally->slowest_insns = symbol->bytes / SASS_BYTES;
		snprintf(tally->slowest_name, sizeof tally->slowest_name, "%s", symbol->name);
	}
	if (show && paths.reason >= PATHS_SPLIT) {
		const uint8_t *code = NULL;
		struct elf_section text;
		if (!elf_section_at(elf, symbol->section, &text) && symbol->value + paths.reason_offset + 16 <= text.bytes)
			code = text.data + symbol->value + paths.reason_offset;
		printf("  reason %d sm_%u at %#x op %03x+%u %016lx %016lx: %.100s\n", paths.reason, elf->sm,
		       paths.reason_offset, code ? elf_u16(code) & 0xfff : 0, code ? code[11] >> 3 & 1 : 0,
		       code ? elf_u64(code) : 0, code ? elf_u64(code + 8) : 0, symbol->name);
	}
	if (with_values && paths.reason != PATHS_CLEAR && paths.reason <= PATHS_CALL)
		survey_values(elf, symbol->name, &paths, tally);
	if (paths.reason != PATHS_INSTRUCTION && paths.reason < PATHS_ARCHITECTURE)
		compare(elf, symbol->name, &paths, tally);
	kernel_paths_free(&paths);
}

static struct tally *tally_of(unsigned sm)
{
	static struct tally tallies[16];
	for (size_t i = 0; i < wanted_count; i++)
		if (wanted[i] == sm)
			return &tallies[i];
	return NULL;
}

static void survey_entry(const struct fatbin_entry *entry)
{
	struct tally *tally = tally_of(entry->sm);
	uint8_t *image;
	struct elf elf;
	if (!tally || entry->kind != FATBIN_CUBIN)
		return;
	if (fatbin_unpack(entry, zstd_decoder(), &image)) {
		tally->unpacked_not++;
		return;
	}
	if (elf_open(image, entry->bytes, &elf)) {
		tally->damaged++;
		free(image);
		return;
	}
	for (uint32_t i = 0; i < elf.symbol_count; i++) {
		struct elf_symbol symbol;
		if (!elf_symbol_at(&elf, i, &symbol) && symbol.type == ELF_SYMBOL_FUNCTION && symbol.entry &&
		    symbol.section && seen++ % every == 0)
			survey_kernel(&elf, &symbol, tally);
	}
	free(image);
}

static void print_tally(const char *file, unsigned sm, struct tally *tally)
{
	if (!tally->kernels && !tally->unpacked_not)
		return;
	printf("%s sm_%u: %lu kernels, clear %.1f %% (%lu without any store), table %lu, global %lu, split %lu, no base %lu, call %lu, "
	       "instruction %lu, damaged %lu, limit %lu; not unpacked %lu; const pointers stored %lu of %lu, others %lu of %lu; "
	       "%.2f s per 1000, above 1 ms with up to 100 KB %lu, above 20 ms %lu, slowest %.1f ms (%lu instructions: %s)\n",
	       strrchr(file, '/') ? strrchr(file, '/') + 1 : file, sm, tally->kernels,
	       tally->kernels ? 100.0 * (double)tally->reasons[PATHS_CLEAR] / (double)tally->kernels : 0,
	       tally->no_store, tally->reasons[PATHS_TABLE], tally->reasons[PATHS_GLOBAL], tally->reasons[PATHS_SPLIT],
	       tally->reasons[PATHS_NO_BASE], tally->reasons[PATHS_CALL], tally->reasons[PATHS_INSTRUCTION],
	       tally->reasons[PATHS_DAMAGED] + tally->damaged, tally->reasons[PATHS_LIMIT], tally->unpacked_not,
	       tally->const_stored, tally->const_pointers, tally->plain_stored, tally->plain_pointers,
	       tally->kernels ? 1000 * tally->seconds / (double)tally->kernels : 0, tally->small_slow, tally->slow,
	       1000 * tally->slowest, tally->slowest_insns, show ? tally->slowest_name : "");
	if (with_values)
		printf("  for values: %lu asked again, %lu clear with all words alike, %lu with one that is 0; %.1f conditions; %.1f ms an answer, slowest %.1f ms\n",
		       tally->asked, tally->alike, tally->by_one,
		       (double)tally->guards / (double)(tally->alike + tally->by_one + !(tally->alike + tally->by_one)),
		       1000 * tally->value_seconds / (double)(tally->answers + !tally->answers),
		       1000 * tally->slowest_value);
	*tally = (struct tally){0};
}

static int survey_file(const char *path)
{
	struct stat stat;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat)) {
		perror(path);
		return 1;
	}
	size_t bytes = (size_t)stat.st_size;
	const uint8_t *file = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED) {
		perror(path);
		return 1;
	}
	for (size_t at = 0; (at = fatbin_find(file, bytes, at)) < bytes;) {
		struct fatbin fatbin;
		struct fatbin_entry entry;
		size_t container;
		if (fatbin_open(file + at, bytes - at, &fatbin, &container))
			break;
		while (fatbin_next(&fatbin, &entry) == 1)
			survey_entry(&entry);
		at += container;
	}
	for (size_t i = 0; i < wanted_count; i++)
		print_tally(path, wanted[i], tally_of(wanted[i]));
	fflush(stdout);
	munmap((void *)(uintptr_t)file, bytes);
	return 0;
}

static void want(const char *list)
{
	char *end;
	wanted_count = 0;
	for (; *list && wanted_count < 16; list = *end ? end + 1 : end)
		wanted[wanted_count++] = (unsigned)strtoul(list, &end, 10);
}

int main(int argc, char **argv)
{
	int status = 0;
	want("80,90,100");
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--times=", 8) && !(times = fopen(argv[i] + 8, "w"))) {
			perror(argv[i] + 8);
			return 1;
		}
		if (!strncmp(argv[i], "--every=", 8))
			every = strtoul(argv[i] + 8, NULL, 10) ?: 1;
		else if (!strncmp(argv[i], "--sm=", 5))
			want(argv[i] + 5);
		else if (!strcmp(argv[i], "--values"))
			with_values = true;
		else if (!strcmp(argv[i], "--answers"))
			answers = true;
		else if (!strncmp(argv[i], "--keep=", 7))
			keep_folder = argv[i] + 7;
		else if (!strcmp(argv[i], "--show"))
			show = true;
		else if (strncmp(argv[i], "--times=", 8) != 0)
			status |= survey_file(argv[i]);
	}
	return times && fclose(times) ? 1 : status;
}
