/* From a lane's address to bytes of the host, with every check a launch owes its memory. */
#ifndef SOFTGPU_PTX_REACH_H
#define SOFTGPU_PTX_REACH_H

#include "tests/softgpu/ptx/machine.h"

struct reach {
	uint64_t at[WARP_LANES]; /* host addresses */
	uint32_t global;         /* lanes whose bytes are global memory */
};

/*
 * Checks insn's address (a + imm in insn->space) for each lane of mask: alignment to bytes, a power of two, and
 * liveness.
 */
enum step ptx_reach(struct warp *warp, const struct insn *insn, uint32_t mask, size_t bytes, bool write,
                    struct reach *reach);
/* Bytes at a generic address of a lane, for reading; NULL when they are not live. */
const uint8_t *ptx_reach_read(const struct warp *warp, unsigned lane, uint64_t address, size_t bytes);
/*
 * step_cluster.c: bytes at an address of the shared window, of this block or another of its cluster; NULL when they are
 * not there.
 */
uint8_t *ptx_shared_of(const struct block *block, uint64_t address, size_t bytes);
/* The block of the cluster whose shared memory holds a generic address; NULL: none. */
const struct block *ptx_shared_owner(const struct block *block, uint64_t address);
/* From a generic address to one of the shared window, and back. */
uint64_t ptx_shared_window(const struct block *block, uint64_t address);
uint64_t ptx_shared_generic(const struct block *block, uint64_t window);
/* Tells memory->wrote of a store that happened. */
void ptx_reach_wrote(struct warp *warp, const struct reach *reach, size_t bytes);

#endif
