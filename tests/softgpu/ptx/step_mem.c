/*
 * Loads, stores and cp.async. First every lane's address is checked, then the bytes move: a fault leaves memory as it
 * was.
 *
 * Neighbouring lanes mostly touch neighbouring bytes. What is contiguous in lane order is checked, and reported, as
 * one range.
 */
#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/reach.h"
#include "tests/softgpu/ptx/steps.h"

static uint8_t *reach_in_window(const struct warp *warp, unsigned lane, uint64_t address, size_t bytes)
{
	const struct block *block = warp->block;
	uint8_t *local = block->local + (warp->index * WARP_LANES + lane) * block->local_bytes;
	uintptr_t shared = (uintptr_t)block->shared;

	if (address - shared < block->shared_bytes)
		return bytes <= block->shared_bytes - (address - shared) ? block->shared + (address - shared) : NULL;
	if (address - (uintptr_t)local < block->local_bytes)
		return bytes <= block->local_bytes - (address - (uintptr_t)local) ? local + (address - (uintptr_t)local)
		                                                                  : NULL;
	if (block->cluster->count > 1) {
		const struct block *owner = ptx_shared_owner(block, address);
		return owner && bytes <= owner->shared_bytes - (address - (uintptr_t)owner->shared)
		               ? (uint8_t *)(uintptr_t)address
		               : NULL;
	}
	return NULL;
}

const uint8_t *ptx_reach_read(const struct warp *warp, unsigned lane, uint64_t address, size_t bytes)
{
	const struct ptx_memory *memory = warp->block->memory;
	const uint8_t *window = reach_in_window(warp, lane, address, bytes);

	if (!window && memory->check(memory->data, address, bytes, false))
		window = (const uint8_t *)(uintptr_t)address;
	return window;
}

static enum step misaligned(struct warp *warp, const struct insn *insn, unsigned lane, uint64_t address, size_t bytes)
{
	return ptx_fault(warp, insn, lane, PTX_FAULT_ALIGN, address, "address 0x%llx is not a multiple of %zu",
	                 (unsigned long long)address, bytes);
}

static enum step outside(struct warp *warp, const struct insn *insn, unsigned lane, uint64_t address, size_t bytes,
                         const char *where)
{
	return ptx_fault(warp, insn, lane, PTX_FAULT_ADDRESS, address, "%zu bytes at 0x%llx are outside %s", bytes,
	                 (unsigned long long)address, where);
}

static enum step check_lanes(struct warp *warp, const struct insn *insn, uint32_t lanes, const uint64_t *at,
                             size_t bytes, bool write)
{
	const struct ptx_memory *memory = warp->block->memory;

	for (; lanes; lanes &= lanes - 1) {
		unsigned lane = (unsigned)__builtin_ctz(lanes);

		if (!memory->check(memory->data, at[lane], bytes, write))
			return outside(warp, insn, lane, at[lane], bytes, write ? "writable memory" : "live memory");
	}
	return STEP_NEXT;
}

/* Calls check once for each run of lanes whose ranges touch; only if that fails lane by lane, to name the culprit. */
static enum step check_global(struct warp *warp, const struct insn *insn, uint32_t lanes, const uint64_t *at,
                              size_t bytes, bool write)
{
	const struct ptx_memory *memory = warp->block->memory;

	for (uint32_t rest = lanes; rest;) {
		unsigned lane = (unsigned)__builtin_ctz(rest);
		uint64_t start = at[lane], end = start + bytes;

		for (rest &= rest - 1; rest && at[__builtin_ctz(rest)] == end; rest &= rest - 1)
			end += bytes;
		if (end <= start || !memory->check(memory->data, start, end - start, write))
			return check_lanes(warp, insn, lanes, at, bytes, write);
	}
	return STEP_NEXT;
}

void ptx_reach_wrote(struct warp *warp, const struct reach *reach, size_t bytes)
{
	const struct ptx_memory *memory = warp->block->memory;

	if (!memory->wrote)
		return;
	for (uint32_t rest = reach->global; rest;) {
		uint64_t start = reach->at[__builtin_ctz(rest)], end = start + bytes;

		for (rest &= rest - 1; rest && reach->at[__builtin_ctz(rest)] == end; rest &= rest - 1)
			end += bytes;
		memory->wrote(memory->data, start, end - start);
	}
}

static enum step reach_generic(struct warp *warp, const struct insn *insn, uint32_t mask, size_t bytes, bool write,
                               struct reach *reach)
{
	const struct block *block = warp->block;
	uintptr_t params = (uintptr_t)block->params;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);
		uint64_t address = reach->at[lane];
		uint8_t *window = reach_in_window(warp, lane, address, bytes);

		if (!window && !write && address - params < block->params_bytes &&
		    bytes <= block->params_bytes - (address - params))
			window = (uint8_t *)(uintptr_t)address;
		if (!window)
			reach->global |= 1u << lane;
	}
	return check_global(warp, insn, reach->global, reach->at, bytes, write);
}

