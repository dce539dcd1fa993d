/* What the scheduler and the launcher share. */
#ifndef SOFTGPU_PTX_RUN_H
#define SOFTGPU_PTX_RUN_H

#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/steps.h"

/*
 * A frame of the function in the warp's list, its registers zeroed and its other fields unset; NULL when there is no
 * memory.
 */
struct frame *ptx_frame_new(struct warp *warp, const struct ptx_function *function);

static inline bool ptx_is_warp_sync(const struct insn *insn)
{
	return insn->run == ptx_step_warp(WARP_SYNC);
}

#endif
