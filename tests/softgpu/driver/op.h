/*
 * An operation: what a stream runs and what a graph's node holds. Every asynchronous call is turned into one, checked
 * when it is made, and run later by a stream's thread, or kept in a graph.
 */
#ifndef SOFTGPU_OP_H
#define SOFTGPU_OP_H

#include "tests/softgpu/driver/core.h"

struct ptx_function;
struct sg_block;
struct sg_conditional;
struct sg_context;
struct sg_event;
struct sg_exec;
struct sg_function;
struct sg_graph;
struct sg_stream;

enum sg_op_kind {
	SG_OP_EMPTY,
	SG_OP_COPY,
	SG_OP_SET,
	SG_OP_KERNEL,
	SG_OP_HOST,
	SG_OP_CALLBACK,
	SG_OP_RECORD,
	SG_OP_WAIT,
	SG_OP_VALUES,
	SG_OP_RELEASE, /* memory goes back to its pool */
	SG_OP_ALLOC,   /* of a graph's memory: nothing to run, see graph_memory.h */
	SG_OP_FREE,
	SG_OP_GRAPH,       /* in a node: the child graph; in an instantiated graph or a stream: an instantiated one */
	SG_OP_CONDITIONAL, /* the same of each body, see conditional.h */
};

/* Rows of bytes. Strides are in bytes; a plain copy is one row. */
struct sg_copy {
	CUDA_MEMCPY3D asked; /* as the application would see it in a graph's node */
	uint64_t to, from;
	size_t width, height, depth;
	size_t to_pitch, to_slice, from_pitch, from_slice;
	bool to_pageable, from_pageable; /* memory the driver does not know: accessed with care, it may not be there */
	void *staged; /* owned: the bytes of a pageable source, dense, taken when the call was made */
};

struct sg_set {
	uint64_t to;
	size_t pitch, width, height; /* width in elements */
	unsigned value, element;     /* element in bytes: 1, 2, 4 */
};

struct sg_launch {
	struct sg_function *function;
	CUfunction asked; /* what the application passed, which may be a CUkernel */
	unsigned grid[3], block[3], shared;
	unsigned cluster[3]; /* 0: as the kernel says */
	bool cooperative;
	void *params; /* owned: one block as ptx_function_param lays it out */
	size_t params_bytes;
	void **pointers; /* owned: where each parameter starts in params, what a node's kernelParams answers */
};

struct sg_op {
	enum sg_op_kind kind;
	struct sg_context *context; /* whose kernel or memory; NULL for none in particular */
	union {
		struct sg_copy copy;
		struct sg_set set;
		struct sg_launch launch;
		struct {
			CUhostFn function;
			void *data;
		} host;
		struct {
			CUstreamCallback function;
			CUstream stream;
			void *data;
		} callback;
		struct {
			struct sg_event *event; /* a reference */
			uint64_t recording; /* which cuEventRecord this is, so that an overtaken one leaves the event alone */
		} record, wait;
		struct {
			CUstreamBatchMemOpParams *list; /* owned */
			unsigned count, flags;
		} values;
		struct {
			uint64_t address;
		} release;
		struct sg_block *block; /* of ALLOC and FREE: a reference */
		struct {
			struct sg_graph *graph; /* owned by its node */
			struct sg_exec *exec;   /* owned */
		} child;
		struct {
			struct sg_conditional *handle; /* a reference */
			CUgraphConditionalNodeType type;
			unsigned size;
			struct sg_graph **bodies; /* owned by its node */
			struct sg_exec **execs;   /* owned */
		} conditional;
	};
};

/*
 * With the lock held. A deep copy; false without memory (and *ret_op is untouched). A child graph is not copied here:
 * see graph.h.
 */
bool sg_op_clone(const struct sg_op *op, struct sg_op *ret_op);
/* With the lock held. Frees what the operation owns and makes it empty. */
void sg_op_clear(struct sg_op *op);
/* Without the lock. Runs it to the end on this thread. `stream` is whose thread this is. */
CUresult sg_op_run(struct sg_op *op, struct sg_stream *stream);

/* The instantiated graphs inside an operation. */
struct sg_exec **sg_op_execs(const struct sg_op *op, size_t *ret_count);

/* copy.c, set.c, launch.c, memop.c, pool.c, exec.c: one runner each. */
CUresult sg_copy_run(struct sg_copy *copy);
CUresult sg_set_run(const struct sg_set *set);
CUresult sg_launch_run(const struct sg_launch *launch);
CUresult sg_values_run(const CUstreamBatchMemOpParams *list, unsigned count, struct sg_stream *stream);
void sg_pool_release(uint64_t address);
CUresult sg_exec_run(struct sg_exec *exec, struct sg_stream *stream);
void sg_exec_free(struct sg_exec *exec);
struct sg_exec *sg_exec_clone(const struct sg_exec *exec);
void sg_graph_free(struct sg_graph *graph);

/*
 * copy.c: checks an asked copy and lays it out. Lock held. The device of each side's context needs access to that
 * side's memory (NULL: any device's access will do). A copy of no bytes succeeds with width 0.
 */
CUresult sg_copy_plan(const CUDA_MEMCPY3D *asked, const struct sg_context *to_context,
                      const struct sg_context *from_context, struct sg_copy *ret_copy);
/*
 * Takes the bytes of a pageable source now, as the driver does for asynchronous copies. False when they cannot be read.
 */
bool sg_copy_stage(struct sg_copy *copy);
/* set.c: the same for a set. */
CUresult sg_set_plan(const struct sg_context *context, uint64_t to, size_t pitch, unsigned value, unsigned element,
                     size_t width, size_t height, struct sg_set *ret_set);
/*
 * launch.c: the same for a launch of a function that sg_function_in found; what it returns in ret_launch is owned by
 * the caller.
 */
CUresult sg_launch_plan(const CUlaunchConfig *config, CUfunction asked, struct sg_function *function, void **parameters,
                        void **extra, struct sg_launch *ret_launch);
/* The interpreter's function of a launch. */
const struct ptx_function *sg_launch_ptx(const struct sg_launch *launch);
/* memop.c: checks a batch; the list is copied. */
CUresult sg_values_plan(const struct sg_context *context, const CUstreamBatchMemOpParams *list, unsigned count,
                        unsigned flags, struct sg_op *ret_op);

#endif
