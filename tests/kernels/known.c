/*
 * Compiled kernels against what is known about them by construction: known TABLE CUBIN... The table's lines are
 *   kernel: slots stored through | slots not stored through | reasons that are right | slots that must not be swapped for a twin | slots that may be
 * where "any" stands for each reason, and the last two columns may be left out. Only where the reason is clear need all stores be named: else the kernel is unknown, which is the safe side.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/paths.h"
#include "tests/kernels/file.h"

static const char *const reasons[] = {"clear", "table",       "global",       "split",   "no_base",
                                      "call",  "instruction", "architecture", "damaged", "limit"};

struct line {
	char *kernel, *stored, *not_stored, *reasons, *kept, *swapped;
	bool met;
};
static struct line lines[4096];
static size_t line_count;
static unsigned kernel_count, clear_count;

static int read_table(char *text)
{
	char *save = NULL;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (*line == '#')
			continue;
		char *colon = strchr(line, ':'), *first = colon ? strchr(colon, '|') : NULL,
		     *second = first ? strchr(first + 1, '|') : NULL;
		if (!second || line_count == sizeof lines / sizeof lines[0])
			return 1;
		*colon = *first = *second = 0;
		char *third = strchr(second + 1, '|'), *fourth = third ? strchr(third + 1, '|') : NULL;
		if (third && !fourth)
			return 1;
		if (fourth)
			*third = *fourth = 0;
		lines[line_count++] = (struct line){.kernel = line,
		                                    .stored = colon + 1,
		                                    .not_stored = first + 1,
		                                    .reasons = second + 1,
		                                    .kept = fourth ? third + 1 : "",
		                                    .swapped = fourth ? fourth + 1 : ""};
	}
	return !line_count;
}

static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

/* Takes the next number off a list; false at its end. */
static bool next_slot(const char **list, unsigned long *ret_slot)
{
	char *end;
	*ret_slot = strtoul(*list, &end, 10);
	bool taken = end != *list;
	*list = end;
	return taken;
}

/* Faults among the slots of a list, whether each is said to be stored through. */
static int check_slots(const char *where, const struct line *line, const char *list, bool stored,
                       const struct kernel_paths *paths)
{
	int faults = 0;
	for (unsigned long slot; next_slot(&list, &slot);) {
		bool said = slot < paths->slot_count && paths->slots[slot].use == SLOT_STORE;
		if (said == stored)
			continue;
		printf("%s: %s: slot %lu is %sstored through, reason %s\n", where, line->kernel, slot,
		       said ? "" : "not ", reasons[paths->reason]);
		faults++;
	}
	return faults;
}

/* As check_slots(), whether each is said to be given to others, or compared. */
static int check_swapped(const char *where, const struct line *line, const char *list, bool kept,
                         const struct kernel_paths *paths)
{
	int faults = 0;
	for (unsigned long slot; next_slot(&list, &slot);) {
		bool said = slot < paths->slot_count && paths->slots[slot].compared;
		if (said == kept)
			continue;
		printf("%s: %s: slot %lu %s be swapped\n", where, line->kernel, slot, said ? "must not" : "may");
		faults++;
	}
	return faults;
}

static int check_kernel(const char *where, const void *image, size_t bytes, const char *kernel)
{
	struct line *line = lines;
	while (line < lines + line_count && strcmp(line->kernel, kernel))
		line++;
	if (line == lines + line_count) {
		printf("%s: %s is not in the table\n", where, kernel);
		return 1;
	}
	line->met = true;
	struct kernel_paths paths;
	int err = paths_of_cubin(image, bytes, kernel, &paths), faults = 0;
	if (err) {
		printf("%s: %s: error %d\n", where, kernel, err);
		return 1;
	}
	if (!has_word(line->reasons, reasons[paths.reason]) && !has_word(line->reasons, "any")) {
		printf("%s: %s: reason %s at %#x\n", where, kernel, reasons[paths.reason], paths.reason_offset);
		faults++;
	}
	kernel_count++;
	clear_count += paths.reason == PATHS_CLEAR;
	if (paths.reason == PATHS_CLEAR)
		faults += check_slots(where, line, line->stored, true, &paths);
	faults += check_slots(where, line, line->not_stored, false, &paths);
	faults += check_swapped(where, line, line->kept, true, &paths);
	faults += check_swapped(where, line, line->swapped, false, &paths);
	kernel_paths_free(&paths);
	return faults;
}

static int check_file(const char *path)
{
	size_t bytes;
	struct elf elf;
	void *image = read_whole(path, &bytes);
	const char *where = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	if (!image || elf_open(image, bytes, &elf)) {
		printf("%s: not a cubin\n", path);
		return 1;
	}
	int faults = 0;
	for (uint32_t i = 0; i < elf.symbol_count; i++) {
		struct elf_symbol symbol;
		if (elf_symbol_at(&elf, i, &symbol) || symbol.type != ELF_SYMBOL_FUNCTION || !symbol.entry ||
		    !symbol.section)
			continue;
		faults += check_kernel(where, image, bytes, symbol.name);
	}
	free(image);
	return faults;
}

int main(int argc, char **argv)
{
	size_t bytes;
	char *text = argc > 2 ? read_whole(argv[1], &bytes) : NULL;
	if (!text || !(text = realloc(text, bytes + 1)))
		return 1;
	text[bytes] = 0;
	if (read_table(text))
		return 1;
	int faults = 0;
	for (int i = 2; i < argc; i++)
		faults += check_file(argv[i]);
	for (size_t i = 0; i < line_count; i++)
		if (!lines[i].met) {
			printf("%s is in no file\n", lines[i].kernel);
			faults++;
		}
	printf("%u kernels, %u clear, %d faults\n", kernel_count, clear_count, faults);
	free(text);
	/* To know nothing would be right about every kernel, and useless. */
	return faults || 2 * clear_count < kernel_count;
}
