/*
 * A launch: checks its shape, and runs its clusters, mostly of one block, on host threads that share nothing but the
 * count of those taken.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/run.h"

#define DEFAULT_LIMIT (UINT64_C(1) << 32)
#define HOST_THREADS_LIMIT 64u

static enum ptx_status refuse(struct ptx_fault *fault, enum ptx_status status, const char *message)
{
	*fault = (struct ptx_fault){.status = status};
	snprintf(fault->message, sizeof(fault->message), "%s", message);
	return status;
}

struct frame *ptx_frame_new(struct warp *warp, const struct ptx_function *function)
{
	struct scratch *scratch = &warp->block->cluster->scratch;
	struct frame *frame = scratch_get(scratch, sizeof(*frame), 64);

	if (!frame)
		return NULL;
	frame->registers = scratch_get(scratch, (size_t)function->register_count * WARP_LANES * sizeof(uint64_t), 64);
	if (!frame->registers)
		return NULL;
	frame->function = function;
	frame->next = warp->frames;
	warp->frames = frame;
	return frame;
}

/* Special registers that do not change from block to block. */
static void fill_special(struct warp *warp, const struct ptx_launch *shape, const struct block *block)
{
	const struct launch *launch = block->launch;

	for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
		uint32_t thread = warp->index * WARP_LANES + lane;
		const uint32_t values[SP_STORED] = {
			[SP_TID_X] = thread % shape->block[0],
			[SP_TID_Y] = thread / shape->block[0] % shape->block[1],
			[SP_TID_Z] = thread / shape->block[0] / shape->block[1],
			[SP_NTID_X] = shape->block[0],
			[SP_NTID_Y] = shape->block[1],
			[SP_NTID_Z] = shape->block[2],
			[SP_NCTAID_X] = shape->grid[0],
			[SP_NCTAID_Y] = shape->grid[1],
			[SP_NCTAID_Z] = shape->grid[2],
			[SP_LANEID] = lane,
			[SP_WARPID] = warp->index,
			[SP_NWARPID] = block->warp_count,
			[SP_DYNAMIC_SHARED] = shape->shared_bytes,
			[SP_TOTAL_SHARED] = (uint32_t)block->shared_bytes,
			[SP_DYNAMIC_BASE] = (uint32_t)ptx_function_static_shared(block->function),
			[SP_ONE] = 1,
			[SP_MASK_EQ] = 1u << lane,
			[SP_MASK_LT] = (1u << lane) - 1,
			[SP_MASK_LE] = (2u << lane) - 1,
			[SP_MASK_GE] = UINT32_MAX << lane,
			[SP_MASK_GT] = ~((2u << lane) - 1),
			[SP_NCLUSTERID_X] = shape->grid[0] / launch->cluster[0],
			[SP_NCLUSTERID_Y] = shape->grid[1] / launch->cluster[1],
			[SP_NCLUSTERID_Z] = shape->grid[2] / launch->cluster[2],
			[SP_CLUSTER_CTAID_X] = block->rank % launch->cluster[0],
			[SP_CLUSTER_CTAID_Y] = block->rank / launch->cluster[0] % launch->cluster[1],
			[SP_CLUSTER_CTAID_Z] = block->rank / launch->cluster[0] / launch->cluster[1],
			[SP_CLUSTER_NCTAID_X] = launch->cluster[0],
			[SP_CLUSTER_NCTAID_Y] = launch->cluster[1],
			[SP_CLUSTER_NCTAID_Z] = launch->cluster[2],
			[SP_CLUSTER_RANK] = block->rank,
			[SP_CLUSTER_SIZE] = block->cluster->count,
			[SP_CLUSTER_EXPLICIT] = launch->explicit_cluster,
		};

		for (unsigned n = 0; n < SP_STORED; n++)
			warp->special[n * WARP_LANES + lane] = values[n];
	}
}

