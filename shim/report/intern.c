/*
 * site_intern(): a hash table that only grows, of text that is never freed. Lock-free, and free of malloc, so that any
 * hook and any fork child may call it.
 */
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/report/site.h"

#define BUCKETS 4096
#define CHUNK ((size_t)1 << 18)
#define TEXT_MAX ((size_t)16384)
#define TOTAL_MAX ((size_t)64 << 20) /* generated code makes names without end: beyond this they are not kept */

struct node {
	struct node *next;
	uint64_t hash;
	char text[];
};

struct chunk {
	_Atomic size_t used; /* may run past the end: then the chunk is full */
	alignas(16) char bytes[];
};

static struct node *_Atomic buckets[BUCKETS];
static struct chunk *_Atomic current;
static _Atomic size_t total;

static struct chunk *new_chunk(void)
{
	void *memory;

	if (atomic_fetch_add(&total, CHUNK) >= TOTAL_MAX)
		return NULL;
	memory = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

/* Zeroed memory for ever, aligned to 8; NULL when there is none. */
static void *take(size_t size)
{
	size = (size + 7) & ~(size_t)7;
	for (;;) {
		struct chunk *chunk = atomic_load(&current), *fresh;
		size_t at = chunk ? atomic_fetch_add(&chunk->used, size) : CHUNK;

		if (at + size <= CHUNK - sizeof(*chunk))
			return chunk->bytes + at;
		fresh = new_chunk();
		if (!fresh)
			return NULL;
		if (!atomic_compare_exchange_strong(&current, &chunk, fresh)) {
			munmap(fresh, CHUNK); /* another thread was faster */
			atomic_fetch_sub(&total, CHUNK);
		}
	}
}

static const char *search(const struct node *node, const struct node *end, uint64_t hash, const char *text)
{
	for (; node != end; node = node->next)
		if (node->hash == hash && !strcmp(node->text, text))
			return node->text;
	return NULL;
}

const char *site_intern(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;
	struct node *_Atomic *bucket;
	struct node *seen, *node;
	const char *found;
	size_t length;

	if (!text)
		return NULL;
	for (length = 0; text[length]; length++)
		hash = (hash ^ (unsigned char)text[length]) * 0x100000001b3u;
	bucket = &buckets[(hash ^ hash >> 32) % BUCKETS];
	seen = atomic_load_explicit(bucket, memory_order_acquire);
	found = search(seen, NULL, hash, text);
	if (found)
		return found;
	node = length <= TEXT_MAX ? take(offsetof(struct node, text) + length + 1) : NULL;
	if (!node)
		return "(name not kept)";
	node->hash = hash;
	memcpy(node->text, text, length + 1);
	node->next = seen;
	while (!atomic_compare_exchange_weak_explicit(bucket, &seen, node, memory_order_release, memory_order_acquire)) {
		/* What others put in front meanwhile may be this very text; our node is then left unused. */
		found = search(seen, node->next, hash, text);
		if (found)
			return found;
		node->next = seen;
	}
	return node->text;
}
