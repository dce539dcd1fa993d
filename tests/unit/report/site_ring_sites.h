/* Places of calls that are made of one number each, so that a mixture of two is seen. */
#ifndef CUCONST_TESTS_UNIT_SITE_RING_SITES_H
#define CUCONST_TESTS_UNIT_SITE_RING_SITES_H

#include "shim/report/site_ring.h"

/* Never read as text: the ring compares and keeps pointers. */
static inline const char *text_of(uint64_t seed, int kind)
{
	return (const char *)(uintptr_t)(0x10000 + seed * 64 + (uint64_t)kind);
}

static inline struct site site_of(uint64_t seed)
{
	struct site site = {.python_count = (int)(seed % (SITE_PYTHON_FRAMES + 1)),
	                    .python_cut = seed & 1,
	                    .native_count = 1 + (int)(seed % SITE_NATIVE_FRAMES)};
	for (int i = 0; i < site.python_count; i++)
		site.python[i] = (struct site_frame){text_of(seed, i), text_of(seed, i + 16), (int)seed + i};
	for (int i = 0; i < site.native_count; i++)
		site.native[i] = (void *)(uintptr_t)text_of(seed, i + 32);
	return site;
}

static inline bool same_site(const struct site *one, const struct site *other)
{
	if (one->python_count != other->python_count || one->python_cut != other->python_cut ||
	    one->native_count != other->native_count)
		return false;
	for (int i = 0; i < one->python_count; i++)
		if (one->python[i].file != other->python[i].file ||
		    one->python[i].function != other->python[i].function || one->python[i].line != other->python[i].line)
			return false;
	for (int i = 0; i < one->native_count; i++)
		if (one->native[i] != other->native[i])
			return false;
	return true;
}

#endif
