/* Which kernels a PTX text has. */
#ifndef CUCONST_KERNELS_PTX_LIST_H
#define CUCONST_KERNELS_PTX_LIST_H

#include <stddef.h>

/*
 * Calls `each` for every kernel with a body, in no order, until it does not return 0; the name is not terminated. *ret_sm (may be NULL)
 * becomes what `.target` says, 90 for sm_90, 0 where it says nothing. Its answer, 0, -EINVAL (no PTX, or damaged: kernels in front of the
 * damage were told), -ENOMEM.
 */
int ptx_kernels(const char *text, size_t bytes, int (*each)(void *ctx, const char *name, size_t length), void *ctx,
                unsigned *ret_sm);

#endif
