#include "shim/twins/serve_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "shim/twins/serve_memo.h"

struct lock serve_lock = LOCK_INITIALIZER(LOCK_SERVE);
struct arena *serve_arenas;

/*
 * Sorted by address. A mapping costs tens of microseconds, so moving some pointers does not matter: 141 GB hold 70,000
 * blocks.
 */
static struct block **table;
static size_t count, room;
static uint64_t serials;

struct arena *arena_of(CUcontext context)
{
	struct arena *arena = serve_arenas;

	while (arena && arena->context != context)
		arena = arena->next;
	return arena;
}

struct arena *arena_numbered(uint64_t serial)
{
	struct arena *arena = serve_arenas;

	while (arena && arena->serial != serial)
		arena = arena->next;
	return arena;
}

bool arena_add(const struct arena *made)
{
	struct arena *arena = malloc(sizeof(*arena));

	if (!arena)
		return false;
	*arena = *made;
	arena->serial = ++serials;
	arena->epoch = 1;
	arena->next = serve_arenas;
	serve_arenas = arena;
	return true;
}

void arena_remove(struct arena *arena, struct block **taken)
{
	struct arena **link = &serve_arenas;

	for (size_t i = count; i-- > 0;)
		if (table[i]->arena == arena)
			block_remove(table[i], taken);
	while (*link != arena)
		link = &(*link)->next;
	*link = arena->next;
	free(arena->peers);
	free(arena);
}

