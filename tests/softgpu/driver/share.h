/* Memory that other processes may have too: a memfd of its own for each piece, whose name says what it is. */
#ifndef SOFTGPU_SHARE_H
#define SOFTGPU_SHARE_H

#include <stddef.h>

/* A descriptor of fresh memory of a device, or -1. */
int sg_share_create(int device, size_t bytes);

#endif
