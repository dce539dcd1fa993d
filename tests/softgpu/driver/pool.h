/* Memory pools and stream-ordered allocation. */
#ifndef SOFTGPU_POOL_H
#define SOFTGPU_POOL_H

#include "tests/softgpu/driver/memory.h"

/* With the lock held. The allocation goes back to its pool at once; nobody uses it any more. */
void sg_pool_free_now(struct sg_allocation *allocation);

#endif
