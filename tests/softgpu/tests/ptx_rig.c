#include "tests/softgpu/tests/ptx_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool rig_check(void *data, uint64_t address, size_t bytes, bool write)
{
	const struct rig *rig = data;

	for (unsigned n = 0; n < rig->range_count; n++) {
		const struct rig_range *range = &rig->ranges[n];

		if (address >= range->start && address < range->end)
			return bytes <= range->end - address && !(write && range->read_only);
	}
	return false;
}

static uint64_t rig_take(void *data, size_t bytes, size_t align)
{
	struct rig *rig = data;
	size_t at = (rig->used + align - 1) & ~(align - 1);

	if (bytes > RIG_BYTES || at > RIG_BYTES - bytes || rig->range_count == RIG_RANGES)
		return 0;
	/* A gap, so that ranges never touch. */
	rig->used = at + bytes + 64;
	uint64_t address = (uintptr_t)rig->bytes + at;
	rig->ranges[rig->range_count++] = (struct rig_range){address, address + bytes, false};
	return address;
}

static void rig_free(void *data, uint64_t address)
{
	struct rig *rig = data;

	for (unsigned n = 0; n < rig->range_count; n++)
		if (rig->ranges[n].start == address) {
			rig->ranges[n] = rig->ranges[--rig->range_count];
			return;
		}
	abort();
}

static void rig_wrote(void *data, uint64_t address, size_t bytes)
{
	struct rig *rig = data;

	__atomic_fetch_add(&rig->wrote_bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&rig->wrote_calls, 1, __ATOMIC_RELAXED);
}

void rig_create(struct rig *rig)
{
	*rig = (struct rig){
		.memory = {.check = rig_check, .alloc = rig_take, .free = rig_free, .wrote = rig_wrote, .data = rig},
		.host_threads = 2};
	rig->bytes = aligned_alloc(4096, RIG_BYTES + 4096);
	if (!rig->bytes)
		abort();
	memset(rig->bytes, 0, RIG_BYTES);
}

void rig_destroy(struct rig *rig)
{
	ptx_unload(&rig->module);
	free(rig->bytes);
}

uint64_t rig_alloc(struct rig *rig, size_t bytes)
{
	uint64_t address = rig_take(rig, bytes, 256);

	if (!address)
		abort();
	return address;
}

void rig_read_only(struct rig *rig, uint64_t address)
{
	for (unsigned n = 0; n < rig->range_count; n++)
		if (rig->ranges[n].start == address)
			rig->ranges[n].read_only = true;
}

enum ptx_status rig_load(struct rig *rig, const char *text)
{
	ptx_unload(&rig->module);
	return ptx_load(text, strlen(text), &rig->memory, rig->log, sizeof(rig->log), &rig->module);
}

char *rig_read_file(const char *name)
{
	char path[512];
	long bytes;

	snprintf(path, sizeof(path), "%s/%s", getenv("PTX_KERNELS"), name);
	FILE *file = fopen(path, "rb");
	if (!file)
		return NULL;
	fseek(file, 0, SEEK_END);
	bytes = ftell(file);
	rewind(file);
	char *text = calloc(1, (size_t)bytes + 1);
	if (text && fread(text, 1, (size_t)bytes, file) != (size_t)bytes) {
		free(text);
		text = NULL;
	}
	fclose(file);
	return text;
}

enum ptx_status rig_load_file(struct rig *rig, const char *name)
{
	char *text = rig_read_file(name);

	if (!text) {
		snprintf(rig->log, sizeof(rig->log), "cannot read %s", name);
		return PTX_INVALID;
	}
	enum ptx_status status = rig_load(rig, text);
	free(text);
	return status;
}

enum ptx_status rig_run(struct rig *rig, const char *kernel, unsigned grid, unsigned block, unsigned shared,
                        const uint64_t *params, size_t count)
{
	const struct ptx_function *function = ptx_find(rig->module, kernel);
	unsigned char bytes[4096] = {0};
	size_t word = 0;

	if (!function)
		abort();
	for (size_t n = 0, at, size; ptx_function_param(function, n, &at, &size); n++)
		/* A struct takes as many words as it has. */
		for (size_t done = 0; done < size && word < count; done += 8, word++)
			memcpy(bytes + at + done, &params[word], size - done < 8 ? size - done : 8);
	struct ptx_launch launch = {.grid = {grid, 1, 1},
	                            .block = {block, 1, 1},
	                            .shared_bytes = shared,
	                            .params = bytes,
	                            .params_bytes = ptx_function_params_bytes(function),
	                            .instruction_limit = rig->limit,
	                            .host_threads = rig->host_threads};
	return ptx_run(function, &launch, &rig->fault);
}
