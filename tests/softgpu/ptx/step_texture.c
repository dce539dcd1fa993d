/*
 * Texels by point sampling, and surfaces. A texture's memory is read like any other: what is no longer live is a fault.
 * Where the ISA and the programming guide say nothing, channels that a texture does not have are 0, 0 and 1.
 */
#include <math.h>

#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/reach.h"
#include "tests/softgpu/ptx/steps.h"

static enum step no_object(struct warp *warp, const struct insn *insn, unsigned lane, const char *what)
{
	return ptx_fault(warp, insn, lane, PTX_FAULT_ADDRESS, slot(warp, insn->a)[lane],
	                 "0x%llx is no %s that this instruction reads", (unsigned long long)slot(warp, insn->a)[lane],
	                 what);
}

/* The object of a lane; neighbours mostly have the same. */
static bool find(const struct warp *warp, const struct insn *insn, unsigned lane, struct ptx_texture *texture,
                 uint64_t *known)
{
	const struct ptx_memory *memory = warp->block->memory;
	uint64_t handle = slot(warp, insn->a)[lane];

	if (texture->dimensions != 0 && handle == *known)
		return true;
	*known = handle;
	return memory->texture && memory->texture(memory->data, handle, texture);
}

/* Of a whole coordinate beyond the edge: where it falls, or -1 for the border. */
static int64_t wrapped(const struct ptx_texture *texture, unsigned n, double at)
{
	int64_t size = texture->size[n];
	int64_t whole = at < -1e9 ? -1000000000 : at > 1e9 ? 1000000000 : (int64_t)at;
	enum ptx_wrap wrap = texture->normalized || texture->wrap[n] == PTX_WRAP_BORDER ? texture->wrap[n]
	                                                                                : PTX_WRAP_CLAMP;

	if (whole >= 0 && whole < size)
		return whole;
	switch (wrap) {
	case PTX_WRAP_REPEAT:
		return (whole % size + size) % size;
	case PTX_WRAP_MIRROR:
		whole = (whole % (2 * size) + 2 * size) % (2 * size);
		return whole < size ? whole : 2 * size - 1 - whole;
	case PTX_WRAP_BORDER:
		return -1;
	default:
		return whole < 0 ? 0 : size - 1;
	}
}

/* Where the texel lies; false for the border. */
static bool place(const struct warp *warp, const struct texel *texel, const struct ptx_texture *texture, unsigned lane,
                  uint64_t *ret_address)
{
	const size_t step[] = {(size_t)texture->channels * texture->channel_bytes, texture->pitch, texture->slice};

	*ret_address = texture->address;
	for (unsigned n = 0; n < texel->dimensions; n++) {
		uint64_t bits = slot(warp, texel->place[n])[lane];
		double at = texel->by_float ? (double)bits_f32(bits) : (double)(int32_t)bits;

		if (at != at)
			at = 0;
		if (texel->by_float)
			at = floor(texture->normalized ? at * texture->size[n] : at);
		int64_t whole = texture->is_line && (at < 0 || at >= texture->size[0]) ? -1 : wrapped(texture, n, at);
		if (whole < 0)
			return false;
		*ret_address += (uint64_t)whole * step[n];
	}
	return true;
}

/* A channel's bits as a register has them. */
static uint32_t channel(const struct ptx_texture *texture, const uint8_t *at, bool to_float)
{
	unsigned bits = texture->channel_bytes * 8u;
	uint32_t value = 0;

	memcpy(&value, at, texture->channel_bytes);
	if (texture->kind == PTX_CHANNEL_FLOAT)
		return bits == 16 ? f32_bits((float)ptx_half_value((uint16_t)value, false)) : value;
	int32_t extended = (int32_t)(value << (32 - bits)) >> (32 - bits);
	if (to_float && texture->as_float) {
		float most = (float)((1u << (bits - (texture->kind == PTX_CHANNEL_SIGNED))) - 1);
		float ratio = texture->kind == PTX_CHANNEL_SIGNED ? (float)extended / most : (float)value / most;
		return f32_bits(ratio < -1.0f ? -1.0f : ratio);
	}
	return texture->kind == PTX_CHANNEL_SIGNED ? (uint32_t)extended : value;
}

