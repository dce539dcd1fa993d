/*
 * The heap of kernels: their malloc() and free(). Its blocks are in no table of allocations, since API calls may not
 * use them; each stays until some kernel of its context frees it, or the context ends.
 */
#include <stdlib.h>

#include "tests/softgpu/driver/memory.h"

enum { BUCKETS = 4096 };

struct piece {
	uint64_t address;
	size_t bytes;
	struct sg_context *context;
	struct piece *next;
};

static struct piece *buckets[BUCKETS];

static struct piece **bucket_of(uint64_t address)
{
	return &buckets[address / SG_GRANULE % BUCKETS];
}

uint64_t sg_kernel_heap_take(void *data, size_t bytes)
{
	struct sg_context *context = data;
	struct piece *fresh = bytes == 0 ? NULL : malloc(sizeof(*fresh));

	if (fresh == NULL)
		return 0;
	sg_lock();
	size_t limit = context->limits[CU_LIMIT_MALLOC_HEAP_SIZE];
	bool room = context->heap_used <= limit && bytes <= limit - context->heap_used;
	uint64_t address = 0;
	if (room && sg_heap_take(context->device, bytes, &address)) {
		struct piece **bucket = bucket_of(address);
		*fresh = (struct piece){address, bytes, context, *bucket};
		*bucket = fresh;
		context->heap_used += bytes;
		sg_arena_mark(address, bytes, SG_ACCESS_WRITE);
		fresh = NULL;
	}
	sg_unlock();
	free(fresh);
	return address;
}

static void give(struct piece **link)
{
	struct piece *piece = *link;

	*link = piece->next;
	piece->context->heap_used -= piece->bytes;
	sg_arena_mark(piece->address, piece->bytes, SG_ACCESS_NONE);
	sg_heap_give(piece->context->device, piece->address, piece->bytes);
	free(piece);
}

bool sg_kernel_heap_give(void *data, uint64_t address)
{
	sg_lock();
	struct piece **link = bucket_of(address);
	while (*link != NULL && ((*link)->address != address || (*link)->context != data))
		link = &(*link)->next;
	bool found = *link != NULL;
	if (found)
		give(link);
	sg_unlock();
	return found;
}

void sg_kernel_heap_end(const struct sg_context *context)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct piece **link = &buckets[i]; *link != NULL;) {
			if ((*link)->context == context)
				give(link);
			else
				link = &(*link)->next;
		}
}
