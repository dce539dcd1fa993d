/*
 * One hooked call on its way: hook -> effect_RULE() fills in what it writes -> judge_before() -> driver -> judge_after().
 * Lives on the hook's stack; judge_after() gives back what it holds. One thread.
 */
#ifndef CUCONST_EFFECTS_CALL_H
#define CUCONST_EFFECTS_CALL_H

#include "registry/registry.h"
#include "shim/driver.h"
#include "shim/effects/effect.h"
#include "shim/effects/launch_draft.h"
#include "shim/effects/told.h"
#include "shim/hook_state.h"
#include "shim/kernels/slot_verdict.h"

/* A write by contract. */
struct call_write {
	struct extent extent;
	const char *node; /* kind of graph node, static text; NULL: the call itself */
	bool maybe;       /* the node may not run: it is in the body of a condition */
};

/* A parameter slot of a kernel that holds an address in a protected range, or beside one, and that the kernel may store through. */
struct call_slot {
	const struct function_info *function;
	const struct kernel_paths *paths; /* NULL: not known */
	enum kernel_verdict verdict;      /* KERNEL_NEAR, or KERNEL_UNKNOWN with a value outside: beside the range */
	struct slot_paths may;
	int argument;
	uint32_t offset; /* bytes into that argument */
	uint64_t value;
	struct range *range;           /* a reference held */
	registry_handle handle;        /* of the range */
	bool beside;                   /* its value lies beside the range, not in it */
	bool seldom;                   /* in a range, and checked as seldom as one beside it */
	registry_handle neighbourhood; /* that its value lies in; 0: not known, or several (verdict/area.h) */
	uint64_t twin;                 /* the address that the launch gets in place of `value`; 0: none */
};

#define CALL_INLINE_WRITES 4
#define CALL_INLINE_SLOTS 16
#define CALL_INLINE_COPY 1024
#define CALL_INLINE_JUDGEMENT 768 /* of a launch */

struct call {
	const struct entrypoint *entry;
	void *caller;    /* return address of the hook */
	CUstream stream; /* never NULL: CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a real one */
	uint64_t graph;  /* CUgraphExec, for graph launches */
	uint64_t time;   /* of a launch: look_launch_time() when it was made; 0: no launch */
	bool deferred;   /* kernels are recorded, not run: a capture, a node that is added or edited */
	bool concerned;  /* a parameter of a kernel holds an address in an allocation with a protected range */
	enum kernel_verdict verdict; /* the worst of its slots */

	struct call_write *writes;
	size_t write_count, write_room;
	struct call_slot *slots;
	size_t slot_count, slot_room;

	bool memop; /* stream memory operations: the driver takes any address, and the context dies of a wrong one */
	unsigned attributes; /* cuPointerGetAttributes: how many were asked for */
	CUresult refused; /* by the rule itself, whatever the mode: the program gets this, and the driver is not called */

	/* Runs after the driver, with its result; for state tracking. `state` is its own. */
	void (*after)(struct call *call, CUresult result);
	union {
		void *pointer;
		uint64_t number;
	} state[4];
	struct range **ended; /* references: ranges whose memory this call takes away */
	size_t ended_count;
	bool overrun; /* wrong, which only we can tell: writes beyond its allocation, above all */

	/* A launch's parameters, where the hook has them, and so where it takes them from for the driver. NULL: they must stay as they are. */
	void ***params;
	void ***extra;
	bool overlaps; /* the launch may begin before the one before it has ended */
	void *copy;    /* heap memory of parameters that were replaced */

	struct memo_draft *draft; /* of a launch that may be kept; lives as long as the call is worked out and judged. NULL: none */
	struct judgement *judgement; /* verdict/judge.c's, between before and after */
	struct call_write inline_writes[CALL_INLINE_WRITES];
	struct call_slot inline_slots[CALL_INLINE_SLOTS];
	struct memo_draft inline_draft;
	char inline_copy[CALL_INLINE_COPY] __attribute__((aligned(16)));
	char inline_judgement[CALL_INLINE_JUDGEMENT] __attribute__((aligned(16)));
};

