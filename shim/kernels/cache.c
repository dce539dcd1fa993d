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
#include "shim/kernels/line_info.h"

#define MAGIC 0x6b74736e6f637563u /* "cuconstk" */
#define FORMAT 1
#define TEXTS 64              /* kinds of stores and source files of one kernel */
#define TEXTS_BYTES 8192      /* of all, with their ends */
#define LEFT_BEHIND (10 * 60) /* seconds after which a file that was never renamed is taken for an accident's */

/* In front of each file; then the kernel's name, the slots (a byte each), the texts, the stores. All of this machine's byte order. */
struct header {
	uint64_t magic;
	uint32_t format, file_bytes;
	uint64_t analyser; /* a hash of its sources */
	struct cache_hash image;
	uint32_t name_bytes, slots, stores_kept, texts_bytes;
	uint64_t store_count;
	uint32_t reason, reason_offset;
	uint64_t sum; /* of the whole file with this field 0 */
};

struct stored_site {
	uint32_t offset, base, line;
	uint32_t kind, file; /* texts, by number; NO_TEXT */
};
#define NO_TEXT UINT32_MAX

struct texts {
	char bytes[TEXTS_BYTES];
	uint32_t used, count, at[TEXTS];
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

static unsigned place_of(const struct cache_hash *image, const char *kernel)
{
	struct cache_hash name = cache_hash(kernel, strlen(kernel));
	return (unsigned)(fold(image->low ^ name.low, image->high ^ name.high ^ 0x9e3779b97f4a7c15u) % CACHE_PLACES);
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

static size_t size_of(const struct header *header)
{
	return sizeof *header + header->name_bytes + header->slots + header->texts_bytes +
	       (size_t)header->stores_kept * sizeof(struct stored_site);
}

static bool read_slots(const unsigned char *at, struct kernel_paths *paths)
{
	for (size_t i = 0; i < paths->slot_count; i++) {
		if ((at[i] & 3) > SLOT_STORE || at[i] >> 5)
			return false;
		paths->slots[i] = (struct slot_paths){at[i] & 3, at[i] >> 4, at[i] >> 2 & 1, at[i] >> 3 & 1};
	}
	return true;
}

static bool read_texts(const unsigned char *from, uint32_t bytes, struct texts *texts)
{
	texts->count = 0;
	if (bytes > sizeof texts->bytes || (bytes && from[bytes - 1]))
		return false;
	memcpy(texts->bytes, from, bytes);
	for (uint32_t at = 0; at < bytes; at += (uint32_t)strlen(texts->bytes + at) + 1) {
		if (texts->count == TEXTS)
			return false;
		texts->at[texts->count++] = at;
	}
	return true;
}

static const char *text_of(const struct texts *texts, uint32_t number)
{
	return number < texts->count ? texts->bytes + texts->at[number] : NULL;
}

/* Kinds are static text, files live for ever: each is found by its name. */
static bool read_stores(const struct header *header, const unsigned char *from, struct kernel_paths *paths)
{
	struct texts texts;
	if (!read_texts(from, header->texts_bytes, &texts))
		return false;
	from += header->texts_bytes;
	for (uint32_t i = 0; i < header->stores_kept; i++, from += sizeof(struct stored_site)) {
		struct stored_site site;
		memcpy(&site, from, sizeof site);
		const char *kind = text_of(&texts, site.kind), *file = text_of(&texts, site.file);
		kind = kind ? paths_kind_named(kind) : NULL;
		if (!kind || (site.file != NO_TEXT && !file) ||
		    (site.base != UINT32_MAX && site.base >= paths->slot_count))
			return false;
		if (file)
			file = line_file((struct line_text){"", 0}, (struct line_text){file, strlen(file)});
		paths->stores[i] = (struct store_site){site.offset, site.base, kind, file, file ? site.line : 0};
	}
	return true;
}

static bool read_entry(const unsigned char *buffer, size_t bytes, const struct cache_hash *image, const char *kernel,
                       struct kernel_paths *paths)
{
	struct header header;
	memcpy(&header, buffer, sizeof header);
	const unsigned char *name = buffer + sizeof header, *slots = name + header.name_bytes;
	if (memcmp(&header.image, image, sizeof *image) || header.name_bytes > CACHE_FILE_BYTES ||
	    header.slots > CACHE_FILE_BYTES || header.texts_bytes > TEXTS_BYTES || header.stores_kept > PATHS_STORES ||
	    header.store_count < header.stores_kept || header.reason > PATHS_LIMIT || size_of(&header) != bytes ||
	    header.name_bytes != strlen(kernel) || memcmp(name, kernel, header.name_bytes))
		return false;
	*paths = (struct kernel_paths){.reason = (enum paths_reason)header.reason,
	                               .reason_offset = header.reason_offset,
	                               .slot_count = header.slots,
	                               .slots = calloc(header.slots + (size_t)1, sizeof *paths->slots),
	                               .store_count = header.store_count,
	                               .stores = calloc(header.stores_kept + (size_t)1, sizeof *paths->stores)};
	if (paths->slots && paths->stores && read_slots(slots, paths) && read_stores(&header, slots + header.slots, paths))
		return true;
	kernel_paths_free(paths);
	return false;
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

bool cache_get(const struct cache_hash *image, const char *kernel, struct kernel_paths *ret_paths)
{
	unsigned char buffer[CACHE_FILE_BYTES];
	struct kernel_paths paths;
	if (!cache_in_use())
		return false;
	struct guard guard = guard_enter();
	size_t bytes = read_file(place_of(image, kernel), buffer);
	bool found = bytes && read_entry(buffer, bytes, image, kernel, &paths);
	guard_leave(&guard);
	if (found)
		*ret_paths = paths;
	return found;
}

/* The number of a text; TEXTS where there is no room. */
static uint32_t add_text(struct texts *texts, const char *text)
{
	size_t bytes = strlen(text) + 1;
	for (uint32_t i = 0; i < texts->count; i++)
		if (!strcmp(texts->bytes + texts->at[i], text))
			return i;
	if (texts->count == TEXTS || bytes == 1 || bytes > sizeof texts->bytes - texts->used)
		return TEXTS;
	memcpy(texts->bytes + texts->used, text, bytes);
	texts->at[texts->count] = texts->used;
	texts->used += (uint32_t)bytes;
	return texts->count++;
}

/* The file of an entry; 0 where it is too large to keep. */
static size_t write_entry(unsigned char *buffer, const struct cache_hash *image, const char *kernel,
                          const struct kernel_paths *paths)
{
	struct texts texts = {.used = 0};
	struct stored_site sites[PATHS_STORES];
	struct header header = {
		.magic = MAGIC,
		.format = FORMAT,
		.analyser = ANALYSER_VERSION,
		.image = *image,
		.name_bytes = (uint32_t)strnlen(kernel, CACHE_FILE_BYTES),
		.stores_kept = (uint32_t)(paths->store_count < PATHS_STORES ? paths->store_count : PATHS_STORES),
		.store_count = paths->store_count,
		.reason = paths->reason,
		.reason_offset = paths->reason_offset};
	if (paths->slot_count > CACHE_FILE_BYTES || paths->reason > PATHS_LIMIT || paths->reason == PATHS_DAMAGED)
		return 0;
	header.slots = (uint32_t)paths->slot_count;
	for (uint32_t i = 0; i < header.stores_kept; i++) {
		const struct store_site *site = &paths->stores[i];
		sites[i] = (struct stored_site){site->offset, site->base, site->line, add_text(&texts, site->kind),
		                                site->file ? add_text(&texts, site->file) : NO_TEXT};
		if (sites[i].kind == TEXTS || sites[i].file == TEXTS)
			return 0;
	}
	header.texts_bytes = texts.used;
	size_t bytes = size_of(&header);
	if (bytes > CACHE_FILE_BYTES)
		return 0;
	header.file_bytes = (uint32_t)bytes;
	unsigned char *at = buffer;
	memcpy(at, &header, sizeof header);
	memcpy(at += sizeof header, kernel, header.name_bytes);
	at += header.name_bytes;
	for (size_t i = 0; i < paths->slot_count; i++)
		*at++ = (unsigned char)(paths->slots[i].use | paths->slots[i].only_base << 2 |
		                        paths->slots[i].compared << 3 | paths->slots[i].loaded << 4);
	memcpy(at, texts.bytes, texts.used);
	memcpy(at + texts.used, sites, header.stores_kept * sizeof sites[0]);
	header.sum = cache_hash(buffer, bytes).low;
	memcpy(buffer, &header, sizeof header);
	return bytes;
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

void cache_put(const struct cache_hash *image, const char *kernel, const struct kernel_paths *paths)
{
	unsigned char buffer[CACHE_FILE_BYTES];
	if (!cache_in_use())
		return;
	struct guard guard = guard_enter();
	size_t bytes = write_entry(buffer, image, kernel, paths);
	if (bytes && may_write(bytes))
		write_file(place_of(image, kernel), buffer, bytes);
	guard_leave(&guard);
}
