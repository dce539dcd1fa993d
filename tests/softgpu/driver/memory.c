#include "tests/softgpu/driver/memory.h"

#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/core.h"
#include "tests/softgpu/driver/probe.h"

/* Sorted by address; pieces never overlap. */
static struct sg_allocation **table;
static size_t count, capacity;
static uint64_t ids = 1;

/* The first that starts behind the address. */
static size_t after(uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (table[middle]->address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct sg_allocation *sg_allocation_at(uint64_t address)
{
	size_t i = after(address);

	return i > 0 && address - table[i - 1]->address < table[i - 1]->bytes ? table[i - 1] : NULL;
}

struct sg_allocation *sg_allocation_of(uint64_t address)
{
	size_t i = after(address);

	return i > 0 && table[i - 1]->address == address ? table[i - 1] : NULL;
}

size_t sg_allocation_count(void)
{
	return count;
}

struct sg_allocation *sg_allocation_number(size_t i)
{
	return table[i];
}

struct sg_allocation *sg_allocation_add(const struct sg_allocation *description)
{
	struct sg_allocation *fresh = malloc(sizeof(*fresh));

	if (fresh == NULL)
		return NULL;
	if (count == capacity) {
		size_t wanted = capacity == 0 ? 256 : capacity * 2;
		struct sg_allocation **bigger = realloc(table, wanted * sizeof(*bigger));
		if (bigger == NULL) {
			free(fresh);
			return NULL;
		}
		table = bigger;
		capacity = wanted;
	}
	*fresh = *description;
	fresh->id = ids++;
	size_t i = after(fresh->address);
	memmove(&table[i + 1], &table[i], (count - i) * sizeof(*table));
	table[i] = fresh;
	count++;
	if (sg_arena_holds(fresh->address) && fresh->kind != SG_MEMORY_MAPPING)
		sg_arena_mark(fresh->address, fresh->bytes, fresh->access);
	return fresh;
}

void sg_allocation_remove(struct sg_allocation *allocation)
{
	size_t i = after(allocation->address) - 1;

	count--;
	memmove(&table[i], &table[i + 1], (count - i) * sizeof(*table));
	free(allocation);
}

uint64_t sg_device_take(struct sg_context *context, size_t bytes, enum sg_memory_kind kind, bool zero)
{
	struct sg_allocation fresh = {
		.bytes = bytes, .kind = kind, .access = SG_ACCESS_WRITE, .device = context->device, .context = context};

	if (!sg_heap_take(context->device, bytes, &fresh.address))
		return 0;
	if (sg_allocation_add(&fresh) == NULL) {
		sg_heap_give(context->device, fresh.address, bytes);
		return 0;
	}
	if (zero)
		memset((void *)(uintptr_t)fresh.address, 0, bytes);
	return fresh.address;
}

void sg_device_give(struct sg_allocation *allocation)
{
	sg_arena_mark(allocation->address, allocation->bytes, SG_ACCESS_NONE);
	sg_heap_give(allocation->device, allocation->address, allocation->bytes);
	sg_allocation_remove(allocation);
}

void sg_memory_end(struct sg_context *context)
{
	sg_kernel_heap_end(context);
	for (size_t i = count; i-- > 0;) {
		struct sg_allocation *allocation = table[i];
		if (allocation->context != context)
			continue;
		if (sg_arena_holds(allocation->address))
			sg_device_give(allocation);
		else
			sg_host_give(allocation);
	}
}

enum sg_place sg_place_of(const struct sg_context *context, uint64_t address, size_t bytes, bool write)
{
	struct sg_allocation *allocation = sg_allocation_at(address);
	int device = context != NULL ? context->device : SG_ANY_DEVICE;

	if (bytes > UINT64_MAX - address)
		return SG_PLACE_NOWHERE;
	if (allocation == NULL)
		return address == 0 || sg_arena_holds(address) ? SG_PLACE_NOWHERE : SG_PLACE_PAGEABLE;
	for (;;) {
		size_t left = allocation->bytes - (size_t)(address - allocation->address);
		if (!sg_access_allows(allocation->access, device, write))
			return SG_PLACE_NOWHERE;
		if (bytes <= left)
			return SG_PLACE_KNOWN;
		/* Only mappings side by side make one piece of memory. */
		if (allocation->kind != SG_MEMORY_MAPPING)
			return sg_arena_holds(address) ? SG_PLACE_NOWHERE : SG_PLACE_PAGEABLE;
		address += left;
		bytes -= left;
		allocation = sg_allocation_of(address);
		if (allocation == NULL)
			return SG_PLACE_NOWHERE;
	}
}

bool sg_kernel_check(void *data, uint64_t address, size_t bytes, bool write)
{
	const struct sg_context *context = data;

	if (sg_arena_holds(address)) {
		int device = sg_arena_device(address);
		return sg_arena_check(address, bytes, context->device, write) &&
		       (device < 0 || device == context->device ||
		        (atomic_load_explicit(&context->peers, memory_order_relaxed) & 1u << device) != 0);
	}
	sg_lock();
	bool known = sg_allocation_at(address) != NULL && sg_place_of(context, address, bytes, write) == SG_PLACE_KNOWN;
	sg_unlock();
	return known;
}

uint64_t sg_kernel_alloc(void *data, size_t bytes, size_t align)
{
	if (align > SG_GRANULE)
		return 0;
	sg_lock();
	uint64_t address = sg_device_take(data, bytes, SG_MEMORY_VARIABLE, true);
	sg_unlock();
	return address;
}

void sg_kernel_free(void *data, uint64_t address)
{
	(void)data;
	sg_lock();
	struct sg_allocation *allocation = sg_allocation_of(address);
	if (allocation != NULL && allocation->kind == SG_MEMORY_VARIABLE)
		sg_device_give(allocation);
	sg_unlock();
}

void sg_kernel_wrote(void *data, uint64_t address, size_t bytes)
{
	(void)data;
	sg_probe_wrote(address, bytes);
}
