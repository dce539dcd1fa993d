/*
 * Answers for given values, on disk: cache_values CUBIN. Each comes back for values that are alike in what it hangs on,
 * and for no others; damage, also such whose sum is right, is no answer or a harmless one; a file has an end.
 */
#include "shim/kernels/cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/kernels/cache_folder.h"
#include "tests/kernels/file.h"

#define BYTES 32
#define SUM_AT 56 /* in a file */

static int faults;
static char folder[64] = "/tmp/cuconst-values.XXXXXX";
static const struct cache_hash image = {1, 2, 3};

#define CHECK(condition)                                                                                               \
	((condition) ? (void)0 : (void)(faults++, printf("%s:%d: %s\n", __FILE__, __LINE__, #condition)))

/* A block, what is known of it, and what an answer hung on. */
struct block {
	uint8_t bytes[BYTES], known[BYTES], used[BYTES];
};

static struct block all_known(void)
{
	struct block block = {{0}, {0}, {0}};
	memset(block.known, VALUE_EXACT, BYTES);
	return block;
}

static struct paths_values values_of(struct block *block)
{
	return (struct paths_values){block->bytes, block->known, block->used, BYTES, NULL};
}

static void put(const char *kernel, struct block *block, const struct kernel_paths *paths)
{
	struct paths_values values = values_of(block);
	cache_put_values(&image, kernel, &values, paths);
}

enum answer { NONE, NO_BETTER, BETTER };

static enum answer get(const char *kernel, struct block *block)
{
	struct paths_values values = values_of(block);
	struct kernel_paths paths = {0};
	bool better = false;
	if (!cache_get_values(&image, kernel, &values, &paths, &better))
		return NONE;
	CHECK(better == (paths.slot_count != 0));
	kernel_paths_free(&paths);
	return better ? BETTER : NO_BETTER;
}

/* Two bytes of the word at 8, and that the one at 12 is small. */
static void alike(const struct kernel_paths *paths)
{
	struct block block = all_known(), asked;
	block.bytes[8] = 7;
	block.used[8] = block.used[9] = VALUE_EXACT;
	memset(block.used + 12, VALUE_SMALL, 4);
	CHECK(get("alike", &block) == NONE);
	put("alike", &block, paths);
	for (unsigned i = 0; i < BYTES; i++) {
		asked = block;
		memset(asked.used, 0xaa, BYTES);
		asked.bytes[i] ^= 0x0f;
		bool matters = i == 8 || i == 9 || i == 14 || i == 15; /* 15 and 0x0f00 are small */
		CHECK(get("alike", &asked) == (matters ? NONE : BETTER));
		CHECK(matters || !memcmp(asked.used, block.used, BYTES));
		asked = block;
		asked.known[i] = VALUE_UNKNOWN;
		CHECK(get("alike", &asked) == (i == 8 || i == 9 || i / 4 == 3 ? NONE : BETTER));
	}
	asked = block;
	asked.bytes[13] = 0x10;
	CHECK(get("alike", &asked) == NONE);
	struct paths_values cut = values_of(&asked);
	struct kernel_paths none;
	bool better;
	asked = block;
	for (cut.count = 0; cut.count < 16; cut.count++)
		CHECK(!cache_get_values(&image, "alike", &cut, &none, &better));
	CHECK(get("alik", &block) == NONE && get("alikf", &block) == NONE);
}

/* Nothing better: for these values, and for any. */
static void no_better(const struct kernel_paths *paths)
{
	struct block block = all_known(), other = all_known();
	block.used[4] = VALUE_EXACT;
	put("no_better", &block, NULL);
	other.bytes[4] = 1;
	CHECK(get("no_better", &block) == NO_BETTER && get("no_better", &other) == NONE);
	other.used[4] = VALUE_EXACT;
	put("no_better", &other, paths);
	CHECK(get("no_better", &block) == NO_BETTER && get("no_better", &other) == BETTER);
	struct block any = all_known();
	put("any", &any, NULL);
	CHECK(get("any", &block) == NO_BETTER && get("any", &other) == NO_BETTER);
}

/* What is known for any values has a file of its own. */
static void apart(const struct kernel_paths *paths)
{
	struct block block = all_known();
	struct kernel_paths got;
	put("apart", &block, NULL);
	CHECK(!cache_get(&image, "apart", &got));
	cache_put(&image, "apart", paths);
	bool there = cache_get(&image, "apart", &got);
	CHECK(there && got.store_count == paths->store_count && get("apart", &block) == NO_BETTER);
	if (there)
		kernel_paths_free(&got);
}

/* The newest stay, as far as a file goes. */
static void bounded(const struct kernel_paths *paths)
{
	struct kernel_paths large = *paths;
	large.slot_count = 4000;
	large.slots = calloc(large.slot_count, sizeof *large.slots);
	for (unsigned of_large = 0; of_large < 2; of_large++) {
		const char *kernel = of_large ? "large" : "many";
		unsigned first = 100, last = 0;
		for (unsigned i = 0; i < 100; i++) {
			struct block block = all_known();
			block.bytes[0] = (uint8_t)i;
			block.used[0] = VALUE_EXACT;
			put(kernel, &block, of_large ? &large : paths);
			CHECK(get(kernel, &block) == BETTER);
		}
		for (unsigned i = 0; i < 100; i++) {
			struct block block = all_known();
			block.bytes[0] = (uint8_t)i;
			if (get(kernel, &block) != BETTER)
				continue;
			first = i < first ? i : first;
			last = i;
		}
		CHECK(last == 99 && first == (of_large ? 97 : 76));
	}
	/* More conditions than an answer may hang on, and more than fits. */
	struct block block = all_known();
	large.slot_count = CACHE_FILE_BYTES;
	large.slots = realloc(large.slots, large.slot_count * sizeof *large.slots);
	memset(large.slots, 0, large.slot_count * sizeof *large.slots);
	put("too_large", &block, &large);
	CHECK(get("too_large", &block) == NONE);
	free(large.slots);
	static uint8_t many[4096], known[4096], used[4096];
	struct paths_values values = {many, known, used, sizeof many, NULL};
	memset(known, VALUE_EXACT, sizeof known);
	memset(used, VALUE_EXACT, sizeof used);
	struct kernel_paths got;
	bool better;
	cache_put_values(&image, "too_many", &values, NULL);
	CHECK(!cache_get_values(&image, "too_many", &values, &got, &better));
}

static void clear(void)
{
	for (const char *path; *(path = only_file_in(folder));)
		if (unlink(path))
			return;
}

static void write_whole(const char *path, const uint8_t *bytes, size_t count)
{
	int fd = open(path, O_WRONLY | O_TRUNC);
	CHECK(write(fd, bytes, count) == (ssize_t)count);
	close(fd);
}

/*
 * Each byte changed, each cut. With a sum that fits, what the block says may be an answer, but nothing is read that is
 * not there.
 */
static void damaged(const struct kernel_paths *paths)
{
	struct block block = all_known(), other = all_known();
	size_t bytes;
	clear();
	block.used[4] = other.used[4] = VALUE_EXACT;
	other.bytes[4] = 1;
	put("damaged", &other, NULL);
	put("damaged", &block, paths);
	const char *path = only_file_in(folder);
	uint8_t *good = read_whole(path, &bytes);
	for (size_t at = 0; good && at < 4 * bytes; at++) {
		bool right_sum = at >= 2 * bytes;
		size_t place = at % bytes, count = at / bytes % 2 ? place : bytes;
		uint8_t *changed = malloc(bytes);
		memcpy(changed, good, bytes);
		if (count == bytes)
			changed[place] ^= right_sum ? 0xff : (uint8_t)(1 << at % 8);
		if (right_sum && count >= SUM_AT + 8) {
			uint32_t length = (uint32_t)count;
			memcpy(changed + 12, &length, sizeof length);
			memset(changed + SUM_AT, 0, 8);
			uint64_t sum = cache_hash(changed, count).low;
			memcpy(changed + SUM_AT, &sum, 8);
		}
		write_whole(path, changed, count);
		enum answer first = get("damaged", &block), second = get("damaged", &other);
		CHECK(right_sum || (first == NONE && second == NONE));
		if (right_sum && count == bytes && (place < 12 || (place > 16 && place < 24)))
			CHECK(first == NONE && second == NONE);
		free(changed);
	}
	CHECK(good && bytes > SUM_AT + 8);
	free(good);
}

int main(int argc, char **argv)
{
	size_t bytes;
	struct kernel_paths paths;
	uint8_t *cubin = argc == 2 ? read_whole(argv[1], &bytes) : NULL;
	if (!cubin || !mkdtemp(folder) || paths_of_cubin(cubin, bytes, "copy", &paths))
		return 1;
	struct block block = all_known();
	put("before", &block, NULL);
	CHECK(get("before", &block) == NONE && cache_use(folder));
	alike(&paths);
	no_better(&paths);
	apart(&paths);
	bounded(&paths);
	damaged(&paths);
	clear();
	CHECK(!rmdir(folder));
	kernel_paths_free(&paths);
	free(cubin);
	printf("%d faults\n", faults);
	return faults != 0;
}