void arena_view(const struct arena *arena, struct view *ret_view)
{
	*ret_view = (struct view){.context = arena->context,
	                          .device = arena->device,
	                          .serial = arena->serial,
	                          .capable = arena->capable,
	                          .prop = arena->prop,
	                          .grain = arena->grain,
	                          .access_version = arena->access_version};
	for (size_t i = 0; i <= arena->peer_count; i++) {
		CUdevice device = i ? arena->peers[i - 1].device : arena->device;
		bool seen = false;

		for (size_t k = 0; k < ret_view->access_count; k++)
			seen |= ret_view->access[k].location.id == device;
		if (!seen)
			ret_view->access[ret_view->access_count++] =
				(CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
			                          .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	}
}

bool arena_add_peer(struct arena *arena, CUcontext context, CUdevice device)
{
	struct view view;
	struct peer *more;

	for (size_t i = 0; i < arena->peer_count; i++)
		if (arena->peers[i].context == context)
			return true;
	arena_view(arena, &view);
	more = view.access_count < SERVE_DEVICES_MAX ? realloc(arena->peers, (arena->peer_count + 1) * sizeof(*more))
	                                             : NULL;
	if (!more)
		return false;
	more[arena->peer_count++] = (struct peer){context, device};
	arena->peers = more;
	arena->access_version++;
	return true;
}

bool arena_remove_peer(struct arena *arena, CUcontext context)
{
	for (size_t i = 0; i < arena->peer_count; i++)
		if (arena->peers[i].context == context) {
			arena->peers[i] = arena->peers[--arena->peer_count];
			arena->access_version++;
			return true;
		}
	return false;
}

/* The number of the first block that starts behind the address. */
static size_t behind(CUdeviceptr address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (table[middle]->base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t block_count(void)
{
	return count;
}

struct block *block_number(size_t i)
{
	return table[i];
}

struct block *block_at(CUdeviceptr address)
{
	size_t i = behind(address);

	return i && address - table[i - 1]->base < table[i - 1]->bytes ? table[i - 1] : NULL;
}

void block_gap(CUdeviceptr address, CUdeviceptr *ret_start, CUdeviceptr *ret_end)
{
	size_t i = behind(address);

	*ret_start = i ? table[i - 1]->base + table[i - 1]->bytes : 0;
	*ret_end = i < count ? table[i]->base : UINT64_MAX;
}

static void list_remove(struct block **list, struct block *block)
{
	while (*list != block)
		list = &(*list)->next;
	*list = block->next;
}

static void list_add(struct block **list, struct block *block)
{
	block->next = *list;
	*list = block;
}

struct block *block_add(struct arena *arena, CUdeviceptr base, size_t bytes, CUmemGenericAllocationHandle handle,
                        struct slab *slab, const struct piece *piece)
{
	struct block *block = calloc(1, sizeof(*block));
	size_t i;

	if (block && count == room) {
		size_t wanted = room ? 2 * room : 64;
		struct block **larger = realloc(table, wanted * sizeof(struct block *));

		if (!larger) {
			free(block);
			return NULL;
		}
		table = larger;
		room = wanted;
	}
	if (!block)
		return NULL;
	block->base = base;
	block->bytes = bytes;
	block->handle = handle;
	block->arena = arena;
	block->slab = slab;
	if (slab) {
		list_add(&arena->open, block);
	} else {
		block->piece = *piece;
		block->pieces = 1;
	}
	i = behind(base);
	memmove(&table[i + 1], &table[i], (count - i) * sizeof(struct block *));
	table[i] = block;
	count++;
	serve_memo_forget(base, base + bytes);
	return block;
}

void block_remove(struct block *block, struct block **taken)
{
	struct arena *arena = block->arena;
	size_t i = behind(block->base) - 1;

	memmove(&table[i], &table[i + 1], (count - i - 1) * sizeof(struct block *));
	count--;
	serve_memo_forget(block->base, block->base + block->bytes);
	if (block->slab)
		list_remove(block->full ? &arena->full : &arena->open, block);
	if (arena->kept == block)
		arena->kept = NULL;
	block->arena = NULL;
	if (!block->users)
		list_add(taken, block);
}

bool piece_take(struct arena *arena, size_t bytes, uint64_t id, struct place *ret_place)
{
	struct block *next;
	uint32_t offset, start;

	for (struct block *block = arena->open; block; block = next) {
		next = block->next;
		if (slab_take(block->slab, bytes, id, &offset)) {
			if (arena->kept == block)
				arena->kept = NULL;
			block->pieces++;
			*ret_place = (struct place){block, slab_find(block->slab, offset, &start), block->base + offset};
			return true;
		}
		if (!slab_room(block->slab)) {
			list_remove(&arena->open, block);
			list_add(&arena->full, block);
			block->full = true;
		}
	}
	return false;
}

/* Live or retired. */
static bool find_piece(CUdeviceptr address, struct place *ret_place)
{
	struct block *block = block_at(address);
	struct piece *piece = NULL;
	uint32_t start = 0;

	if (block && block->slab)
		piece = slab_find(block->slab, (uint32_t)(address - block->base), &start);
	else if (block && address - block->base < block->piece.bytes)
		piece = &block->piece;
	if (!piece)
		return false;
	*ret_place = (struct place){block, piece, block->base + start};
	return true;
}

bool piece_at(CUdeviceptr address, struct place *ret_place)
{
	return find_piece(address, ret_place) && !ret_place->piece->mark;
}

bool piece_retired_at(CUdeviceptr start, struct place *ret_place)
{
	return find_piece(start, ret_place) && ret_place->piece->mark && ret_place->start == start;
}

void piece_mark(const struct place *place, uint32_t mark)
{
	struct block *block = place->block;
	int change = mark ? -1 : 1;

	if (!mark == !place->piece->mark)
		return;
	serve_memo_forget(place->start, place->start + place->piece->bytes);
	block->pieces += (unsigned)change;
	block->syncs += place->piece->sync ? (unsigned)change : 0;
	block->arena->waiting -= (unsigned)change;
	place->piece->mark = mark;
}

void piece_give(const struct place *place, struct block **taken)
{
	struct block *block = place->block;
	struct arena *arena = block->arena;

	arena->waiting--;
	if (!block->slab) {
		block_remove(block, taken);
		return;
	}
	slab_give(block->slab, (uint32_t)(place->start - block->base));
	if (block->full) {
		list_remove(&arena->full, block);
		list_add(&arena->open, block);
		block->full = false;
	}
	if (slab_pieces(block->slab))
		return;
	if (arena->kept)
		block_remove(block, taken);
	else
		arena->kept = block;
}

bool piece_before(const struct piece *piece, uint32_t limit)
{
	return piece->mark && (int32_t)(limit - piece->mark) >= 0;
}

static void reclaim_slab(struct block *block, uint32_t limit, struct block **taken)
{
	uint32_t start = 0;

	/* The block may leave, with its last piece. */
	for (uint32_t left = slab_pieces(block->slab), at = 0; left && block->arena; left--, at = start + SLAB_UNIT) {
		struct piece *piece = slab_next(block->slab, at, &start);

		if (piece_before(piece, limit))
			piece_give(&(struct place){block, piece, block->base + start}, taken);
	}
}

void arena_reclaim(struct arena *arena, uint32_t limit, struct block **taken)
{
	for (size_t i = count; i-- > 0 && arena->waiting;) {
		struct block *block = table[i];

		if (block->arena != arena)
			continue;
		if (block->slab)
			reclaim_slab(block, limit, taken);
		else if (piece_before(&block->piece, limit))
			piece_give(&(struct place){block, &block->piece, block->base}, taken);
	}
}
