#include "shim/kernels/slot_verdict.h"

uint32_t slot_index(const struct function_info *info, int argument, uint32_t offset)
{
	uint64_t at = slot_block_offset(info, argument, offset);
	return at % SLOT_BYTES ? SLOT_NOWHERE : (uint32_t)(at / SLOT_BYTES);
}

const char *kernel_verdict_name(enum kernel_verdict verdict)
{
	static const char *const names[] = {
		[KERNEL_CLEAN] = "clean", [KERNEL_NEAR] = "near", [KERNEL_UNKNOWN] = "unknown", [KERNEL_STORES] = "stores"};
	return names[verdict];
}
