/* What verification has in each context, and every driver call that it makes. */
#include "shim/verdict/verify_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define RESULTS_BYTES (VERIFY_SLOTS * sizeof(struct verify_result))
#define TOTALS_BYTES (VERIFY_SLOTS * sizeof(struct verify_total))
#define SNAPSHOT_BLOCK_VECTORS                                                                                         \
	1024u /* four for each thread: small ranges stay with one block, which needs no meeting */
#define DIGEST_BLOCK_CHUNKS (VERIFY_BLOCK / 32u)
#define BLOCKS_MAX 1056u /* enough to fill any GPU; each then takes several chunks */

_Static_assert(TOTALS_BYTES + VERIFY_KEY_BYTES <= RESULTS_BYTES, "the ring is where keys and zeroes start from");
_Static_assert(VERIFY_SLOTS <= UINT16_MAX, "slots are kept in 16 bits");
_Static_assert(sizeof(struct verify_batch) == 32 + 48 * VERIFY_JOBS, "no padding between host and device");

void verify_call_begin(struct verify_call *call)
{
	*call = (struct verify_call){.mode = CU_STREAM_CAPTURE_MODE_RELAXED};
	if (verify.driver.ctx_get_current(&call->current) != CUDA_SUCCESS)
		call->current = NULL;
	call->relaxed = verify.driver.exchange_capture_mode(&call->mode) == CUDA_SUCCESS;
}

static void leave(struct verify_call *call)
{
	CUcontext popped;
	if (call->pushed)
		verify.driver.ctx_pop(&popped);
	call->pushed = false;
}

bool verify_call_enter(struct verify_call *call, CUcontext context)
{
	leave(call);
	if (call->current == context)
		return true;
	call->pushed = verify.driver.ctx_push(context) == CUDA_SUCCESS;
	return call->pushed;
}

void verify_call_end(struct verify_call *call)
{
	leave(call);
	if (call->relaxed)
		verify.driver.exchange_capture_mode(&call->mode);
}

bool verify_stream_free(CUstream stream)
{
	CUstreamCaptureStatus status;
	return verify.driver.stream_is_capturing(stream, &status) == CUDA_SUCCESS &&
	       status == CU_STREAM_CAPTURE_STATUS_NONE;
}

static void fill_job(struct verify_job *job, const struct verify_op *op)
{
	const struct verify_baseline *baseline = op->baseline;
	uint64_t start = baseline->start, end = baseline->end;
	bool digest = end - start > VERIFY_SNAPSHOT_MAX;
	uint64_t unit = digest ? VERIFY_CHUNK : VERIFY_WORD;
	uint64_t share = digest ? DIGEST_BLOCK_CHUNKS : SNAPSHOT_BLOCK_VECTORS;
	uint64_t units = (end - start / unit * unit + unit - 1) / unit;
	uint64_t blocks = (units + share - 1) / share;
	*job = (struct verify_job){
		.start = start,
		.end = end,
		.baseline = op->memory,
		.sequence = op->sequence,
		.slot = op->slot,
		.mode = (digest ? VERIFY_DIGEST : 0) | (op->kind == VERIFY_OP_REFRESH ? VERIFY_REFRESH : 0),
		.blocks = blocks < BLOCKS_MAX ? (uint32_t)blocks : BLOCKS_MAX,
	};
}

CUresult verify_launch(struct verify_home *home, CUstream stream, struct verify_op *const *ops, unsigned count)
{
	struct verify_batch batch = {
		.results = home->results_device, .totals = home->totals, .keys = home->keys, .jobs = count};
	unsigned blocks = 0;
	for (unsigned i = 0; i < count; i++) {
		fill_job(&batch.job[i], ops[i]);
		batch.job[i].first_block = blocks;
		blocks += batch.job[i].blocks;
	}
	void *parameters[] = {&batch};
	return verify.driver.launch_kernel(home->check, blocks, 1, 1, VERIFY_BLOCK, 1, 1, 0, stream, parameters, NULL);
}