STEP(sample)
{
	const struct texel *texel = insn->extra;
	const struct ptx_memory *memory = warp->block->memory;
	struct ptx_texture texture = {.dimensions = 0};
	uint64_t known = 0, address;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);

		if (!find(warp, insn, lane, &texture, &known) || texture.is_surface ||
		    texture.dimensions != texel->dimensions)
			return no_object(warp, insn, lane, "texture");
		bool inside = place(warp, texel, &texture, lane, &address);
		size_t bytes = (size_t)texture.channels * texture.channel_bytes;
		if (inside && !memory->check(memory->data, address, bytes, false))
			return ptx_fault(warp, insn, lane, PTX_FAULT_ADDRESS, address,
			                 "a texel at 0x%llx is outside live memory", (unsigned long long)address);
		bool number = texel->to_float && (texture.kind == PTX_CHANNEL_FLOAT || texture.as_float);
		for (unsigned n = 0; n < 4; n++) {
			uint32_t value = n < 3 ? 0 : number ? f32_bits(1.0f) : 1;

			if (n < texture.channels && inside)
				value = channel(&texture, (const uint8_t *)(uintptr_t)address + n * texture.channel_bytes,
				                texel->to_float);
			else if (n < texture.channels)
				value = texture.is_line ? 0
				        : number        ? f32_bits(texture.border[n])
				                        : (uint32_t)(int32_t)texture.border[n];
			slot(warp, texel->value[n])[lane] = value;
		}
	}
	return STEP_NEXT;
}

enum where { INSIDE, DROPPED, FAULT };

/* Of a surface's access: its first coordinate counts bytes. */
static enum where surface_place(struct warp *warp, const struct insn *insn, const struct ptx_texture *surface,
                                unsigned lane, uint64_t *ret_address)
{
	const struct texel *texel = insn->extra;
	const size_t step[] = {1, surface->pitch, surface->slice};
	int64_t bytes = (int64_t)texel->bytes * texel->count,
		element = (int64_t)surface->channels * surface->channel_bytes;

	*ret_address = surface->address;
	for (unsigned n = 0; n < texel->dimensions; n++) {
		int64_t at = (int32_t)slot(warp, texel->place[n])[lane], most = surface->size[n] - (int64_t)1;

		if (n == 0)
			most = surface->size[0] * element - bytes;
		if (n == 0 && at % bytes) {
			ptx_fault(warp, insn, lane, PTX_FAULT_ALIGN, (uint64_t)at,
			          "%lld is no multiple of the access's %lld bytes", (long long)at, (long long)bytes);
			return FAULT;
		}
		if (at < 0 || at > most) {
			if (texel->edge == EDGE_TRAP) {
				ptx_fault(warp, insn, lane, PTX_FAULT_ADDRESS, (uint64_t)at,
				          "coordinate %u of a surface's access is %lld, of %lld", n, (long long)at,
				          (long long)most);
				return FAULT;
			}
			if (texel->edge == EDGE_ZERO)
				return DROPPED;
			at = at < 0 ? 0 : most;
		}
		*ret_address += (uint64_t)at * step[n];
	}
	return INSIDE;
}

static enum step surface(struct warp *warp, const struct insn *insn, uint32_t mask, bool write)
{
	const struct texel *texel = insn->extra;
	const struct ptx_memory *memory = warp->block->memory;
	struct ptx_texture texture = {.dimensions = 0};
	uint64_t known = 0, address;
	size_t bytes = (size_t)texel->bytes * texel->count;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);

		if (!find(warp, insn, lane, &texture, &known) || !texture.is_surface ||
		    texture.dimensions != texel->dimensions)
			return no_object(warp, insn, lane, "surface");
		enum where where = surface_place(warp, insn, &texture, lane, &address);
		if (where == FAULT)
			return STEP_FAULT;
		if (where == INSIDE && !memory->check(memory->data, address, bytes, write))
			return ptx_fault(warp, insn, lane, PTX_FAULT_ADDRESS, address,
			                 "%zu bytes of a surface at 0x%llx are outside %s", bytes,
			                 (unsigned long long)address, write ? "writable memory" : "live memory");
		for (unsigned n = 0; n < texel->count; n++) {
			uint64_t *value = slot(warp, texel->value[n]) + lane;
			uint8_t *at = (uint8_t *)(uintptr_t)address + n * texel->bytes;

			if (write && where == INSIDE)
				memcpy(at, value, texel->bytes);
			if (!write)
				*value = 0;
			if (!write && where == INSIDE)
				memcpy(value, at, texel->bytes);
		}
		if (write && where == INSIDE && memory->wrote)
			memory->wrote(memory->data, address, bytes);
	}
	return STEP_NEXT;
}

STEP(load)
{
	return surface(warp, insn, mask, false);
}

STEP(store)
{
	return surface(warp, insn, mask, true);
}

STEP(size)
{
	struct ptx_texture texture = {.dimensions = 0};
	uint64_t known = 0;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);

		if (!find(warp, insn, lane, &texture, &known))
			return no_object(warp, insn, lane, "texture or surface");
		slot(warp, insn->d)[lane] = insn->op < texture.dimensions ? texture.size[insn->op] : 0;
	}
	return STEP_NEXT;
}

step_fn ptx_step_texture(enum texture_op op)
{
	static const step_fn steps[] = {
		[TEXTURE_SAMPLE] = sample, [TEXTURE_LOAD] = load, [TEXTURE_STORE] = store, [TEXTURE_SIZE] = size};

	return steps[op];
}
