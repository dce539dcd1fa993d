/* Where an image lies: in a loaded library, or in memory that the program may free. */
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>

#include "shim/kernels/image.h"
#include "shim/report/peek.h"

#define SEGMENTS 16

/* What the file of one object backs. */
struct segments {
	const struct link_map *object;
	ElfW(Addr) base;
	const void *dynamic;
	size_t count;
	struct {
		const uint8_t *start;
		size_t bytes;
		bool writable;
	} of[SEGMENTS];
};

static struct link_map *(*_Atomic find_object)(const void *address);
/* A library with thousands of containers loads one after the other. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct segments last;

void image_where_reset(void)
{
	pthread_mutex_init(&lock, NULL);
}

void image_set_object_finder(struct link_map *(*object_at)(const void *address))
{
	atomic_store(&find_object, object_at);
}

/* Where the loader has this object's program headers. Returns how many. */
static size_t program_headers(const struct link_map *object, const uint8_t **ret_table)
{
	ElfW(Ehdr) header;
	if (!*object->l_name) { /* the program itself; it may be loaded where it was linked to, and says nothing of that */
		*ret_table = (const uint8_t *)getauxval(AT_PHDR);
		return *ret_table ? getauxval(AT_PHNUM) : 0;
	}
	if (!peek(object->l_addr, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG))
		return 0;
	*ret_table = (const uint8_t *)object->l_addr + header.e_phoff;
	return header.e_phnum;
}

static void read_segments(const struct link_map *object, struct segments *ret)
{
	const uint8_t *table = NULL;
	size_t count = program_headers(object, &table);
	*ret = (struct segments){.object = object, .base = object->l_addr, .dynamic = object->l_ld};
	for (size_t i = 0; i < count && ret->count < SEGMENTS; i++) {
		ElfW(Phdr) header;
		if (!peek((uintptr_t)(table + i * sizeof header), &header, sizeof header))
			return;
		if (header.p_type != PT_LOAD)
			continue;
		ret->of[ret->count].start = (const uint8_t *)(object->l_addr + header.p_vaddr);
		ret->of[ret->count].bytes = header.p_filesz;
		ret->of[ret->count++].writable = header.p_flags & PF_W;
	}
}

static struct segments segments_of(const struct link_map *object)
{
	struct segments segments;
	pthread_mutex_lock(&lock);
	segments = last;
	pthread_mutex_unlock(&lock);
	if (segments.object == object && segments.base == object->l_addr && segments.dynamic == object->l_ld)
		return segments;
	read_segments(object, &segments);
	pthread_mutex_lock(&lock);
	last = segments;
	pthread_mutex_unlock(&lock);
	return segments;
}

static const struct link_map *object_at(const uint8_t *bytes)
{
	struct link_map *(*finder)(const void *) = atomic_load(&find_object);
	return finder ? finder(bytes) : NULL;
}

const struct link_map *image_holder(const uint8_t *bytes, size_t length, bool writable)
{
	const struct link_map *object = object_at(bytes);
	if (!object)
		return NULL;
	struct segments segments = segments_of(object);
	for (size_t i = 0; i < segments.count; i++) {
		size_t offset = (size_t)(bytes - segments.of[i].start);
		if (bytes >= segments.of[i].start && offset <= segments.of[i].bytes &&
		    length <= segments.of[i].bytes - offset && (writable || !segments.of[i].writable))
			return object;
	}
	return NULL;
}

uint64_t image_lead(const uint8_t *lead, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (size_t i = 0; i < length && i < IMAGE_LEAD_BYTES; i++)
		hash = (hash ^ lead[i]) * 0x100000001b3u;
	return hash;
}

/* What the loader says of the object is not looked at: another thread may be closing it. */
static bool still_held(const struct image *image)
{
	uint8_t lead[IMAGE_LEAD_BYTES];
	size_t bytes = image->length < sizeof lead ? image->length : sizeof lead;
	return image->object && object_at(image->bytes) == image->object &&
	       peek((uintptr_t)image->bytes, lead, bytes) && image_lead(lead, image->length) == image->lead;
}

bool image_present(const struct image *image)
{
	return image->copied || still_held(image);
}
