#include "shim/effects/effect.h"

/*
 * Wide enough for the sums here: no address, and no length after wide_min(), is above 2^64, and a product of two
 * 64-bit numbers leaves room for several of those.
 */
typedef unsigned __int128 wide;

#define ADDRESS_SPACE ((wide)1 << 64)

/*
 * How many slices are looked at one by one, from either end. Boxes whose slices do not interleave need three.
 * Interleaved ones (slices that begin before the one before has ended) do not come from calls that the driver
 * accepts.
 */
#define SLICE_STEPS 4096

/* Rows of a slice have gaps between them, and slices start no closer to each other than rows do. */
struct box {
	wide width, pitch;
	uint64_t rows;
	wide slice_pitch;
	uint64_t slices;
	wide hull; /* bytes from a slice's first one to its last */
};

static wide wide_min(wide a, wide b)
{
	return a < b ? a : b;
}

static wide wide_max(wide a, wide b)
{
	return a > b ? a : b;
}

static bool extent_empty(const struct extent *extent)
{
	return extent->width == 0 || extent->rows == 0 || extent->slices == 0;
}

/* Of two strides the greater is the outer one; a stride that leaves no gap is part of the width. */
static struct box box_of(const struct extent *extent)
{
	bool swap = extent->slice_pitch < extent->pitch;
	struct box box = {
		.width = extent->width,
		.pitch = swap ? extent->slice_pitch : extent->pitch,
		.rows = swap ? extent->slices : extent->rows,
		.slice_pitch = swap ? extent->pitch : extent->slice_pitch,
		.slices = swap ? extent->rows : extent->slices,
	};

	for (unsigned stride = 0; stride < 2 && (box.rows == 1 || box.pitch <= box.width); stride++) {
		box.width = wide_min(box.width + (box.rows - 1) * box.pitch, ADDRESS_SPACE);
		box.pitch = box.slice_pitch;
		box.rows = box.slices;
		box.slice_pitch = 0;
		box.slices = 1;
	}
	box.hull = wide_min(box.width + (box.rows - 1) * box.pitch, ADDRESS_SPACE);
	return box;
}

/* The first byte at or above `start` of the slice that begins at `base`; ADDRESS_SPACE if it has none. */
static wide slice_first(const struct box *box, wide base, wide start)
{
	wide offset, row;

	if (base >= start)
		return base;
	offset = start - base;
	row = box->rows > 1 ? wide_min(offset / box->pitch, box->rows - 1) : 0;
	if (offset < row * box->pitch + box->width)
		return start;
	return row + 1 < box->rows ? base + (row + 1) * box->pitch : ADDRESS_SPACE;
}

/* One past the last byte below `end` of the slice that begins at `base`, below `end`. */
static wide slice_last(const struct box *box, wide base, wide end)
{
	wide row = box->rows > 1 ? wide_min((end - 1 - base) / box->pitch, box->rows - 1) : 0;

	return wide_min(base + row * box->pitch + box->width, end);
}

bool extent_overlaps(const struct extent *extent, uint64_t start, uint64_t end, uint64_t *ret_start, uint64_t *ret_end)
{
	wide address = extent->address, first = ADDRESS_SPACE, last = 0;
	uint64_t from = 0, to = 0, step;
	struct box box;

	if (extent_empty(extent) || start >= end || address >= end)
		return false;
	box = box_of(extent);
	/* Slices [from, to] are those whose hull meets [start, end). */
	if (box.slices > 1) {
		wide above = address + box.hull <= start ? (start - address - box.hull) / box.slice_pitch + 1 : 0;

		if (above >= box.slices)
			return false;
		from = (uint64_t)above;
		to = (uint64_t)wide_min((end - 1 - address) / box.slice_pitch, box.slices - 1);
		if (from > to)
			return false;
	}
	for (step = 0; step < SLICE_STEPS && from + step <= to; step++) {
		wide base = address + (from + step) * box.slice_pitch;

		if (base >= first)
			break;
		first = wide_min(first, slice_first(&box, base, start));
	}
	/* Too many slices to look through: their gaps are taken as written. */
	if (step == SLICE_STEPS)
		first = wide_max(address, start);
	for (step = 0; step < SLICE_STEPS && step <= to - from; step++) {
		wide base = address + (to - step) * box.slice_pitch;

		if (base + box.hull <= last)
			break;
		last = wide_max(last, slice_last(&box, base, end));
	}
	if (step == SLICE_STEPS)
		last = wide_max(last, wide_min(address + to * box.slice_pitch + box.hull, end));
	if (first >= end || last <= start)
		return false;
	if (ret_start)
		*ret_start = (uint64_t)first;
	if (ret_end)
		*ret_end = (uint64_t)last;
	return true;
}

bool extent_bounds(const struct extent *extent, uint64_t *ret_start, uint64_t *ret_end)
{
	wide rows, slices, end;

	if (extent_empty(extent) || extent->address == UINT64_MAX)
		return false;
	rows = wide_min((wide)(extent->rows - 1) * extent->pitch, ADDRESS_SPACE);
	slices = wide_min((wide)(extent->slices - 1) * extent->slice_pitch, ADDRESS_SPACE);
	end = wide_min(extent->address + slices + rows + extent->width, UINT64_MAX);
	*ret_start = extent->address;
	*ret_end = (uint64_t)end;
	return true;
}

/* Bytes of one slice that are written below offset `end` from its first one. */
static wide slice_below(const struct box *box, wide end)
{
	wide row = box->rows > 1 ? wide_min(end / box->pitch, box->rows - 1) : 0;

	return row * box->width + wide_min(end - row * box->pitch, box->width);
}

/* Bytes of the box that are written below offset `end`; slices must not interleave. */
static wide box_below(const struct box *box, wide end)
{
	wide slice = box->slices > 1 ? wide_min(end / box->slice_pitch, box->slices - 1) : 0;

	return slice * box->rows * box->width + slice_below(box, end - slice * box->slice_pitch);
}

uint64_t extent_bytes(const struct extent *extent, uint64_t start, uint64_t end)
{
	struct box box;
	wide from, to, count;

	if (extent_empty(extent) || start >= end || end <= extent->address)
		return 0;
	box = box_of(extent);
	if (box.slices > 1 && box.slice_pitch < box.hull)
		return 0;
	from = start > extent->address ? start - extent->address : 0;
	to = end - extent->address;
	count = box_below(&box, to) - box_below(&box, from);
	return count < ADDRESS_SPACE ? (uint64_t)count : 0;
}