static bool block_create(struct block *block, struct launch *launch, struct cluster *cluster, uint32_t rank)
{
	const struct ptx_function *function = launch->function;
	const struct ptx_launch *shape = launch->shape;
	const struct ptx_module *module = function->module;

	*block = (struct block){.launch = launch,
	                        .cluster = cluster,
	                        .rank = rank,
	                        .function = function,
	                        .memory = &module->memory,
	                        .params = shape->params};
	block->params_bytes = function->params_bytes;
	block->limit = shape->instruction_limit ? shape->instruction_limit : DEFAULT_LIMIT;
	block->thread_count = shape->block[0] * shape->block[1] * shape->block[2];
	block->warp_count = (block->thread_count + WARP_LANES - 1) / WARP_LANES;
	block->shared_bytes = ptx_function_static_shared(function) + shape->shared_bytes;
	block->local_bytes = (function->local_bytes + 15) & ~(size_t)15;
	if (function->calls) {
		/* How deep calls go is not known: room for 16 of the largest frames, within what a thread can have. */
		size_t more = 16 * (module->max_func_local + 16);

		block->local_bytes += more < 4096 ? 4096 : more > 65536 ? 65536 : more;
	}
	block->warps = scratch_get(&cluster->scratch, block->warp_count * sizeof(*block->warps), 64);
	block->shared = scratch_get(&cluster->scratch, block->shared_bytes, 1024);
	/* Lanes beyond the block's last thread exist too, though they never run. */
	block->local = scratch_get(&cluster->scratch, (size_t)block->warp_count * WARP_LANES * block->local_bytes, 64);
	if (!block->warps || !block->shared || !block->local)
		return false;
	for (uint32_t n = 0; n < block->warp_count; n++) {
		struct warp *warp = &block->warps[n];

		warp->block = block;
		warp->index = n;
		warp->special =
			scratch_get(&cluster->scratch, (size_t)SP_STORED * WARP_LANES * sizeof(*warp->special), 64);
		if (!warp->special || !ptx_frame_new(warp, function))
			return false;
		warp->banks[BANK_SPECIAL] = warp->special;
		fill_special(warp, shape, block);
	}
	return true;
}

/*
 * Makes the block ready for its place in the index-th cluster of the grid. What the one before left in registers is not
 * cleared.
 */
static void block_reset(struct block *block, uint64_t index)
{
	const uint32_t *grid = block->launch->shape->grid, *size = block->launch->cluster;
	const uint64_t wide = grid[0] / size[0], high = grid[1] / size[1];
	const uint32_t cluster[] = {(uint32_t)(index % wide), (uint32_t)(index / wide % high),
	                            (uint32_t)(index / wide / high)};

	block->ctaid[0] = cluster[0] * size[0] + block->rank % size[0];
	block->ctaid[1] = cluster[1] * size[1] + block->rank / size[0] % size[1];
	block->ctaid[2] = cluster[2] * size[2] + block->rank / size[0] / size[1];
	block->instructions = 0;
	memset(block->barriers, 0, sizeof(block->barriers));
	memset(block->shared, 0, block->shared_bytes);
	for (uint32_t n = 0; n < block->warp_count; n++) {
		struct warp *warp = &block->warps[n];
		uint32_t threads = block->thread_count - n * WARP_LANES;
		struct frame *entry = warp->frames;

		while (entry->next)
			entry = entry->next;
		warp->live = threads >= WARP_LANES ? UINT32_MAX : (1u << threads) - 1;
		warp->at_sync = warp->at_barrier = warp->cluster_arrived = 0;
		warp->rotate = false;
		warp->group = warp->live;
		memset(warp->waiting, 0, sizeof(warp->waiting));
		entry->lanes = warp->live;
		for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
			warp->lane_pc[lane] = 0;
			warp->lane_frame[lane] = entry;
			for (unsigned axis = 0; axis < 3; axis++) {
				warp->special[(SP_CTAID_X + axis) * WARP_LANES + lane] = block->ctaid[axis];
				warp->special[(SP_CLUSTERID_X + axis) * WARP_LANES + lane] = cluster[axis];
			}
		}
	}
}

static void fail_launch(struct launch *launch, const struct ptx_fault *fault)
{
	if (!atomic_exchange(&launch->faulted, true))
		launch->fault = *fault;
	atomic_store(&launch->stop, true);
}

static bool cluster_create(struct cluster *cluster, struct launch *launch)
{
	uint32_t count = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
	bool good = true;

	*cluster = (struct cluster){.count = count};
	cluster->blocks = scratch_get(&cluster->scratch, count * sizeof(*cluster->blocks), 64);
	for (uint32_t rank = 0; cluster->blocks && rank < count && good; rank++)
		good = block_create(&cluster->blocks[rank], launch, cluster, rank);
	return cluster->blocks && good;
}

static void *run_clusters(void *data)
{
	struct launch *launch = data;
	struct cluster cluster;

	if (!cluster_create(&cluster, launch)) {
		struct ptx_fault fault;

		refuse(&fault, PTX_OUT_OF_MEMORY, "no memory for a block's registers");
		fail_launch(launch, &fault);
	}
	while (!atomic_load_explicit(&launch->stop, memory_order_relaxed)) {
		uint64_t index = atomic_fetch_add_explicit(&launch->next_cluster, 1, memory_order_relaxed);

		if (index >= launch->clusters)
			break;
		for (uint32_t n = 0; n < cluster.count; n++)
			block_reset(&cluster.blocks[n], index);
		ptx_cluster_run(&cluster);
		for (uint32_t n = 0; n < cluster.count; n++)
			if (cluster.blocks[n].fault.status != PTX_OK)
				fail_launch(launch, &cluster.blocks[n].fault);
	}
	scratch_end(&cluster.scratch);
	return NULL;
}