/* After these nothing works in the context (or process) any more. */
static bool is_sticky(CUresult error)
{
	switch (error) {
	case CUDA_ERROR_DEINITIALIZED:
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_NVLINK_UNCORRECTABLE:
	case CUDA_ERROR_CONTAINED:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_CONTEXT_IS_DESTROYED:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_TENSOR_MEMORY_LEAK:
	case CUDA_ERROR_EXTERNAL_DEVICE:
	case CUDA_ERROR_UNKNOWN:
		return true;
	default:
		return false;
	}
}

/* Ends what is in flight in a home, batch by batch, as references are given back without the lock. */
static void drop_ops(struct verify_home *home, bool all)
{
	struct range *ranges[64];
	size_t count;
	do {
		pthread_mutex_lock(&verify.lock);
		count = verify_drop_ops(home, all, ranges, 64);
		pthread_mutex_unlock(&verify.lock);
		for (size_t i = 0; i < count; i++)
			range_put(ranges[i]);
	} while (count == 64);
}

void verify_home_error(struct verify_home *home, CUresult error)
{
	if (!is_sticky(error))
		return;
	pthread_mutex_lock(&verify.lock);
	if (home->state != VERIFY_HOME_GONE)
		home->state = VERIFY_HOME_FAILED;
	pthread_mutex_unlock(&verify.lock);
	/* Results that came before the crash are good, and stay for verify_poll(). */
	drop_ops(home, false);
}

static void make_keys(void)
{
	if (verify.have_keys)
		return;
	if (getrandom(verify.keys, sizeof(verify.keys), GRND_NONBLOCK) != (ssize_t)sizeof(verify.keys)) {
		/* No entropy yet, or no such call: keys that differ from run to run are enough, nobody here is an attacker. */
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		uint64_t state = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 32 ^ (uint64_t)getpid() << 48 ^
		                 (uintptr_t)&now;
		for (size_t i = 0; i < sizeof(verify.keys); i++) {
			uint64_t mixed = state += 0x9e3779b97f4a7c15u;
			mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
			mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
			verify.keys[i] = (uint8_t)(mixed >> 56);
		}
	}
	verify.have_keys = true;
}

/*
 * The ring's memory. Pages of our own, registered, where the driver takes them: those stay readable for the watcher when the driver takes itself down
 * at exit or a context goes. Zero in either case.
 */
