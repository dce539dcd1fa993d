/* Answers about functions that launches and occupancy need too. */
#ifndef SOFTGPU_FUNCTION_H
#define SOFTGPU_FUNCTION_H

#include "tests/softgpu/driver/module.h"

enum {
	SG_SHARED_DEFAULT = 48 << 10,
	SG_SHARED_OPTIN = 232448,
	SG_SHARED_SM = 233472,
	SG_SHARED_RESERVED = 1024,
	SG_SM_COUNT = 132,
	SG_SM_THREADS = 2048,
	SG_SM_BLOCKS = 32
};

/* Of dynamic shared memory, before anybody asks for more: what static memory leaves of 48 KiB. */
int sg_default_dynamic_shared(const struct ptx_function *ptx);
/* With the lock held. How many blocks fit on one multiprocessor. */
int sg_blocks_per_sm(const struct sg_function *function, int block_threads, size_t dynamic_shared);

#endif