/* The cluster's shape: the launch's, or what the kernel says, or one block. */
static enum ptx_status take_cluster(struct launch *launch, struct ptx_fault *fault)
{
	const uint32_t *asked = launch->shape->cluster, *said = launch->function->cluster, *grid = launch->shape->grid;
	const uint32_t *size = asked[0] ? asked : said;

	launch->explicit_cluster = size[0] != 0;
	for (unsigned n = 0; n < 3; n++)
		launch->cluster[n] = size[n] ? size[n] : 1;
	if (asked[0] && said[0] && memcmp(asked, said, 3 * sizeof(*said)) != 0)
		return refuse(fault, PTX_BAD_LAUNCH, "the cluster is not what the kernel's .reqnctapercluster says");
	size = launch->cluster;
	if (size[0] > CLUSTER_LIMIT || size[1] > CLUSTER_LIMIT || size[2] > CLUSTER_LIMIT ||
	    size[0] * size[1] * size[2] > CLUSTER_LIMIT || grid[0] % size[0] || grid[1] % size[1] || grid[2] % size[2])
		return refuse(fault, PTX_BAD_LAUNCH, "the grid is not made of clusters of this shape");
	return PTX_OK;
}

static enum ptx_status check_shape(const struct ptx_function *function, const struct ptx_launch *shape,
                                   struct ptx_fault *fault)
{
	const uint32_t *grid = shape->grid, *block = shape->block, *required = function->required;
	uint64_t threads = (uint64_t)block[0] * block[1];

	if (!grid[0] || !grid[1] || !grid[2] || grid[0] > INT32_MAX || grid[1] > 65535 || grid[2] > 65535)
		return refuse(fault, PTX_BAD_LAUNCH, "the grid's shape is beyond the limits");
	if (!block[0] || !block[1] || !block[2] || block[0] > 1024 || block[1] > 1024 || block[2] > 64 ||
	    threads * block[2] > 1024)
		return refuse(fault, PTX_BAD_LAUNCH, "the block's shape is beyond the limits");
	threads *= block[2];
	if (function->max_threads && threads > function->max_threads)
		return refuse(fault, PTX_BAD_LAUNCH, "the block is larger than the kernel's .maxntid");
	if (required[0] && (block[0] != required[0] || block[1] != required[1] || block[2] != required[2]))
		return refuse(fault, PTX_BAD_LAUNCH, "the block is not what the kernel's .reqntid says");
	if (ptx_function_static_shared(function) + (uint64_t)shape->shared_bytes > SHARED_LIMIT)
		return refuse(fault, PTX_BAD_LAUNCH, "more shared memory than a block can have");
	if (shape->params_bytes < function->params_bytes || (function->params_bytes && !shape->params))
		return refuse(fault, PTX_BAD_LAUNCH, "fewer parameter bytes than the kernel takes");
	return PTX_OK;
}

static unsigned choose_threads(const struct ptx_launch *shape, uint64_t clusters)
{
	static _Atomic long online; /* asking reads a file */
	long cores = shape->host_threads ? (long)shape->host_threads : atomic_load(&online);

	if (cores == 0) {
		cores = sysconf(_SC_NPROCESSORS_ONLN);
		atomic_store(&online, cores);
	}
	uint64_t threads = cores < 1 ? 1 : (uint64_t)cores;

	if (threads > HOST_THREADS_LIMIT)
		threads = HOST_THREADS_LIMIT;
	return (unsigned)(threads < clusters ? threads : clusters);
}

enum ptx_status ptx_run(const struct ptx_function *function, const struct ptx_launch *shape, struct ptx_fault *ret_fault)
{
	struct ptx_fault ignored, *fault = ret_fault ? ret_fault : &ignored;
	pthread_t helpers[HOST_THREADS_LIMIT];
	unsigned started = 0, threads;

	if (check_shape(function, shape, fault) != PTX_OK)
		return fault->status;
	struct launch launch = {.function = function, .shape = shape};
	if (take_cluster(&launch, fault) != PTX_OK)
		return fault->status;
	launch.clusters = (uint64_t)shape->grid[0] * shape->grid[1] * shape->grid[2] /
	                  (launch.cluster[0] * launch.cluster[1] * launch.cluster[2]);
	threads = choose_threads(shape, launch.clusters);
	if (threads > 1) {
		/* The process's signals are for its own threads. */
		sigset_t all, before;

		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		/* With fewer helpers than asked for, or none, the clusters still all run: here. */
		while (started < threads - 1 && !pthread_create(&helpers[started], NULL, run_clusters, &launch))
			started++;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	run_clusters(&launch);
	while (started)
		pthread_join(helpers[--started], NULL);
	if (!launch.faulted)
		return PTX_OK;
	if (ret_fault)
		*ret_fault = launch.fault;
	return launch.fault.status;
}