static CUresult make_results(struct verify_home *home)
{
	void *memory = mmap(NULL, RESULTS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	if (memory == MAP_FAILED)
		return result;
	if (verify.driver.mem_host_register)
		result = verify.driver.mem_host_register(memory, RESULTS_BYTES,
		                                         CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	if (result != CUDA_SUCCESS) {
		munmap(memory, RESULTS_BYTES);
		result = verify.driver.mem_host_alloc(&memory, RESULTS_BYTES,
		                                      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
		if (result != CUDA_SUCCESS)
			return result;
		memset(memory, 0, RESULTS_BYTES);
	}
	home->results = memory;
	return CUDA_SUCCESS;
}

/* Zeroes the totals and brings the keys over; both start from the ring, which is pinned and not in use yet. */
static CUresult fill_tables(struct verify_home *home, CUfunction setup)
{
	CUdeviceptr from = home->results_device, to = home->totals;
	uint32_t vectors = (TOTALS_BYTES + VERIFY_KEY_BYTES) / VERIFY_WORD;
	void *parameters[] = {&to, &from, &vectors};
	uint8_t *staging = (uint8_t *)home->results;
	memcpy(staging + TOTALS_BYTES, verify.keys, VERIFY_KEY_BYTES);
	CUresult result =
		verify.driver.launch_kernel(setup, 32, 1, 1, VERIFY_BLOCK, 1, 1, 0, home->stream, parameters, NULL);
	if (result == CUDA_SUCCESS)
		result = verify.driver.stream_synchronize(home->stream);
	if (result == CUDA_SUCCESS)
		memset(staging, 0, RESULTS_BYTES);
	return result;
}

static CUresult make(struct verify_home *home)
{
	const struct verify_driver *driver = &verify.driver;
	CUfunction setup;
	CUresult result = CUDA_SUCCESS;
	make_keys();
	if (!home->module)
		result = driver->module_load_data(&home->module, verify_ptx);
	if (result == CUDA_SUCCESS)
		result = driver->module_get_function(&home->check, home->module, VERIFY_ENTRY_CHECK);
	if (result == CUDA_SUCCESS)
		result = driver->module_get_function(&setup, home->module, VERIFY_ENTRY_SETUP);
	if (result == CUDA_SUCCESS && !home->stream)
		result = driver->stream_create(&home->stream, CU_STREAM_NON_BLOCKING);
	if (result == CUDA_SUCCESS && !home->results)
		result = make_results(home);
	if (result == CUDA_SUCCESS)
		result = driver->mem_host_get_device_pointer(&home->results_device, home->results, 0);
	if (result == CUDA_SUCCESS && !home->totals)
		result = driver->mem_alloc(&home->totals, TOTALS_BYTES + VERIFY_KEY_BYTES);
	home->keys = home->totals + TOTALS_BYTES;
	if (result == CUDA_SUCCESS)
		result = fill_tables(home, setup);
	return result;
}

/* Locked. A home that no context has and no op is in, or a new one. */
static struct verify_home *home_new(CUcontext context)
{
	struct verify_home *home;
	for (home = verify.homes; home; home = home->next)
		if (home->state == VERIFY_HOME_GONE && home->free_slots == VERIFY_SLOTS)
			break;
	if (!home) {
		home = calloc(1, sizeof(*home));
		if (!home)
			return NULL;
		home->next = verify.homes;
		verify.homes = home;
		for (uint32_t slot = 0; slot < VERIFY_SLOTS; slot++) {
			home->op[slot].home = home;
			home->op[slot].slot = slot;
			home->free_slot[home->free_slots++] = (uint16_t)slot;
		}
	}
	/* The old ring is left to the driver and to kernels that may still write there; an attach that lost the race may have left a slab. */
	verify_arena_clear(&home->arena);
	home->results = NULL;
	home->module = NULL;
	home->stream = NULL;
	home->totals = 0;
	home->context = context;
	home->state = VERIFY_HOME_MAKING;
	return home;
}

/* `setup` is held. The current context is `context`. */
static CUresult home_get(CUcontext context, struct verify_home **ret_home)
{
	struct verify_home *home;
	pthread_mutex_lock(&verify.lock);
	for (home = verify.homes; home; home = home->next)
		if (home->context == context && home->state != VERIFY_HOME_GONE)
			break;
	if (!home)
		home = home_new(context);
	enum verify_home_state state = home ? home->state : VERIFY_HOME_GONE;
	pthread_mutex_unlock(&verify.lock);
	if (!home)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (state == VERIFY_HOME_FAILED) {
		/* The driver says what is wrong with the context better than we could. */
		CUresult result = verify_synchronize();
		return result == CUDA_SUCCESS ? CUDA_ERROR_LAUNCH_FAILED : result;
	}
	if (state == VERIFY_HOME_MAKING) {
		CUresult result = make(home);
		if (result != CUDA_SUCCESS)
			return result;
		pthread_mutex_lock(&verify.lock);
		if (home->state == VERIFY_HOME_MAKING)
			home->state = VERIFY_HOME_READY;
		pthread_mutex_unlock(&verify.lock);
	}
	*ret_home = home;
	return CUDA_SUCCESS;
}

static uint64_t baseline_bytes(uint64_t start, uint64_t end)
{
	if (end - start > VERIFY_SNAPSHOT_MAX)
		return (end - start / VERIFY_CHUNK * VERIFY_CHUNK + VERIFY_CHUNK - 1) / VERIFY_CHUNK *
		       sizeof(uint64_t) * 2;
	return end - start / VERIFY_WORD * VERIFY_WORD;
}

/* `setup` is held. */
static CUresult get_memory(struct verify_home *home, struct verify_baseline *baseline)
{
	uint64_t bytes = baseline_bytes(baseline->start, baseline->end);
	pthread_mutex_lock(&verify.lock);
	struct verify_block *block = verify_arena_take(&home->arena, bytes);
	uint64_t slab = verify_arena_next(&home->arena, bytes);
	pthread_mutex_unlock(&verify.lock);
	if (!block) {
		CUdeviceptr address;
		CUresult result = verify.driver.mem_alloc(&address, slab);
		if (result != CUDA_SUCCESS)
			return result;
		pthread_mutex_lock(&verify.lock);
		bool added = verify_arena_add(&home->arena, address, slab) == 0;
		block = added ? verify_arena_take(&home->arena, bytes) : NULL;
		pthread_mutex_unlock(&verify.lock);
		if (!added)
			verify.driver.mem_free(address);
		if (!block)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&verify.lock);
	bool lost = home->state != VERIFY_HOME_READY || baseline->state != VERIFY_BASELINE_TAKING;
	if (lost) {
		/* A gone context took its arena along, and the block with it. */
		if (home->state == VERIFY_HOME_FAILED)
			verify_arena_give(&home->arena, block);
	} else {
		baseline->block = block;
		baseline->home = home;
		verify_link(&home->baselines, baseline);
	}
	pthread_mutex_unlock(&verify.lock);
	return lost ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

CUresult verify_take(struct verify_baseline *baseline, bool has_stream, CUstream stream)
{
	struct verify_home *home = NULL;
	pthread_mutex_lock(&verify.setup);
	CUresult result = home_get(baseline->context, &home);
	if (result == CUDA_SUCCESS && !baseline->block)
		result = get_memory(home, baseline);
	pthread_mutex_unlock(&verify.setup);
	if (result != CUDA_SUCCESS)
		return result;

	if (!has_stream) {
		result = verify_synchronize();
		if (result != CUDA_SUCCESS) {
			verify_home_error(home, result);
			return result;
		}
		stream = home->stream;
	}
	/* A slot is needed: those that have come back are free after this. */
	verify_poll();
	pthread_mutex_lock(&verify.lock);
	struct verify_op *op = baseline->state == VERIFY_BASELINE_TAKING
	                               ? verify_op_new(baseline, NULL, VERIFY_OP_REFRESH, stream, NULL, true)
	                               : NULL;
	pthread_mutex_unlock(&verify.lock);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = verify_launch(home, stream, &op, 1);
	if (result == CUDA_SUCCESS)
		result = verify.driver.stream_synchronize(stream);
	if (result == CUDA_SUCCESS && !verify_op_arrived(op))
		result = CUDA_ERROR_UNKNOWN;
	if (result == CUDA_SUCCESS) {
		verify_op_finish_waited(op);
		return result;
	}
	pthread_mutex_lock(&verify.lock);
	verify_op_cancel(op);
	pthread_mutex_unlock(&verify.lock);
	verify_home_error(home, result);
	return result;
}

void verify_context_gone(CUcontext context)
{
	/* What has come back is worth telling; the rest never will. */
	verify_catch_up();
	struct verify_home *home;
	pthread_mutex_lock(&verify.lock);
	for (home = verify.homes; home; home = home->next)
		if (home->context == context && home->state != VERIFY_HOME_GONE)
			break;
	if (home)
		home->state = VERIFY_HOME_GONE;
	pthread_mutex_unlock(&verify.lock);
	if (home)
		drop_ops(home, true);

	pthread_mutex_lock(&verify.lock);
	if (home) {
		while (home->baselines)
			verify_lose(home->baselines);
		verify_arena_clear(&home->arena);
		home->context = NULL;
	}
	for (struct verify_baseline *baseline = verify.waiting, *next; baseline; baseline = next) {
		next = baseline->next;
		if (baseline->context == context)
			verify_lose(baseline);
	}
	pthread_mutex_unlock(&verify.lock);
}
