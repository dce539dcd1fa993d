/*
 * Clusters: blocks that run together, and reach each other's shared memory. All of them run on one host thread, in
 * turns, so that nothing here needs to be atomic. In the shared window the address of another block's memory has that
 * block's rank in its upper bits.
 */
#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/reach.h"
#include "tests/softgpu/ptx/steps.h"

#define RANK_SHIFT 24
#define OFFSET_MASK ((UINT64_C(1) << RANK_SHIFT) - 1)

uint8_t *ptx_shared_of(const struct block *block, uint64_t address, size_t bytes)
{
	uint64_t rank = address >> RANK_SHIFT;

	if (rank) {
		if (rank > block->cluster->count)
			return NULL;
		block = &block->cluster->blocks[rank - 1];
		address &= OFFSET_MASK;
	}
	return address <= block->shared_bytes && bytes <= block->shared_bytes - address ? block->shared + address : NULL;
}

const struct block *ptx_shared_owner(const struct block *block, uint64_t address)
{
	for (uint32_t n = 0; n < block->cluster->count; n++) {
		const struct block *other = &block->cluster->blocks[n];

		if (address - (uintptr_t)other->shared < other->shared_bytes)
			return other;
	}
	return NULL;
}

uint64_t ptx_shared_window(const struct block *block, uint64_t address)
{
	const struct block *owner = ptx_shared_owner(block, address);

	return !owner || owner == block
	               ? address - (uintptr_t)block->shared
	               : (uint64_t)(owner->rank + 1) << RANK_SHIFT | (address - (uintptr_t)owner->shared);
}

uint64_t ptx_shared_generic(const struct block *block, uint64_t window)
{
	const uint8_t *at = ptx_shared_of(block, window, 0);

	return at ? (uintptr_t)at : (uintptr_t)block->shared + window;
}

void ptx_cluster_check(const struct cluster *cluster)
{
	uint32_t live = 0;

	for (uint32_t n = 0; n < cluster->count; n++)
		for (uint32_t w = 0; w < cluster->blocks[n].warp_count; w++) {
			const struct warp *warp = &cluster->blocks[n].warps[w];

			live |= warp->live;
			if (warp->live & ~warp->cluster_arrived)
				return;
		}
	if (!live)
		return;
	for (uint32_t n = 0; n < cluster->count; n++)
		for (uint32_t w = 0; w < cluster->blocks[n].warp_count; w++) {
			struct warp *warp = &cluster->blocks[n].warps[w];

			for (uint32_t rest = warp->waiting[CLUSTER_BARRIER]; rest; rest &= rest - 1)
				warp->lane_pc[__builtin_ctz(rest)]++;
			warp->at_barrier &= ~warp->waiting[CLUSTER_BARRIER];
			warp->waiting[CLUSTER_BARRIER] = warp->cluster_arrived = 0;
		}
}

STEP(arrive)
{
	warp->cluster_arrived |= mask;
	ptx_cluster_check(warp->block->cluster);
	return STEP_NEXT;
}

/* A lane whose phase is over goes on; so does one that never arrived, which the ISA leaves open. */
STEP(wait)
{
	uint32_t waiting = mask & warp->cluster_arrived;

	if (!waiting)
		return STEP_NEXT;
	settle(warp, warp->group, warp->pc);
	settle(warp, waiting, warp->pc - 1);
	warp->waiting[CLUSTER_BARRIER] |= waiting;
	warp->at_barrier |= waiting;
	return STEP_TURN;
}

/* d: the same place in the shared memory of the block with rank b, as an address of a's kind. */
STEP(map)
{
	const struct block *block = warp->block;
	uint64_t *d = slot(warp, insn->d);
	const uint64_t *a = slot(warp, insn->a), *b = slot(warp, insn->b);

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);
		bool window = insn->space == SPACE_SHARED;
		const struct block *owner = window ? block : ptx_shared_owner(block, a[lane]);

		if (!owner || (uint32_t)b[lane] >= block->cluster->count)
			return ptx_fault(warp, insn, lane, PTX_FAULT_ADDRESS, a[lane],
			                 "mapa of 0x%llx to block %u of a cluster of %u", (unsigned long long)a[lane],
			                 (unsigned)b[lane], block->cluster->count);
		uint64_t rank = (uint32_t)b[lane];
		d[lane] = window ? (rank + 1) << RANK_SHIFT | (a[lane] & OFFSET_MASK)
		                 : (uintptr_t)block->cluster->blocks[rank].shared + (a[lane] - (uintptr_t)owner->shared);
	}
	return STEP_NEXT;
}

STEP(rank_of)
{
	const struct block *block = warp->block;
	uint64_t *d = slot(warp, insn->d);
	const uint64_t *a = slot(warp, insn->a);

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);
		uint64_t in_window = a[lane] >> RANK_SHIFT;
		const struct block *owner = insn->space == SPACE_SHARED ? NULL : ptx_shared_owner(block, a[lane]);

		d[lane] = insn->space == SPACE_SHARED && in_window ? (uint32_t)(in_window - 1)
		          : owner                                  ? owner->rank
		                                                   : block->rank;
	}
	return STEP_NEXT;
}

step_fn ptx_step_cluster(enum cluster_op op)
{
	static const step_fn steps[] = {
		[CLUSTER_ARRIVE] = arrive, [CLUSTER_WAIT] = wait, [CLUSTER_MAP] = map, [CLUSTER_RANK] = rank_of};

	return steps[op];
}
