#include "shim/kernels/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/kernels/analyser_version.h"
#include "shim/kernels/cache_internal.h"

#define MAGIC 0x6b74736e6f637563u /* "cuconstk" */
#define FORMAT 2
#define LEFT_BEHIND (10 * 60) /* seconds after which a file that was never renamed is taken for an accident's */

/* In front of each file; then the kernel's name, and what is kept about it. All of this machine's byte order. */
struct header {
	uint64_t magic;
	uint32_t format, file_bytes;
	uint64_t analyser; /* a hash of its sources */
	struct cache_hash image;
	uint32_t kind, name_bytes;
	uint64_t sum; /* of the whole file with this field 0 */
};

static char folder[PATH_MAX];
static _Atomic bool usable;

/* Four lanes of 64-bit products folded: some bytes a cycle. No secret: who can write here can do worse. */
static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

struct cache_hash cache_hash(const void *image, size_t bytes)
{
	static const uint64_t odd[4] = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu, 0x165667b19e3779f9u,
	                                0xd6e8feb86659fd93u};
	const uint8_t *at = image;
	uint64_t lanes[4] = {bytes ^ odd[0], odd[1], odd[2], odd[3]}, words[8];
	for (size_t left = bytes; left; left -= left < sizeof words ? left : sizeof words, at += sizeof words) {
		if (left < sizeof words)
			memset(words, 0, sizeof words);
		memcpy(words, at, left < sizeof words ? left : sizeof words);
		for (unsigned i = 0; i < 4; i++)
			lanes[i] = fold(lanes[i] ^ words[2 * i], odd[i] ^ words[2 * i + 1]) + lanes[i];
	}
	uint64_t low = fold(lanes[0] ^ odd[1], lanes[1] ^ odd[2]) + lanes[0],
		 high = fold(lanes[2] ^ odd[3], lanes[3] ^ odd[0]) + lanes[2];
	return (struct cache_hash){fold(low ^ odd[0], high ^ odd[1]) ^ low, fold(low ^ odd[2], high ^ odd[3]) ^ high,
	                           bytes};
}

static unsigned place_of(const struct cache_key *key)
{
	struct cache_hash name = cache_hash(key->kernel, strlen(key->kernel));
	return (unsigned)(fold(key->image->low ^ name.low, key->image->high ^ name.high ^ 0x9e3779b97f4a7c15u ^ key->kind) %
	                  CACHE_PLACES);
}

/* Ours, and nobody else may write it. */
static bool trusted(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Opened anew each time: a program may close whatever descriptor we kept, and have its number for something else. */
static int open_folder(void)
{
	struct stat st;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &st) || !trusted(&st))) {
		close(fd);
		errno = EACCES;
		fd = -1;
	}
	return fd;
}

/* Each folder of the path that is missing. */
static void make_folders(void)
{
	char path[PATH_MAX];
	memcpy(path, folder, sizeof path);
	for (char *at = path + 1; *at; at++)
		if (*at == '/') {
			*at = 0;
			mkdir(path, 0700);
			*at = '/';
		}
	mkdir(path, 0700);
}

static bool find_folder(const char *directory)
{
	const char *base = directory ? NULL : secure_getenv("XDG_CACHE_HOME"), *tail = "/cuconst";
	if (directory) {
		base = directory;
		tail = "";
	} else if (!base || *base != '/') {
		base = secure_getenv("HOME");
		tail = "/.cache/cuconst";
	}
	if (!base || *base != '/')
		return false;
	int length = snprintf(folder, sizeof folder, "%s%s", base, tail);
	return length > 1 && (size_t)length < sizeof folder;
}

bool cache_use(const char *directory)
{
	bool found = find_folder(directory);
	atomic_store_explicit(&usable, found, memory_order_release);
	return found;
}

bool cache_in_use(void)
{
	return atomic_load_explicit(&usable, memory_order_acquire);
}

static void name_file(char name[32], unsigned place, const char *tail)
{
	snprintf(name, 32, "%04x%s", place, tail);
}

/* The whole file, checked as far as its header goes; 0 where it is not one. */
static size_t read_file(unsigned place, unsigned char *buffer)
{
	char name[32];
	struct stat st;
	struct header header;
	size_t got = 0;
	int directory = open_folder();
	if (directory < 0)
		return 0;
	name_file(name, place, "");
	/* O_NONBLOCK: what somebody put here may be a pipe. */
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	close(directory);
	if (fd < 0)
		return 0;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && trusted(&st) && st.st_size >= (off_t)sizeof header &&
	    st.st_size <= CACHE_FILE_BYTES) {
		ssize_t once;
		while (got < (size_t)st.st_size && (once = read(fd, buffer + got, (size_t)st.st_size - got)) > 0)
			got += (size_t)once;
	}
	close(fd);
	if (got < sizeof header)
		return 0;
	memcpy(&header, buffer, sizeof header);
	uint64_t sum = header.sum;
	header.sum = 0;
	memcpy(buffer, &header, sizeof header);
	if (header.magic != MAGIC || header.format != FORMAT || header.file_bytes != got ||
	    header.analyser != ANALYSER_VERSION || cache_hash(buffer, got).low != sum)
		return 0;
	return got;
}