void call_begin(struct call *call, enum entry_id entry, CUstream stream, void *caller);

/* Adds a write; empty boxes and boxes that touch no protected range are dropped here. */
void call_add_write(struct call *call, const struct extent *extent, const char *node);
void call_add_maybe(struct call *call, const struct extent *extent, const char *node);

/* Adds a slot; takes over the range reference. */
void call_add_slot(struct call *call, const struct call_slot *slot);

/*
 * How many of `count` elements of a list of the program's there are, before it leaves memory that can be read: the driver refuses most calls with a wrong count
 * before it looks at the list. A system call for each page beyond the first.
 */
size_t call_list_count(const void *list, size_t element_bytes, size_t count);

/* Gives back references and memory. */
void call_end(struct call *call);

/*
 * Rules of entrypoints.def: one for each form of arguments.
 */
static inline uint64_t address_of(const void *pointer)
{
	return (uint64_t)pointer;
}

/* copies.c */
void effect_line(struct call *call, uint64_t address, uint64_t bytes);
void effect_rows(struct call *call, uint64_t address, uint64_t pitch, uint64_t width, uint64_t rows);
void effect_batch(struct call *call, const CUdeviceptr *addresses, const size_t *sizes, size_t count);
void effect_batch3d(struct call *call, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t count);
void effect_decompress(struct call *call, const CUmemDecompressParams *params, size_t count);
bool effect_copy3d_extent(const CUDA_MEMCPY3D *copy, struct extent *ret_extent);
/* Old and new structs share their field names; sizes differ. NULL: the driver will refuse. */
#define effect_copy2d(call, copy)                                                                                      \
	do {                                                                                                           \
		if (copy)                                                                                              \
			effect_copy_box(call, (copy)->dstMemoryType, (copy)->dstDevice, (copy)->dstHost,               \
			                (copy)->dstXInBytes, (copy)->dstY, 0, (copy)->dstPitch, 0,                     \
			                (copy)->WidthInBytes, (copy)->Height, 1);                                      \
	} while (0)
#define effect_copy3d(call, copy)                                                                                      \
	do {                                                                                                           \
		if (copy)                                                                                              \
			effect_copy_box(call, (copy)->dstMemoryType, (copy)->dstDevice, (copy)->dstHost,               \
			                (copy)->dstXInBytes, (copy)->dstY, (copy)->dstZ, (copy)->dstPitch,             \
			                (copy)->dstHeight, (copy)->WidthInBytes, (copy)->Height, (copy)->Depth);       \
	} while (0)
void effect_copy_box(struct call *call, CUmemorytype type, uint64_t device, void *host, uint64_t x, uint64_t y,
                     uint64_t z, uint64_t pitch, uint64_t height, uint64_t width, uint64_t rows, uint64_t slices);

/* memops.c; the driver refuses longer lists */
#define MEMOPS_MAX 256
void effect_memop(struct call *call, uint64_t address, uint64_t bytes);
void effect_memops(struct call *call, const CUstreamBatchMemOpParams *params, unsigned count);
bool effect_memop_extent(const CUstreamBatchMemOpParams *param, struct extent *ret_extent);

/* frees.c */
void effect_free(struct call *call, uint64_t address);
void effect_unmap(struct call *call, uint64_t address, uint64_t bytes);
void effect_context_end(struct call *call, CUcontext context);
void effect_primary_end(struct call *call, CUdevice device);
void effect_primary_reset(struct call *call, CUdevice device);
void effect_green_end(struct call *call, CUgreenCtx green);

