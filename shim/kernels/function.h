/*
 * What is known about a launched function: its name and the layout of its parameters. Cached by handle; asked of the driver once.
 */
#ifndef CUCONST_KERNELS_FUNCTION_H
#define CUCONST_KERNELS_FUNCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/driver.h"

struct function_param {
	uint32_t offset, bytes; /* in the parameter block */
};

/* Fixed once published, never freed: graphs and pending checks point to it. */
struct function_info {
	CUfunction function; /* or a CUkernel that was passed as one */
	const char *name;    /* raw symbol, interned; "?" when the driver would not tell */
	bool readable;       /* the parameter layout is known */
	size_t param_count;
	size_t params_bytes; /* of the whole block */
	struct function_param params[];
};

/* Never NULL but for lack of memory. No lock on the path of a function that is known. Thread-safe. */
const struct function_info *function_info(CUfunction function);

/* A module or library was unloaded: handles may come again for other functions. */
void function_forget(void);

/*
 * The kernel verdict of one slot (design: clean, stores, near, unknown). No store paths are read yet, so every slot that points
 * into a protected range may be stored through: KERNEL_UNKNOWN, and the launch is verified on the device.
 */
enum kernel_verdict { KERNEL_CLEAN, KERNEL_STORES, KERNEL_NEAR, KERNEL_UNKNOWN };
enum kernel_verdict function_verdict(const struct function_info *info, int argument, uint32_t offset);

#endif
