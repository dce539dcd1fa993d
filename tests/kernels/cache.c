/*
 * Results on disk: cache CUBIN PTX. What was put comes back; what is damaged, of another version, another user's, or no plain file does not; writers at once,
 * a full disk and a read-only folder do no harm; the folder does not grow without end.
 */
#include "shim/kernels/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/kernels/line_info.h"
#include "tests/kernels/cache_folder.h"
#include "tests/kernels/file.h"

static int faults;
static char base[64] = "/tmp/cuconst-cache.XXXXXX", folder[128];

#define CHECK(condition)                                                                                               \
	((condition) ? (void)0 : (void)(faults++, printf("%s:%d: %s\n", __FILE__, __LINE__, #condition)))

static bool same(const struct kernel_paths *a, const struct kernel_paths *b)
{
	if (a->reason != b->reason || a->reason_offset != b->reason_offset || a->slot_count != b->slot_count ||
	    a->store_count != b->store_count || memcmp(a->slots, b->slots, a->slot_count * sizeof *a->slots))
		return false;
	for (size_t i = 0; i < a->store_count && i < PATHS_STORES; i++)
		if (a->stores[i].offset != b->stores[i].offset || a->stores[i].base != b->stores[i].base ||
		    a->stores[i].kind != b->stores[i].kind || /* static text: the very same */
		    a->stores[i].file != b->stores[i].file || a->stores[i].line != b->stores[i].line)
			return false;
	return true;
}

static bool known(const struct cache_hash *hash, const char *kernel)
{
	struct kernel_paths paths;
	if (!cache_get(hash, kernel, &paths))
		return false;
	kernel_paths_free(&paths);
	return true;
}

static size_t count_files(void)
{
	size_t count = 0;
	DIR *dir = opendir(folder);
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		count += *entry->d_name != '.';
	closedir(dir);
	return count;
}

static void clear(void)
{
	for (const char *path; *(path = only_file_in(folder));)
		if (unlink(path) && rmdir(path))
			return;
}

static void comes_back(const struct cache_hash *hash, const struct kernel_paths *paths)
{
	struct kernel_paths got;
	struct cache_hash other = *hash;
	CHECK(!known(hash, "copy"));
	cache_put(hash, "copy", paths);
	CHECK(cache_get(hash, "copy", &got) && same(paths, &got));
	kernel_paths_free(&got);
	other.low ^= 1;
	CHECK(!known(&other, "copy") && !known(hash, "copz") && !known(hash, ""));
	CHECK(count_files() == 1);
}

/* Each byte changed, each cut: never taken, except for what is not of the entry. */
static void damaged(const struct cache_hash *hash, const struct kernel_paths *paths)
{
	size_t bytes;
	const char *path = only_file_in(folder);
	uint8_t *good = read_whole(path, &bytes);
	unsigned taken = 0;
	CHECK(good && bytes > 64);
	for (size_t at = 0; at < 2 * bytes; at++) {
		uint8_t changed = at < bytes ? good[at] ^ (uint8_t)(1 << at % 8) : 0;
		int fd = open(path, O_WRONLY | O_TRUNC);
		bool whole = write(fd, good, at < bytes ? bytes : at - bytes) >= 0;
		CHECK(whole && (at >= bytes || pwrite(fd, &changed, 1, (off_t)at) == 1));
		close(fd);
		taken += known(hash, "copy");
	}
	CHECK(!taken);
	int fd = open(path, O_WRONLY | O_TRUNC);
	CHECK(write(fd, good, bytes) == (ssize_t)bytes && write(fd, "x", 1) == 1);
	close(fd);
	CHECK(!known(hash, "copy"));
	cache_put(hash, "copy", paths);
	CHECK(known(hash, "copy"));
	free(good);
}

static void others(const struct cache_hash *hash, const struct kernel_paths *paths)
{
	char path[512], away[600];
	snprintf(path, sizeof path, "%s", only_file_in(folder));
	snprintf(away, sizeof away, "%s/away", base);
	CHECK(!chmod(path, 0666) && !known(hash, "copy") && !chmod(path, 0600) && known(hash, "copy"));
	if (!geteuid()) {
		CHECK(!chown(path, 1234, 1234) && !known(hash, "copy"));
		CHECK(!chown(path, 0, 0) && known(hash, "copy"));
	}
	/* A link, a pipe, a folder in the place of the file. */
	CHECK(!rename(path, away) && !symlink(away, path) && !known(hash, "copy"));
	CHECK(!unlink(path) && !mkfifo(path, 0600) && !known(hash, "copy"));
	CHECK(!unlink(path) && !mkdir(path, 0700) && !known(hash, "copy"));
	cache_put(hash, "copy", paths);
	CHECK(!known(hash, "copy") && !rmdir(path) && !unlink(away));
	/* A folder that others may write, or that is a link. */
	cache_put(hash, "copy", paths);
	CHECK(known(hash, "copy") && !chmod(folder, 0777) && !known(hash, "copy") && !chmod(folder, 0700));
	CHECK(!rename(folder, away) && !symlink(away, folder) && !known(hash, "copy"));
	CHECK(!unlink(folder) && !rename(away, folder) && known(hash, "copy"));
	CHECK(!cache_use("relative") && !known(hash, "copy") && !cache_use("") && cache_use("/proc/no/such"));
	cache_put(hash, "copy", paths);
	CHECK(!known(hash, "copy") && cache_use(folder) && known(hash, "copy"));
}

static void no_room(const struct cache_hash *hash, const struct kernel_paths *paths)
{
	struct rlimit old, none;
	getrlimit(RLIMIT_FSIZE, &old);
	/* SIGXFSZ is not ignored: its default is what a program has, and ends it. */
	for (rlim_t limit = 0; limit <= 16; limit += 16) {
		none = (struct rlimit){limit, old.rlim_max};
		setrlimit(RLIMIT_FSIZE, &none);
		cache_put(hash, "copy", paths);
		setrlimit(RLIMIT_FSIZE, &old);
		CHECK(!known(hash, "copy") && !count_files());
	}
	/* What somebody left half-written blocks its place, but not for ever. */
	cache_put(hash, "copy", paths);
	char begun[600];
	snprintf(begun, sizeof begun, "%s.new", only_file_in(folder));
	clear();
	close(open(begun, O_CREAT | O_WRONLY, 0600));
	cache_put(hash, "copy", paths);
	CHECK(!known(hash, "copy"));
	struct timespec long_ago[2] = {{1, 0}, {1, 0}};
	CHECK(!utimensat(AT_FDCWD, begun, long_ago, 0));
	cache_put(hash, "copy", paths);
	cache_put(hash, "copy", paths);
	CHECK(known(hash, "copy") && count_files() == 1);
	/* Nobody may write here (a superuser may). */
	clear();
	CHECK(!chmod(folder, 0500));
	cache_put(hash, "copy", paths);
	CHECK(!geteuid() || !count_files());
	CHECK(!chmod(folder, 0700));
	clear();
}

struct cancelled {
	const struct cache_hash *hash;
	const struct kernel_paths *paths;
	bool came_back;
};

static void *put_and_get(void *data)
{
	struct cancelled *scene = data;
	pthread_cancel(pthread_self());
	cache_put(scene->hash, "copy", scene->paths);
	scene->came_back = known(scene->hash, "copy");
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* sanitizers do not bear an end in the middle */
	return data;
}

/* A thread that somebody cancels makes its launch first: no descriptor stays open, no file half-written. */
static void cancelled(const struct cache_hash *hash, const struct kernel_paths *paths)
{
	struct cancelled scene = {hash, paths, false};
	pthread_t thread;
	void *result = NULL;
	CHECK(!pthread_create(&thread, NULL, put_and_get, &scene) && !pthread_join(thread, &result));
	CHECK(scene.came_back && result == &scene && count_files() == 1);
	clear();
}

/* Processes that write and read the same few places: each reads what was written there, or nothing. */
static void at_once(const struct kernel_paths *paths)
{
	for (int process = 0; process < 4; process++) {
		if (fork())
			continue;
		int wrong = 0, met = 0;
		for (unsigned round = 0; round < 600; round++) {
			struct cache_hash hash = {round % 3, 7, 1};
			struct kernel_paths mine = *paths, got;
			mine.reason_offset = round % 3;
			cache_put(&hash, "busy", &mine);
			if (!cache_get(&hash, "busy", &got))
				continue;
			met++;
			wrong += !same(&mine, &got);
			kernel_paths_free(&got);
		}
		_exit(wrong || met < 50);
	}
	for (int process = 0; process < 4; process++) {
		int status = 1;
		wait(&status);
		CHECK(!status);
	}
	CHECK(count_files() <= 3);
	clear();
}

static void bounded(const struct kernel_paths *paths)
{
	unsigned kept = 0;
	for (uint64_t i = 0; i < 2000; i++) {
		struct cache_hash hash = {i, i * i, 1};
		cache_put(&hash, "many", paths);
		kept += known(&hash, "many");
	}
	CHECK(kept == 2000 && count_files() <= CACHE_PLACES && count_files() > CACHE_PLACES / 2);
	/* Too much for one file is not kept. */
	struct kernel_paths large = *paths;
	struct cache_hash hash = {1, 2, 3};
	large.slot_count = CACHE_FILE_BYTES + 1;
	large.slots = calloc(large.slot_count, sizeof *large.slots);
	cache_put(&hash, "large", &large);
	CHECK(!known(&hash, "large"));
	free(large.slots);
	clear();
}

static void hashes(void)
{
	uint8_t bytes[300] = {0};
	struct cache_hash before = cache_hash(bytes, sizeof bytes), none = cache_hash(NULL, 0);
	for (size_t i = 0; i < sizeof bytes; i++) {
		struct cache_hash cut = cache_hash(bytes, i);
		bytes[i] = 1;
		struct cache_hash after = cache_hash(bytes, sizeof bytes);
		CHECK(after.low != before.low && after.high != before.high && cut.bytes != before.bytes);
		CHECK(cut.low != before.low && (!i || cut.low != none.low));
		bytes[i] = 0;
	}
}

static void measure(const struct cache_hash *hash, const void *image, size_t bytes, const struct kernel_paths *paths)
{
	struct timespec start, middle, end;
	cache_put(hash, "copy", paths);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	for (int i = 0; i < 200; i++)
		CHECK(known(hash, "copy"));
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &middle);
	for (int i = 0; i < 200; i++) {
		struct kernel_paths again;
		CHECK(!paths_of_cubin(image, bytes, "copy", &again));
		kernel_paths_free(&again);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	printf("%.1f us to read, %.1f us to work out a kernel of few instructions\n",
	       ((double)(middle.tv_sec - start.tv_sec) * 1e9 + (double)(middle.tv_nsec - start.tv_nsec)) / 2e5,
	       ((double)(end.tv_sec - middle.tv_sec) * 1e9 + (double)(end.tv_nsec - middle.tv_nsec)) / 2e5);
}

int main(int argc, char **argv)
{
	size_t bytes, text_bytes;
	uint8_t *image = argc == 3 ? read_whole(argv[1], &bytes) : NULL;
	char *text = argc == 3 ? read_whole(argv[2], &text_bytes) : NULL;
	struct kernel_paths paths, of_text;
	if (!image || !text || !mkdtemp(base) || paths_of_cubin(image, bytes, "copy", &paths) ||
	    paths_of_ptx(text, text_bytes, "byte_index", &of_text))
		return 1;
	struct cache_hash hash = cache_hash(image, bytes), text_hash = cache_hash(text, text_bytes);
	/* Before a folder is named nothing happens. */
	cache_put(&hash, "copy", &paths);
	CHECK(!known(&hash, "copy"));
	/* Where it is by default. */
	setenv("XDG_CACHE_HOME", base, 1);
	snprintf(folder, sizeof folder, "%s/cuconst", base);
	CHECK(cache_use(NULL) && access(folder, F_OK));
	cache_put(&hash, "copy", &paths);
	CHECK(!access(folder, F_OK));
	setenv("XDG_CACHE_HOME", "not/absolute", 1);
	setenv("HOME", base, 1);
	CHECK(cache_use(NULL));
	snprintf(folder, sizeof folder, "%s/.cache/cuconst", base);
	hashes();
	comes_back(&hash, &paths);
	clear();
	/* With source lines. */
	paths.stores[0].file = line_file((struct line_text){"dir", 3}, (struct line_text){"some.cu", 7});
	paths.stores[0].line = 17;
	CHECK(paths.stores[0].file);
	comes_back(&hash, &paths);
	clear();
	cache_put(&text_hash, "byte_index", &of_text);
	CHECK(known(&text_hash, "byte_index"));
	clear();
	comes_back(&hash, &paths);
	damaged(&hash, &paths);
	others(&hash, &paths);
	clear();
	no_room(&hash, &paths);
	cancelled(&hash, &paths);
	at_once(&paths);
	bounded(&paths);
	measure(&hash, image, bytes, &paths);
	clear();
	kernel_paths_free(&paths);
	kernel_paths_free(&of_text);
	free(image);
	free(text);
	char command[128];
	snprintf(command, sizeof command, "rm -r '%s'", base);
	CHECK(!system(command));
	printf("%d faults\n", faults);
	return faults != 0;
}