/* modules.c */
void effect_module_load(struct call *call, CUmodule *module, const void *image);
void effect_module_load_file(struct call *call, CUmodule *module, const char *path);
void effect_library_load(struct call *call, CUlibrary *library, const void *image);
void effect_library_load_file(struct call *call, CUlibrary *library, const char *path);
void effect_kernel_function(struct call *call, CUfunction *function, CUkernel kernel);
/* After the driver's call: is nothing left to be done? Some libraries make it before each launch. */
bool effect_kernel_function_is_known(CUfunction function);
static inline bool effect_kernel_function_is_done(const CUfunction *function, CUkernel kernel)
{
	(void)kernel;
	return HOOK_LIKELY(told_has(*function)) || effect_kernel_function_is_known(*function);
}
void effect_library_module(struct call *call, CUmodule *module, CUlibrary library);
void effect_module_end(struct call *call, const void *handle);

/* attributes.c */
void effect_attribute(struct call *call, void *data, CUpointer_attribute attribute, uint64_t address);
void effect_attributes(struct call *call, unsigned count, CUpointer_attribute *attributes, void **data, uint64_t address);

/* mappings.c */
void effect_reserve(struct call *call, CUdeviceptr *start, uint64_t bytes);
void effect_map(struct call *call, uint64_t start, uint64_t bytes);
void effect_access(struct call *call, uint64_t start, uint64_t bytes, const CUmemAccessDesc *access, size_t count);
void effect_retain(struct call *call, uint64_t address);
void effect_unreserve(struct call *call, uint64_t start, uint64_t bytes);

/* launches.c */
void effect_launch(struct call *call, CUfunction function, void ***params, void ***extra);
void effect_launch_config(struct call *call, const CUlaunchConfig *config, CUfunction function, void ***params,
                          void ***extra);
void effect_launch_list(struct call *call, const CUDA_LAUNCH_PARAMS *list, unsigned count);
void effect_unjudged_launch(struct call *call);
void effect_sync(struct call *call);
void effect_sync_stream(struct call *call);
void effect_sync_context(struct call *call, CUcontext context);

/* verdict/lifecycle.c */
void effect_init(struct call *call);

/* capture.c, graphs.c, graph_nodes.c */
void effect_capture_begin(struct call *call);
void effect_capture_end(struct call *call);
void effect_stream_destroy(struct call *call, CUstream stream);
void effect_instantiate(struct call *call, CUgraphExec *exec, CUgraph graph);
void effect_exec_destroy(struct call *call, CUgraphExec exec);
void effect_exec_kernel_v1(struct call *call, CUgraphExec exec, CUgraphNode node,
                           const CUDA_KERNEL_NODE_PARAMS_v1 *params);
void effect_exec_kernel(struct call *call, CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params);
void effect_exec_memcpy(struct call *call, CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *params);
void effect_exec_memset(struct call *call, CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params);
void effect_exec_memops(struct call *call, CUgraphExec exec, CUgraphNode node,
                        const CUDA_BATCH_MEM_OP_NODE_PARAMS *params);
void effect_exec_child(struct call *call, CUgraphExec exec, CUgraphNode node, CUgraph child);
void effect_exec_node(struct call *call, CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params);
void effect_exec_update_v1(struct call *call, CUgraphExec exec, CUgraph graph, CUgraphNode *error,
                           CUgraphExecUpdateResult *why);
void effect_exec_update(struct call *call, CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info);
void effect_exec_enable(struct call *call, CUgraphExec exec, CUgraphNode node, unsigned enabled);
void effect_graph_launch(struct call *call, CUgraphExec exec);
void effect_graph_kernel_v1(struct call *call, const CUDA_KERNEL_NODE_PARAMS_v1 *params);
void effect_graph_kernel(struct call *call, const CUDA_KERNEL_NODE_PARAMS *params);
void effect_graph_node(struct call *call, const CUgraphNodeParams *params);
void effect_graph_add(struct call *call, CUgraphNode *node, CUgraph graph, CUgraphNodeParams *params);
void effect_graph_destroy(struct call *call, CUgraph graph);
void effect_graph_destroy_node(struct call *call, CUgraphNode node);

#endif