static size_t content_at(const struct cache_key *key)
{
	return sizeof(struct header) + strlen(key->kernel);
}

/* Is a file about what is asked for? */
static bool is_of(const unsigned char *buffer, size_t bytes, const struct cache_key *key)
{
	struct header header;
	memcpy(&header, buffer, sizeof header);
	return bytes >= content_at(key) && !memcmp(&header.image, key->image, sizeof header.image) &&
	       header.kind == key->kind && header.name_bytes == strlen(key->kernel) &&
	       !memcmp(buffer + sizeof header, key->kernel, header.name_bytes);
}

/* Files are points of cancellation, which a launch is not: a thread that ended here would leave descriptors, and its launch, behind. */
struct guard {
	int cancel, saved_errno;
};

static struct guard guard_enter(void)
{
	struct guard guard = {.saved_errno = errno};
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard.cancel);
	return guard;
}

static void guard_leave(const struct guard *guard)
{
	pthread_setcancelstate(guard->cancel, NULL);
	errno = guard->saved_errno;
}

size_t cache_read(const struct cache_key *key, unsigned char *buffer, const unsigned char **ret_content)
{
	if (!cache_in_use())
		return 0;
	struct guard guard = guard_enter();
	size_t bytes = read_file(place_of(key), buffer);
	guard_leave(&guard);
	if (!bytes || !is_of(buffer, bytes, key))
		return 0;
	*ret_content = buffer + content_at(key);
	return bytes - content_at(key);
}

/* What a process that died left half-written would block its place for ever. */
static void clear_left_behind(int directory, const char *name)
{
	struct stat st;
	if (!fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
	    time(NULL) > st.st_mtime + LEFT_BEHIND)
		unlinkat(directory, name, 0);
}

/* A write beyond the program's limit for files would end it by SIGXFSZ. */
static bool may_write(size_t bytes)
{
	struct rlimit limit;
	return !getrlimit(RLIMIT_FSIZE, &limit) && (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes);
}

/* Under another name first, one for each place: of two writers one gives up, and readers see all of a file or nothing. */
static void write_file(unsigned place, const unsigned char *buffer, size_t bytes)
{
	char name[32], begun[32];
	int directory = open_folder();
	if (directory < 0 && errno == ENOENT) {
		make_folders();
		directory = open_folder();
	}
	if (directory < 0)
		return;
	name_file(name, place, "");
	name_file(begun, place, ".new");
	int fd = openat(directory, begun, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		clear_left_behind(directory, begun);
		close(directory);
		return;
	}
	ssize_t written = write(fd, buffer, bytes);
	if (close(fd) || written != (ssize_t)bytes || renameat(directory, begun, directory, name))
		unlinkat(directory, begun, 0);
	close(directory);
}

unsigned char *cache_content(const struct cache_key *key, unsigned char *buffer, size_t *ret_room)
{
	size_t at = content_at(key);
	*ret_room = at < CACHE_FILE_BYTES ? CACHE_FILE_BYTES - at : 0;
	return cache_in_use() && *ret_room ? buffer + at : NULL;
}

void cache_write(const struct cache_key *key, unsigned char *buffer, size_t content)
{
	struct header header = {.magic = MAGIC,
	                        .format = FORMAT,
	                        .file_bytes = (uint32_t)(content_at(key) + content),
	                        .analyser = ANALYSER_VERSION,
	                        .image = *key->image,
	                        .kind = key->kind,
	                        .name_bytes = (uint32_t)strlen(key->kernel)};
	memcpy(buffer, &header, sizeof header);
	memcpy(buffer + sizeof header, key->kernel, header.name_bytes);
	header.sum = cache_hash(buffer, header.file_bytes).low;
	memcpy(buffer, &header, sizeof header);
	struct guard guard = guard_enter();
	if (may_write(header.file_bytes))
		write_file(place_of(key), buffer, header.file_bytes);
	guard_leave(&guard);
}

bool cache_get(const struct cache_hash *image, const char *kernel, struct kernel_paths *ret_paths)
{
	unsigned char buffer[CACHE_FILE_BYTES];
	const struct cache_key key = {image, kernel, CACHE_ANY_VALUES};
	const unsigned char *content;
	size_t bytes = cache_read(&key, buffer, &content);
	int saved = errno;
	bool found = bytes && cache_unpack(content, bytes, ret_paths);
	errno = saved;
	return found;
}

void cache_put(const struct cache_hash *image, const char *kernel, const struct kernel_paths *paths)
{
	unsigned char buffer[CACHE_FILE_BYTES];
	const struct cache_key key = {image, kernel, CACHE_ANY_VALUES};
	size_t room;
	unsigned char *content = cache_content(&key, buffer, &room);
	size_t bytes = content ? cache_pack(paths, content, room) : 0;
	if (bytes)
		cache_write(&key, buffer, bytes);
}
