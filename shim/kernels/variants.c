#include "shim/kernels/variants.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "shim/hash.h"
#include "shim/kernels/images_internal.h"

#define GUARDS 48 /* of one variant: an answer that hangs on more than that is not met again */
#define ASKED 24  /* how often variants of one function are worked out */

/* All variants, each once, since functions that are loaded again and again must not get new ones. */
struct kept {
	UT_hash_handle hh;
	struct variant variant;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *all;
static uint16_t numbers; /* that were given */

void variants_reset(void)
{
	pthread_mutex_init(&lock, NULL);
}

static bool holds(const struct variant_guard *guard, const uint8_t *block)
{
	uint32_t word;
	memcpy(&word, block + guard->offset, sizeof word);
	return variant_guard_holds(guard, word);
}

static bool fits(const struct variant *variant, const uint8_t *block)
{
	for (size_t i = 0; i < variant->guard_count; i++)
		if (!holds(&variant->guards[i], block))
			return false;
	return true;
}

static const struct variant *find(struct function_variants *variants, const uint8_t *block)
{
	for (size_t i = 0; i < FUNCTION_VARIANTS; i++) {
		const struct variant *variant = atomic_load_explicit(&variants->of[i], memory_order_acquire);
		if (!variant || fits(variant, block))
			return variant;
	}
	return NULL;
}

/* False: more than are kept. */
static bool add_guards(const struct paths_values *values, struct variant *variant)
{
	for (uint32_t offset = 0; offset + 4 <= values->count; offset += 4) {
		struct variant_guard guard = {.offset = offset, .small = values->used[offset] == VALUE_SMALL};
		for (unsigned i = 0; i < 4; i++)
			if (values->used[offset + i] == VALUE_EXACT)
				guard.mask |= 0xffu << 8 * i;
		if (!guard.mask && !guard.small)
			continue;
		if (variant->guard_count == GUARDS)
			return false;
		memcpy(&guard.value, values->bytes + offset, sizeof guard.value);
		guard.value &= guard.mask;
		variant->guards[variant->guard_count++] = guard;
	}
	return true;
}

/* The variant of that content. Takes over the new one. NULL: no memory. */
static const struct variant *intern(struct kept *fresh)
{
	/* The paths are one pointer for each content, and there are no gaps. */
	const void *key = &fresh->variant.paths;
	size_t bytes = sizeof fresh->variant - offsetof(struct variant, paths) +
	               fresh->variant.guard_count * sizeof fresh->variant.guards[0];
	struct kept *kept = NULL;
	pthread_mutex_lock(&lock);
	HASH_FIND(hh, all, key, bytes, kept);
	if (!kept) {
		fresh->variant.number = numbers < UINT16_MAX ? ++numbers : 0;
		HASH_ADD_KEYPTR(hh, all, key, bytes, fresh);
		kept = hash_took(fresh) ? fresh : NULL;
	}
	pthread_mutex_unlock(&lock);
	if (kept != fresh)
		free(fresh);
	return kept ? &kept->variant : NULL;
}

/* Which bytes of the block are parameters: what lies between them is whatever the caller's memory had. */
static void mark_known(const struct function_info *info, uint8_t *known)
{
	memset(known, VALUE_UNKNOWN, VARIANT_BLOCK_BYTES);
	for (size_t i = 0; i < info->param_count; i++)
		memset(known + info->params[i].offset, VALUE_EXACT, info->params[i].bytes);
}

/* *ret_new: another thread has not brought the same meanwhile. */
static const struct variant *work_out(const struct function_info *info, const uint8_t *block, bool *ret_new)
{
	uint8_t known[VARIANT_BLOCK_BYTES], used[VARIANT_BLOCK_BYTES] = {0};
	struct paths_values values = {block, known, used, info->params_bytes, NULL};
	uint64_t epoch = function_epoch(), load;
	const struct kernel_paths *paths;
	mark_known(info, known);
	if (!images_paths_for(info, &values, &paths, &load))
		return NULL;
	struct kept *fresh = calloc(1, sizeof *fresh + GUARDS * sizeof fresh->variant.guards[0]);
	if (!fresh)
		return NULL;
	fresh->variant.paths = paths;
	if (!add_guards(&values, &fresh->variant)) {
		free(fresh);
		return NULL;
	}
	const struct variant *variant = intern(fresh);
	if (variant)
		*ret_new = function_add_variant(info, variant, load, epoch);
	return variant;
}

static bool is_askable(const struct function_info *info)
{
	return info->readable && info->params_bytes <= VARIANT_BLOCK_BYTES;
}

const struct variant *function_known_variant(const struct function_info *info, const uint8_t *block)
{
	struct function_variants *variants = is_askable(info) ? function_variants(info) : NULL;
	return variants ? find(variants, block) : NULL;
}

const struct variant *function_variant(const struct function_info *info, const uint8_t *block)
{
	if (!is_askable(info))
		return NULL;
	struct function_variants *variants = function_variants(info);
	if (!variants)
		return NULL;
	const struct variant *variant = find(variants, block);
	if (!variant && !atomic_load_explicit(&variants->of[FUNCTION_VARIANTS - 1], memory_order_relaxed) &&
	    atomic_load_explicit(&variants->asked, memory_order_relaxed) < ASKED) {
		bool new = true;
		int saved = errno;
		variant = work_out(info, block, &new);
		errno = saved;
		/* Threads that begin with the same values have used one attempt. */
		if (new)
			atomic_fetch_add_explicit(&variants->asked, 1, memory_order_relaxed);
	}
	return variant;
}

const struct kernel_paths *function_paths_for(const struct function_info *info, const uint8_t *block)
{
	const struct variant *variant = function_variant(info, block);
	return variant ? variant->paths : NULL;
}
