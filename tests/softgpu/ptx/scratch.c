/* Slabs: those that no launch has are in one list, up to a bound. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/ptx.h"
#include "tests/softgpu/ptx/scratch.h"

#define KEPT_BYTES ((size_t)64 << 20)
#define ALIGN_MOST 4096

/* At its memory's start. */
struct slab {
	struct slab *next;
	size_t bytes, used; /* the header counts */
};

#ifdef __SANITIZE_ADDRESS__
size_t ptx_slab_bytes = 0; /* so that it sees what runs over a piece, or outlives it */
#else
size_t ptx_slab_bytes = (size_t)1 << 20;
#endif

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct slab *kept;
static size_t kept_bytes;

static struct slab *take_kept(size_t bytes)
{
	struct slab **at = &kept, *slab;

	pthread_mutex_lock(&kept_lock);
	while (*at && (*at)->bytes < bytes)
		at = &(*at)->next;
	slab = *at;
	if (slab) {
		*at = slab->next;
		kept_bytes -= slab->bytes;
	}
	pthread_mutex_unlock(&kept_lock);
	return slab;
}

/* Where a piece comes to, from the slab's start, when that much is used. */
static size_t place_behind(size_t used, size_t align)
{
	return (used + align - 1) & ~(align - 1);
}

static struct slab *slab_new(size_t bytes)
{
	struct slab *slab;
	void *memory;

	if (bytes < ptx_slab_bytes)
		bytes = ptx_slab_bytes;
	slab = take_kept(bytes);
	if (!slab) {
		if (posix_memalign(&memory, ALIGN_MOST, bytes) != 0)
			return NULL;
		slab = memory;
		slab->bytes = bytes;
	}
	slab->used = sizeof(*slab);
	return slab;
}

void *scratch_get(struct scratch *scratch, size_t bytes, size_t align)
{
	struct slab *slab = scratch->slabs;

	if (!slab || ptx_slab_bytes == 0 || place_behind(slab->used, align) + bytes > slab->bytes) {
		slab = slab_new(place_behind(sizeof(*slab), align) + bytes);
		if (!slab)
			return NULL;
		slab->next = scratch->slabs;
		scratch->slabs = slab;
	}
	size_t place = place_behind(slab->used, align);
	slab->used = place + bytes;
	return memset((uint8_t *)slab + place, 0, bytes);
}

void scratch_end(struct scratch *scratch)
{
	while (scratch->slabs) {
		struct slab *slab = scratch->slabs;
		bool keep = false;

		scratch->slabs = slab->next;
		pthread_mutex_lock(&kept_lock);
		if (ptx_slab_bytes != 0 && kept_bytes + slab->bytes <= KEPT_BYTES) {
			keep = true;
			slab->next = kept;
			kept = slab;
			kept_bytes += slab->bytes;
		}
		pthread_mutex_unlock(&kept_lock);
		if (!keep)
			free(slab);
	}
}
