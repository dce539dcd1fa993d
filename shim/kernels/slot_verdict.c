#include "shim/kernels/slot_verdict.h"

#define SLOT_BYTES 8

/* Offset in the parameter block. */
static uint64_t block_offset(const struct function_info *info, int argument, uint32_t offset)
{
	uint64_t start = argument >= 0 && (size_t)argument < info->param_count ? info->params[argument].offset : 0;
	return start + offset;
}

uint32_t slot_index(const struct function_info *info, int argument, uint32_t offset)
{
	uint64_t at = block_offset(info, argument, offset);
	return at % SLOT_BYTES ? SLOT_NOWHERE : (uint32_t)(at / SLOT_BYTES);
}

static void join(struct slot_paths *into, const struct slot_paths *other)
{
	into->use = other->use > into->use ? other->use : into->use;
	into->compared |= other->compared;
	into->only_base = false;
}

enum kernel_verdict slot_verdict(const struct function_info *info, const struct kernel_paths *paths, int argument,
                                 uint32_t offset, struct slot_paths *ret_may)
{
	uint64_t at = block_offset(info, argument, offset), first = at / SLOT_BYTES;
	bool across = at % SLOT_BYTES;
	*ret_may = (struct slot_paths){.use = SLOT_STORE, .compared = true};
	/* Parameters that the code does not have: what was read is not what runs. */
	if (!paths || first + across >= paths->slot_count)
		return KERNEL_UNKNOWN;
	*ret_may = paths->slots[first];
	if (across)
		join(ret_may, &paths->slots[first + 1]);
	if (ret_may->use == SLOT_STORE)
		return KERNEL_STORES;
	return paths->reason == PATHS_CLEAR ? KERNEL_CLEAN : KERNEL_UNKNOWN;
}

const char *kernel_verdict_name(enum kernel_verdict verdict)
{
	static const char *const names[] = {
		[KERNEL_CLEAN] = "clean", [KERNEL_NEAR] = "near", [KERNEL_UNKNOWN] = "unknown", [KERNEL_STORES] = "stores"};
	return names[verdict];
}