/* Addresses of a window become host addresses. */
static enum step reach_window(struct warp *warp, const struct insn *insn, uint32_t mask, size_t bytes, struct reach *reach)
{
	const struct block *block = warp->block;
	bool shared = insn->space == SPACE_SHARED, param = insn->space == SPACE_PARAM;
	uint64_t size = shared ? block->shared_bytes : param ? block->params_bytes : block->local_bytes;
	uint64_t base = shared ? (uintptr_t)block->shared : param ? (uintptr_t)block->params : (uintptr_t)block->local;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);
		uint64_t address = reach->at[lane];

		const uint8_t *elsewhere = shared && address >= size ? ptx_shared_of(block, address, bytes) : NULL;
		if (elsewhere) {
			reach->at[lane] = (uintptr_t)elsewhere;
			continue;
		}
		if (address >= size || bytes > size - address)
			return outside(warp, insn, lane, address, bytes,
			               shared  ? "the block's shared memory"
			               : param ? "the parameters"
			                       : "the thread's local memory");
		reach->at[lane] = base + address;
		if (!shared && !param)
			reach->at[lane] += (warp->index * WARP_LANES + lane) * block->local_bytes;
	}
	return STEP_NEXT;
}

enum step ptx_reach(struct warp *warp, const struct insn *insn, uint32_t mask, size_t bytes, bool write,
                    struct reach *reach)
{
	const uint64_t *a = slot(warp, insn->a);
	uint64_t offset = insn->imm, wrong = 0;

	reach->global = 0;
	LANES(mask, reach->at[i] = a[i] + offset; wrong |= reach->at[i];);
	if (wrong & (bytes - 1))
		for (uint32_t rest = mask; rest; rest &= rest - 1)
			if (reach->at[__builtin_ctz(rest)] & (bytes - 1))
				return misaligned(warp, insn, (unsigned)__builtin_ctz(rest),
				                  reach->at[__builtin_ctz(rest)], bytes);
	switch (insn->space) {
	case SPACE_GLOBAL:
	case SPACE_CONST:
		reach->global = mask;
		return check_global(warp, insn, mask, reach->at, bytes, write);
	case SPACE_GENERIC:
		return reach_generic(warp, insn, mask, bytes, write, reach);
	default:
		return reach_window(warp, insn, mask, bytes, reach);
	}
}

#define AT(T) ((T *)(uintptr_t)(reach.at[i] + n * sizeof(T)))

/*
 * Signed elements are extended to the register's width. Relaxed atomics: other host threads may be writing the same
 * bytes.
 */
#define LOAD(T, C) LANES(mask, d[i] = (uint64_t)(int64_t)(C)__atomic_load_n(AT(T), __ATOMIC_RELAXED) & keep;)

STEP(load)
{
	struct reach reach;
	const uint32_t *to = insn->extra;
	bool is_signed = ptx_type_is_signed(insn->type);
	uint64_t keep = width_mask(insn->op); /* op: bytes of the destination registers */

	if (ptx_reach(warp, insn, mask, (size_t)insn->width * insn->count, false, &reach) == STEP_FAULT)
		return STEP_FAULT;
	for (unsigned n = 0; n < insn->count; n++) {
		uint64_t *d = slot(warp, to[n]);

		switch (insn->width) {
		case 1:
			if (is_signed)
				LOAD(uint8_t, int8_t);
			else
				LOAD(uint8_t, uint8_t);
			break;
		case 2:
			if (is_signed)
				LOAD(uint16_t, int16_t);
			else
				LOAD(uint16_t, uint16_t);
			break;
		case 4:
			if (is_signed)
				LOAD(uint32_t, int32_t);
			else
				LOAD(uint32_t, uint32_t);
			break;
		default:
			LOAD(uint64_t, uint64_t);
		}
	}
	return STEP_NEXT;
}

#define STORE(T) LANES(mask, __atomic_store_n(AT(T), (T)from[i], __ATOMIC_RELAXED);)

STEP(store)
{
	struct reach reach;
	const uint32_t *values = insn->extra;
	size_t bytes = (size_t)insn->width * insn->count;

	if (ptx_reach(warp, insn, mask, bytes, true, &reach) == STEP_FAULT)
		return STEP_FAULT;
	for (unsigned n = 0; n < insn->count; n++) {
		const uint64_t *from = slot(warp, values[n]);

		switch (insn->width) {
		case 1:
			STORE(uint8_t);
			break;
		case 2:
			STORE(uint16_t);
			break;
		case 4:
			STORE(uint32_t);
			break;
		default:
			STORE(uint64_t);
		}
	}
	ptx_reach_wrote(warp, &reach, bytes);
	return STEP_NEXT;
}

/* cp.async: width bytes from global b to shared a, of which only the first c are read and the rest are zero. */
STEP(copy)
{
	struct reach to;
	const uint64_t *from = slot(warp, insn->b), *c = insn->c == NO_OPERAND ? NULL : slot(warp, insn->c);
	const struct ptx_memory *memory = warp->block->memory;
	uint64_t offset = (uintptr_t)insn->extra;

	if (ptx_reach(warp, insn, mask, insn->width, true, &to) == STEP_FAULT)
		return STEP_FAULT;
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);
		size_t bytes = c && (uint32_t)c[i] < insn->width ? (uint32_t)c[i] : insn->width;
		uint64_t source = from[i] + offset;
		uint8_t *at = (uint8_t *)(uintptr_t)to.at[i];

		if (source & (insn->width - 1))
			return misaligned(warp, insn, i, source, insn->width);
		/* What is not read may lie anywhere: that is how kernels fill the edges of a tile with zeros. */
		if (bytes && !memory->check(memory->data, source, bytes, false))
			return outside(warp, insn, i, source, bytes, "live memory");
		if (bytes)
			memcpy(at, (const void *)(uintptr_t)source, bytes);
		memset(at + bytes, 0, insn->width - bytes);
	}
	return STEP_NEXT;
}

step_fn ptx_step_memory(enum mem_op op)
{
	return op == MEM_LOAD ? load : op == MEM_STORE ? store : copy;
}
