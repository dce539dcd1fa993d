#include "tools/scan_image.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/fatbin.h"
#include "shim/kernels/ptx_list.h"
#include "shim/kernels/zstd.h"

/* One image whose kernels are being told. */
struct image {
	struct scan_result *result;
	const struct scan_filter *filter;
	const void *bytes;
	size_t length;
	unsigned sm;
	struct ptx_module *module; /* of a text, NULL: machine code */
};

static void *room_for(void *list, size_t count, size_t *room, size_t bytes)
{
	size_t more = *room ? 2 * *room : 16;

	if (count < *room)
		return list;
	list = realloc(list, more * bytes);
	if (list)
		*room = more;
	return list;
}

static void add_param(void *ctx, uint32_t index, uint32_t offset, uint32_t bytes)
{
	struct scan_kernel *kernel = ctx;
	void *list = room_for(kernel->params, kernel->param_count, &kernel->param_room, sizeof(*kernel->params));

	kernel->failed |= !list;
	if (!list)
		return;
	kernel->params = list;
	kernel->params[kernel->param_count++] = (struct scan_param){index, offset, bytes};
}

static void add_base(void *ctx, size_t store, uint32_t slot)
{
	struct scan_kernel *kernel = ctx;
	void *list;

	if (store >= PATHS_STORES)
		return;
	list = room_for(kernel->bases, kernel->base_count, &kernel->base_room, sizeof(*kernel->bases));
	kernel->failed |= !list;
	if (!list)
		return;
	kernel->bases = list;
	kernel->bases[kernel->base_count++] = (struct scan_base){store, slot};
}

static int by_index(const void *left, const void *right)
{
	const struct scan_param *a = left, *b = right;

	return a->index < b->index ? -1 : a->index > b->index;
}

static int by_store(const void *left, const void *right)
{
	const struct scan_base *a = left, *b = right;

	if (a->store != b->store)
		return a->store < b->store ? -1 : 1;
	return a->slot < b->slot ? -1 : a->slot > b->slot;
}

static void free_kernel(struct scan_kernel *kernel)
{
	free(kernel->name);
	free(kernel->params);
	free(kernel->bases);
	free(kernel->values);
	kernel_paths_free(&kernel->paths);
}

/* The given values that decided something. */
static int keep_values(const struct scan_filter *filter, const struct paths_values *values, struct scan_kernel *kernel)
{
	kernel->values = calloc(filter->value_count, sizeof(*kernel->values));
	if (!kernel->values)
		return -ENOMEM;
	for (size_t i = 0; i < filter->value_count; i++) {
		const uint8_t *used = values->used + filter->values[i].offset;

		if (used[0] || used[1] || used[2] || used[3])
			kernel->values[kernel->value_count++] = filter->values[i];
	}
	return 0;
}

/* The answer for the values that were given, where that says more. Of each store only its one base is known then. */
static int analyse_values(const struct image *image, struct scan_kernel *kernel)
{
	const struct scan_filter *filter = image->filter;
	uint8_t bytes[SCAN_VALUE_BYTES] = {0}, known[SCAN_VALUE_BYTES] = {0}, used[SCAN_VALUE_BYTES] = {0};
	struct paths_values values = {bytes, known, used, sizeof(bytes), NULL};
	struct kernel_paths paths;
	bool better;
	int answer;

	for (size_t i = 0; i < filter->value_count; i++) {
		memcpy(bytes + filter->values[i].offset, &filter->values[i].value, 4);
		memset(known + filter->values[i].offset, VALUE_EXACT, 4);
	}
	answer = image->module ? paths_for_ptx(image->bytes, image->length, kernel->name, &values, &paths, &better)
	                       : paths_for_cubin(image->bytes, image->length, kernel->name, &values, &paths, &better);
	if (answer || !better)
		return answer;
	kernel_paths_free(&kernel->paths);
	kernel->paths = paths;
	kernel->base_count = 0;
	for (size_t i = 0; i < paths.store_count && i < PATHS_STORES; i++)
		if (paths.stores[i].base != UINT32_MAX)
			add_base(kernel, i, paths.stores[i].base);
	return keep_values(filter, &values, kernel);
}

static int analyse(const struct image *image, struct scan_kernel *kernel)
{
	struct paths_watch watch = {add_param, add_base, kernel};
	int answer = image->module
	                     ? ptx_module_paths(image->module, kernel->name, &watch, &kernel->paths)
	                     : paths_watch_cubin(image->bytes, image->length, kernel->name, &watch, &kernel->paths);

	if (!answer && image->filter->value_count)
		answer = analyse_values(image, kernel);
	if (!answer && kernel->failed)
		answer = -ENOMEM;
	if (kernel->param_count)
		qsort(kernel->params, kernel->param_count, sizeof(*kernel->params), by_index);
	if (kernel->base_count)
		qsort(kernel->bases, kernel->base_count, sizeof(*kernel->bases), by_store);
	return answer;
}

