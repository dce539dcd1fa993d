/* A block at work: frames, warps, and how an instruction reaches its operands. */
#ifndef SOFTGPU_PTX_MACHINE_H
#define SOFTGPU_PTX_MACHINE_H

#include <stdatomic.h>
#include <string.h>

#include "tests/softgpu/ptx/code.h"
#include "tests/softgpu/ptx/scratch.h"

#define BARRIERS (CLUSTER_BARRIER + 1u)

/*
 * An activation of a function by some lanes of a warp. Lanes that call from the same frame and instruction share one,
 * so that they run together in the callee; lanes never overlap, so neither do their registers.
 */
struct frame {
	struct frame *parent, *next;
	const struct ptx_function *function;
	const struct insn *call;
	uint32_t return_pc, depth, lanes;
	uint64_t local_base;
	uint64_t *registers;
};

struct warp {
	uint64_t *banks[BANK_COUNT];
	struct block *block;

	/* The lanes that run now: same frame, same instruction. pc is already past the instruction that runs. */
	uint32_t group, pc;
	struct frame *frame;

	uint32_t live, at_sync, at_barrier;
	uint32_t index;
	uint32_t lane_pc[WARP_LANES];
	struct frame *lane_frame[WARP_LANES];
	uint32_t sync_mask[WARP_LANES]; /* of lanes in at_sync */
	uint32_t waiting[BARRIERS];     /* lanes, by barrier; their union is at_barrier */
	uint32_t cluster_arrived;       /* lanes that arrived at the cluster's barrier in this phase */
	bool rotate;                    /* a group used up its turn while others could run */
	struct frame *frames;
	uint64_t *special;
};

struct barrier {
	uint32_t expected; /* threads, or 0: all */
	uint32_t arrived;  /* by .arrive, which does not wait */
	uint32_t waiters;  /* lanes that wait, in all warps */
	uint32_t ones, votes;
};

struct launch;
struct cluster;

struct block {
	struct cluster *cluster;
	uint32_t rank; /* in it */
	struct launch *launch;
	const struct ptx_function *function;
	const struct ptx_memory *memory;
	struct warp *warps;
	uint32_t warp_count, thread_count;
	struct barrier barriers[BARRIERS];
	uint8_t *shared;
	uint64_t shared_bytes;
	uint8_t *local; /* local_bytes for each thread */
	uint64_t local_bytes;
	const uint8_t *params;
	uint64_t params_bytes;
	uint32_t ctaid[3];
	uint64_t instructions, limit;
	struct ptx_fault fault;
};

struct launch {
	const struct ptx_function *function;
	const struct ptx_launch *shape;
	uint32_t cluster[3]; /* blocks; one of one block unless said otherwise */
	bool explicit_cluster;
	_Atomic uint64_t next_cluster;
	uint64_t clusters;
	_Atomic bool stop;
	_Atomic bool faulted;
	struct ptx_fault fault; /* written by the one thread that set faulted */
};

/* Blocks that run together. */
struct cluster {
	struct block *blocks;
	uint32_t count;
	struct scratch scratch; /* all that it has */
};

/* Runs the blocks at hand to their end; the fault of one of them says how they ended. */
void ptx_cluster_run(struct cluster *cluster);

/* The launch that asked may have failed elsewhere: blocks look at this now and then. */
static inline bool block_must_stop(const struct block *block)
{
	return atomic_load_explicit(&block->launch->stop, memory_order_relaxed);
}

static inline uint64_t *slot(const struct warp *warp, uint32_t operand)
{
	return warp->banks[operand >> 30] + (size_t)(operand & 0x3fffffff) * WARP_LANES;
}

/* A byte of a lane's local memory; of its frames' together. */
static inline uint8_t *ptx_local_of(const struct warp *warp, unsigned lane, uint64_t at)
{
	return warp->block->local + (warp->index * WARP_LANES + lane) * warp->block->local_bytes + at;
}

/* Records a fault of the instruction that runs. Always STEP_FAULT. */
enum step ptx_fault(struct warp *warp, const struct insn *insn, unsigned lane, enum ptx_status status, uint64_t address,
                    const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Writes the program counter of lanes that leave the group. */
static inline void settle(struct warp *warp, uint32_t lanes, uint32_t pc)
{
	for (; lanes; lanes &= lanes - 1)
		warp->lane_pc[__builtin_ctz(lanes)] = pc;
}

/*
 * Of an instruction for a member mask, m: true when all its live members are here. Else the lanes wait at the
 * instruction, and those that its guard excludes go on behind it. m is NO_OPERAND for the forms without .sync, which
 * take whoever runs.
 */
bool ptx_gathered(struct warp *warp, const struct insn *insn, uint32_t mask);
/* Lanes end: they leave their frames and no longer count at barriers. */
void ptx_warp_exit(struct warp *warp, uint32_t lanes);
struct frame *ptx_frame_enter(struct warp *warp, const struct insn *call, uint32_t lanes, uint32_t return_pc);
/* step_cluster.c: the same of a cluster's barrier. */
void ptx_cluster_check(const struct cluster *cluster);
/* Lets go every barrier whose threads are all there. */
void ptx_barriers_check(struct block *block);

#if defined(__clang__)
#define INDEPENDENT
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/*
 * Runs the statements for each lane i of mask. Operands are the same slot or do not overlap, so lanes never depend on
 * each other and the loop over a full warp can be vectorised.
 */
#define LANES(mask, ...)                                                                                               \
	do {                                                                                                           \
		if ((mask) == UINT32_MAX) {                                                                            \
			INDEPENDENT for (unsigned i = 0; i < WARP_LANES; i++)                                          \
			{                                                                                              \
				__VA_ARGS__                                                                            \
			}                                                                                              \
		} else {                                                                                               \
			for (uint32_t rest_ = (mask); rest_; rest_ &= rest_ - 1) {                                     \
				unsigned i = (unsigned)__builtin_ctz(rest_);                                           \
				__VA_ARGS__                                                                            \
			}                                                                                              \
		}                                                                                                      \
	} while (0)

#define STEP(name) static enum step name(struct warp *warp, const struct insn *insn, uint32_t mask)

static inline float bits_f32(uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float value;

	memcpy(&value, &low, sizeof(value));
	return value;
}

static inline double bits_f64(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline uint32_t f32_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline uint64_t f64_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline uint64_t width_mask(unsigned bytes)
{
	return bytes >= 8 ? UINT64_MAX : (UINT64_C(1) << bytes * 8) - 1;
}

#endif
