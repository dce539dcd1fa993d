/*
 * A stand-in for libcuconst.so, for tests of the tool and of the Python module: the C API over an in-memory list of
 * ranges, without any CUDA. "Device memory" is what fake_memory() declared. Tests steer it through the fake_ functions.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CUCONST_BUILDING
#include "shim/cuconst.h"
#include "shim/verdict/status.h"

#define API __attribute__((visibility("default")))
#define RANGES 16384
#define MEMORIES 64

/* What a test looks at. */
struct fake_counts {
	uint64_t protects, unprotects, releases, checks, live;
};

struct entry {
	uint64_t ptr, bytes;
	cuconst_handle handle;
	bool changed, freed;
	char label[256], owner[256];
	unsigned flags;
	uint64_t stream;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry entries[RANGES];
static size_t entry_count;
static cuconst_handle last_handle;
static struct {
	uint64_t ptr, bytes;
} memories[MEMORIES];
static size_t memory_count;
static struct fake_counts counts;
static int fail_code, fail_after, cuda_error;
static bool disabled;

API void fake_memory(uint64_t ptr, uint64_t bytes);
API void fake_fail(int code, int after, int cuda);
API void fake_disable(int on);
API void fake_change(uint64_t address);
API void fake_free(uint64_t address);
API void fake_get_counts(struct fake_counts *ret);
API int fake_entry(size_t index, uint64_t *ret_ptr, uint64_t *ret_bytes, char *ret_label, char *ret_owner,
                   unsigned *ret_flags, uint64_t *ret_stream);
API void fake_reset(void);
API int fake_status(uint32_t processes, uint64_t violations, uint64_t denied, uint64_t disabled_count);

/* From here on protect() accepts only ranges inside declared memory. */
void fake_memory(uint64_t ptr, uint64_t bytes)
{
	memories[memory_count].ptr = ptr;
	memories[memory_count++].bytes = bytes;
}

/* After `after` more calls that would have succeeded one call fails with `code`. */
void fake_fail(int code, int after, int cuda)
{
	fail_code = code;
	fail_after = after;
	cuda_error = cuda;
}

void fake_disable(int on)
{
	disabled = on;
}

void fake_change(uint64_t address)
{
	for (size_t i = 0; i < entry_count; i++)
		entries[i].changed |= address >= entries[i].ptr && address - entries[i].ptr < entries[i].bytes;
}

void fake_free(uint64_t address)
{
	for (size_t i = 0; i < entry_count; i++)
		entries[i].freed |= address >= entries[i].ptr && address - entries[i].ptr < entries[i].bytes;
}

void fake_get_counts(struct fake_counts *ret)
{
	pthread_mutex_lock(&lock);
	*ret = counts;
	ret->live = 0;
	for (size_t i = 0; i < entry_count; i++)
		ret->live += !entries[i].freed;
	pthread_mutex_unlock(&lock);
}

int fake_entry(size_t index, uint64_t *ret_ptr, uint64_t *ret_bytes, char *ret_label, char *ret_owner,
               unsigned *ret_flags, uint64_t *ret_stream)
{
	if (index >= entry_count)
		return 0;
	*ret_ptr = entries[index].ptr;
	*ret_bytes = entries[index].bytes;
	strcpy(ret_label, entries[index].label);
	strcpy(ret_owner, entries[index].owner);
	*ret_flags = entries[index].flags;
	*ret_stream = entries[index].stream;
	return 1;
}

/* Handles go on, as in the shim: one is never used twice. */
void fake_reset(void)
{
	entry_count = memory_count = 0;
	memset(&counts, 0, sizeof(counts));
	fake_fail(0, 0, 0);
	disabled = false;
}

/* Counts on the launcher's page, as the shim does. Returns 0 or negative errno. */
int fake_status(uint32_t processes, uint64_t violations, uint64_t denied, uint64_t disabled_count)
{
	const char *path = getenv("CUCONST_STATUS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	struct status_page *page;

	if (fd < 0)
		return -ENOENT;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return -errno;
	if (page->magic != STATUS_MAGIC || page->version != STATUS_VERSION)
		return -EPROTO;
	page->processes += processes;
	page->violations += violations;
	page->denied += denied;
	page->disabled += disabled_count;
	munmap(page, sizeof(*page));
	return 0;
}

static cuconst_result injected(void)
{
	if (disabled)
		return CUCONST_ERROR_NOT_ACTIVE;
	if (fail_code && fail_after-- == 0) {
		cuconst_result code = (cuconst_result)fail_code;

		fail_code = 0;
		return code;
	}
	return CUCONST_OK;
}

static cuconst_result place(uint64_t ptr, size_t bytes)
{
	if (!memory_count)
		return CUCONST_OK;
	for (size_t i = 0; i < memory_count; i++) {
		if (ptr >= memories[i].ptr && ptr - memories[i].ptr < memories[i].bytes)
			return bytes <= memories[i].bytes - (ptr - memories[i].ptr) ? CUCONST_OK
			                                                            : CUCONST_ERROR_OUT_OF_RANGE;
	}
	return CUCONST_ERROR_NOT_DEVICE;
}

static cuconst_result add(uint64_t ptr, size_t bytes, const char *label, unsigned flags,
                          const struct cuconst_protect_info *info, cuconst_handle *ret_handle)
{
	cuconst_result code = injected();
	struct entry *entry = &entries[entry_count];

	if (code == CUCONST_OK && (ptr == 0 || bytes == 0 || ptr + bytes < ptr || (info && info->size != sizeof(*info))))
		code = CUCONST_ERROR_INVALID_VALUE;
	if (code == CUCONST_OK)
		code = place(ptr, bytes);
	if (code == CUCONST_OK && entry_count == RANGES)
		code = CUCONST_ERROR_OUT_OF_MEMORY;
	if (code != CUCONST_OK)
		return code;
	*entry = (struct entry){.ptr = ptr, .bytes = bytes, .handle = ++last_handle, .flags = flags};
	strncpy(entry->label, label ? label : "", sizeof(entry->label) - 1);
	strncpy(entry->owner, info && info->owner ? info->owner : "", sizeof(entry->owner) - 1);
	entry->stream = info ? (uint64_t)info->stream : 0;
	entry_count++;
	counts.protects++;
	*ret_handle = entry->handle;
	return CUCONST_OK;
}

API cuconst_result cuconst_protect(uint64_t ptr, size_t bytes, const char *label, unsigned flags,
                                   const struct cuconst_protect_info *info, cuconst_handle *ret_handle)
{
	cuconst_result code;

	pthread_mutex_lock(&lock);
	code = add(ptr, bytes, label, flags, info, ret_handle);
	pthread_mutex_unlock(&lock);
	return code;
}

static cuconst_result end(cuconst_handle handle, bool check)
{
	cuconst_result code = injected();

	if (code != CUCONST_OK)
		return code;
	if (handle == 0 || handle > last_handle)
		return CUCONST_ERROR_BAD_HANDLE;
	for (size_t i = 0; i < entry_count; i++) {
		if (entries[i].handle == handle) {
			bool changed = entries[i].changed, freed = entries[i].freed;

			entries[i] = entries[--entry_count];
			if (freed)
				return CUCONST_ERROR_STALE_HANDLE;
			return check && changed ? CUCONST_ERROR_CHANGED : CUCONST_OK;
		}
	}
	return CUCONST_ERROR_STALE_HANDLE;
}

API cuconst_result cuconst_unprotect(cuconst_handle handle)
{
	cuconst_result code;

	pthread_mutex_lock(&lock);
	counts.unprotects++;
	code = end(handle, true);
	if (code == CUCONST_ERROR_BUSY) /* it ends unchecked */
		end(handle, false);
	pthread_mutex_unlock(&lock);
	return code;
}

API cuconst_result cuconst_release(cuconst_handle handle)
{
	cuconst_result code;

	pthread_mutex_lock(&lock);
	counts.releases++;
	code = end(handle, false);
	pthread_mutex_unlock(&lock);
	return code;
}

API cuconst_result cuconst_check(cuconst_handle handle)
{
	cuconst_result code;
	bool found = handle == 0;

	pthread_mutex_lock(&lock);
	counts.checks++;
	code = injected();
	for (size_t i = 0; i < entry_count && code == CUCONST_OK; i++) {
		if (handle && entries[i].handle != handle)
			continue;
		found = !entries[i].freed;
		if (found && entries[i].changed)
			code = CUCONST_ERROR_CHANGED;
		entries[i].changed = false;
	}
	pthread_mutex_unlock(&lock);
	return code == CUCONST_OK && !found ? CUCONST_ERROR_STALE_HANDLE : code;
}

API cuconst_result cuconst_query(uint64_t ptr, size_t bytes, struct cuconst_range_info *out, size_t max, size_t *ret_count)
{
	size_t count = 0;

	if (disabled)
		return CUCONST_ERROR_NOT_ACTIVE;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < entry_count; i++) {
		struct entry *entry = &entries[i];

		if (entry->freed || entry->ptr >= ptr + bytes || ptr >= entry->ptr + entry->bytes)
			continue;
		if (count < max) {
			out[count] = (struct cuconst_range_info){
				.ptr = entry->ptr, .bytes = entry->bytes, .handle = entry->handle};
			strcpy(out[count].label, entry->label);
		}
		count++;
	}
	pthread_mutex_unlock(&lock);
	*ret_count = count;
	return CUCONST_OK;
}

API cuconst_result cuconst_stats(struct cuconst_stats *ret_stats)
{
	struct cuconst_stats stats = {.size = ret_stats->size, .calls = 7, .launches = 8, .suppressed = 9};

	if (disabled)
		return CUCONST_ERROR_NOT_ACTIVE;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < entry_count; i++) {
		stats.ranges += !entries[i].freed;
		stats.bytes += entries[i].freed ? 0 : entries[i].bytes;
	}
	pthread_mutex_unlock(&lock);
	memcpy(ret_stats, &stats, ret_stats->size < sizeof(stats) ? ret_stats->size : sizeof(stats));
	return CUCONST_OK;
}

/* A twin lies VIEW_DISTANCE above its memory. */
#define VIEW_DISTANCE 0x100000000ull

API cuconst_result cuconst_view(uint64_t ptr, size_t bytes, uint64_t *ret_view)
{
	cuconst_result code = disabled ? CUCONST_ERROR_NOT_ACTIVE : injected();

	if (code == CUCONST_OK)
		code = place(ptr, bytes);
	if (code == CUCONST_OK)
		*ret_view = ptr + VIEW_DISTANCE;
	return code;
}

API uint64_t cuconst_view_known(uint64_t ptr, size_t bytes)
{
	if (!ptr || !bytes || ptr + bytes < ptr || disabled || fail_code || place(ptr, bytes))
		return 0;
	return ptr + VIEW_DISTANCE;
}

API int cuconst_version(void)
{
	return CUCONST_VERSION;
}

API int cuconst_last_cuda_error(void)
{
	return cuda_error;
}