static int add_kernel(void *ctx, const char *name, size_t length)
{
	const struct image *image = ctx;
	struct scan_result *result = image->result;
	struct scan_kernel kernel = {.name = strndup(name, length), .sm = image->sm, .ptx = image->module != NULL};
	int answer;

	if (!kernel.name)
		return -ENOMEM;
	if (image->filter->glob && fnmatch(image->filter->glob, kernel.name, 0) != 0) {
		free(kernel.name);
		return 0;
	}
	if (result->count == result->room) {
		size_t room = result->room ? 2 * result->room : 64;
		struct scan_kernel *more = realloc(result->kernels, room * sizeof(*more));

		if (!more) {
			free(kernel.name);
			return -ENOMEM;
		}
		result->kernels = more;
		result->room = room;
	}
	/* The analyzer loses sight of the names that the result holds. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
	answer = analyse(image, &kernel);
	if (answer) {
		free_kernel(&kernel);
		return answer == -ENOENT ? 0 : answer;
	}
	result->kernels[result->count++] = kernel;
	return 0;
}

static int nothing(void *ctx, const char *name, size_t length)
{
	return 0;
}

static int scan_ptx(struct image *image)
{
	int answer;

	answer = ptx_kernels(image->bytes, image->length, nothing, NULL, &image->sm);
	if (answer == -ENOMEM)
		return answer;
	if (image->filter->sm && image->sm != image->filter->sm)
		return 0;
	if (ptx_module_open(image->bytes, image->length, &image->module))
		return -ENOMEM;
	answer = ptx_kernels(image->bytes, image->length, add_kernel, image, NULL);
	ptx_module_close(image->module);
	image->module = NULL;
	image->result->images++;
	image->result->damaged += answer == -EINVAL;
	return answer == -EINVAL ? 0 : answer;
}

static int scan_cubin(struct image *image)
{
	struct elf elf;
	int answer = elf_open(image->bytes, image->length, &elf);

	image->result->images++;
	if (answer) {
		image->result->damaged++;
		return 0;
	}
	image->sm = elf.sm;
	if (image->filter->sm && elf.sm != image->filter->sm)
		return 0;
	for (uint32_t i = 0; i < elf.symbol_count && answer == 0; i++) {
		struct elf_symbol symbol;

		if (elf_symbol_at(&elf, i, &symbol) == 0 && symbol.type == ELF_SYMBOL_FUNCTION && symbol.entry &&
		    symbol.section)
			answer = add_kernel(image, symbol.name, strlen(symbol.name));
	}
	return answer;
}

static int scan_entry(const struct fatbin_entry *entry, const struct scan_filter *filter, struct scan_result *result)
{
	struct image image = {.result = result, .filter = filter, .length = entry->bytes};
	uint8_t *bytes;
	int answer;

	if ((entry->kind != FATBIN_PTX && entry->kind != FATBIN_CUBIN) || (filter->sm && entry->sm != filter->sm))
		return 0;
	answer = fatbin_unpack(entry, zstd_decoder(), &bytes);
	if (answer == -ENOMEM)
		return answer;
	if (answer) {
		result->images++;
		*(answer == -ENOTSUP ? &result->zstd : &result->damaged) += 1;
		return 0;
	}
	image.bytes = bytes;
	answer = entry->kind == FATBIN_PTX ? scan_ptx(&image) : scan_cubin(&image);
	free(bytes);
	return answer;
}

static int scan_containers(const uint8_t *file, size_t bytes, const struct scan_filter *filter, struct scan_result *result)
{
	size_t at = 0, size;
	int answer = 0;

	while (answer == 0 && (at = fatbin_find(file, bytes, at)) < bytes) {
		struct fatbin fatbin;
		struct fatbin_entry entry;
		int more;

		if (fatbin_open(file + at, bytes - at, &fatbin, &size) != 0) {
			/* The number may stand in a file by chance, or the container is cut. */
			result->damaged++;
			at++;
			continue;
		}
		while (answer == 0 && (more = fatbin_next(&fatbin, &entry)) > 0) {
			if (filter->progress)
				filter->progress(filter->ctx, (size_t)(entry.payload - file), bytes);
			answer = scan_entry(&entry, filter, result);
		}
		result->damaged += answer == 0 && more < 0;
		at += size;
	}
	return answer;
}

int scan_bytes(const void *file, size_t bytes, const struct scan_filter *filter, struct scan_result *result)
{
	struct image image = {.result = result, .filter = filter, .bytes = file, .length = bytes};
	bool is_elf = bytes >= 20 && memcmp(file, "\177ELF", 4) == 0;
	int answer;

	if (is_elf && elf_u16((const uint8_t *)file + 18) == 190)
		return scan_cubin(&image);
	if (bytes >= 4 && (is_elf || elf_u32(file) == FATBIN_CONTAINER_MAGIC)) {
		answer = scan_containers(file, bytes, filter, result);
		return answer == 0 && result->images == 0 && !result->damaged && !filter->sm ? -EINVAL : answer;
	}
	answer = ptx_kernels(file, bytes, nothing, NULL, NULL);
	if (answer == -ENOMEM)
		return answer;
	if (answer == -EINVAL) {
		struct scan_result before = *result;

		/* Damaged PTX is still PTX when it has a kernel. */
		answer = scan_ptx(&image);
		return answer == 0 && result->count == before.count ? -EINVAL : answer;
	}
	return scan_ptx(&image);
}

void scan_free(struct scan_result *result)
{
	for (size_t i = 0; i < result->count; i++)
		free_kernel(&result->kernels[i]);
	free(result->kernels);
	*result = (struct scan_result){.count = 0};
}
