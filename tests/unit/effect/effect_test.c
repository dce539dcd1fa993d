/* Boxes against ranges, compared byte by byte with what the rows say; and boxes at the ends of the address space. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#include "shim/effects/effect.h"

TestSuite(effect, .timeout = 60);

/* Untouched outputs keep these. */
#define NO_START 111
#define NO_END 222

static void expect_overlap(struct extent extent, uint64_t start, uint64_t end, uint64_t wanted_start, uint64_t wanted_end)
{
	uint64_t from = NO_START, to = NO_END;

	cr_assert(extent_overlaps(&extent, start, end, &from, &to));
	cr_assert(eq(u64, from, wanted_start));
	cr_assert(eq(u64, to, wanted_end));
	cr_assert(extent_overlaps(&extent, start, end, NULL, NULL));
}

static void expect_none(struct extent extent, uint64_t start, uint64_t end)
{
	uint64_t from = NO_START, to = NO_END;

	cr_assert(not(extent_overlaps(&extent, start, end, &from, &to)));
	cr_assert(eq(u64, from, NO_START));
	cr_assert(eq(u64, to, NO_END));
}

static struct extent plain(uint64_t address, uint64_t width)
{
	return (struct extent){.address = address, .width = width, .pitch = 0, .rows = 1, .slice_pitch = 0, .slices = 1};
}

Test(effect, plain_copies)
{
	expect_overlap(plain(100, 50), 0, 1000, 100, 150);
	expect_overlap(plain(100, 50), 149, 1000, 149, 150);
	expect_overlap(plain(100, 50), 0, 101, 100, 101);
	expect_none(plain(100, 50), 150, 1000);
	expect_none(plain(100, 50), 0, 100);
	expect_none(plain(100, 50), 120, 120);
	expect_none(plain(100, 50), 130, 120);
}

Test(effect, pitches_of_single_rows_do_not_matter)
{
	struct extent extent = {
		.address = 100, .width = 50, .pitch = UINT64_MAX, .rows = 1, .slice_pitch = UINT64_MAX, .slices = 1};

	expect_overlap(extent, 0, UINT64_MAX, 100, 150);
}

Test(effect, gaps_between_rows_are_not_written)
{
	struct extent extent = {.address = 1000, .width = 10, .pitch = 100, .rows = 5, .slice_pitch = 0, .slices = 1};

	expect_none(extent, 1010, 1100);
	expect_none(extent, 1410, 5000);
	expect_overlap(extent, 1010, 1101, 1100, 1101);
	expect_overlap(extent, 1005, 1200, 1005, 1110);
	expect_overlap(extent, 0, 5000, 1000, 1410);
}

Test(effect, gaps_between_slices_are_not_written)
{
	struct extent extent = {.address = 1000, .width = 10, .pitch = 100, .rows = 3, .slice_pitch = 1000, .slices = 4};

	expect_none(extent, 1210, 2000);
	expect_none(extent, 2310, 3000);
	expect_overlap(extent, 1210, 2001, 2000, 2001);
	expect_overlap(extent, 1150, 4105, 1200, 4105);
	expect_none(extent, 4210, UINT64_MAX);
}

Test(effect, empty_boxes_write_nothing)
{
	struct extent extent = {.address = 0, .width = 10, .pitch = 10, .rows = 10, .slice_pitch = 100, .slices = 10};
	struct extent empty;
	uint64_t start = NO_START, end = NO_END;

	for (int which = 0; which < 3; which++) {
		empty = extent;
		*(which == 0 ? &empty.width : which == 1 ? &empty.rows : &empty.slices) = 0;
		expect_none(empty, 0, UINT64_MAX);
		cr_assert(not(extent_bounds(&empty, &start, &end)));
		cr_assert(eq(u64, start, NO_START));
		cr_assert(eq(u64, end, NO_END));
	}
}

Test(effect, nothing_wraps)
{
	struct extent huge = {UINT64_MAX - 9, 100, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
	struct extent low = {16, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
	struct extent rows = {16, 1, UINT64_MAX / 2 + 1, UINT64_MAX, 8, 3};
	uint64_t start, end;

	expect_none(huge, 0, UINT64_MAX - 9);
	expect_overlap(huge, 0, UINT64_MAX, UINT64_MAX - 9, UINT64_MAX);
	expect_overlap(low, 0, UINT64_MAX, 16, UINT64_MAX);
	expect_none(low, 0, 16);
	expect_overlap(rows, 17, UINT64_MAX, 24, UINT64_MAX / 2 + 1 + 16 + 16 + 1);
	expect_none(rows, 0, 16);
	cr_assert(extent_bounds(&huge, &start, &end));
	cr_assert(eq(u64, start, UINT64_MAX - 9));
	cr_assert(eq(u64, end, UINT64_MAX));
	cr_assert(extent_bounds(&rows, &start, &end));
	cr_assert(eq(u64, start, 16));
	cr_assert(eq(u64, end, UINT64_MAX));
	huge.address = UINT64_MAX;
	cr_assert(not(extent_bounds(&huge, &start, &end)), "no half-open range holds the last byte");
	expect_none(huge, 0, UINT64_MAX);
}

Test(effect, bytes_of_what_no_program_has_memory_for)
{
	struct extent huge = {16, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
	struct extent rows = {0, 1, 2, UINT64_MAX, 0, 1};
	struct extent boxes = {1000, 10, 100, 3, 1000, UINT64_MAX};

	cr_assert(eq(u64, extent_bytes(&huge, 0, UINT64_MAX), UINT64_MAX - 16));
	cr_assert(eq(u64, extent_bytes(&rows, 0, UINT64_MAX), UINT64_MAX / 2 + 1));
	cr_assert(eq(u64, extent_bytes(&boxes, 1105, 4005), 5 + 10 + 30 + 30 + 5));
	cr_assert(eq(u64, extent_bytes(&boxes, 0, 1000), 0));
}

Test(effect, bounds)
{
	struct extent extent = {.address = 1000, .width = 10, .pitch = 100, .rows = 3, .slice_pitch = 1000, .slices = 4};
	uint64_t start, end;

	cr_assert(extent_bounds(&extent, &start, &end));
	cr_assert(eq(u64, start, 1000));
	cr_assert(eq(u64, end, 4210));
}

/* Garbage dimensions come from programs, and must not keep the caller busy. */
Test(effect, many_interleaved_slices_are_answered_at_once)
{
	const uint64_t many = UINT64_C(1) << 40;
	struct extent extent = {.address = 0, .width = 1, .pitch = 3, .rows = many, .slice_pitch = 7, .slices = many};

	for (int round = 0; round < 100; round++)
		cr_assert(extent_overlaps(&extent, UINT64_C(1) << 41, (UINT64_C(1) << 41) + 100, NULL, NULL));
	expect_none(extent, (UINT64_C(1) << 40) * 10, UINT64_MAX);
}

enum { SPACE = 500 };

static uint64_t state = 0x9e3779b97f4a7c15;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 3) % below;
}

/* Any pitches, also such that rows and slices overlap, touch or interleave. */
Test(effect, as_the_bytes_say)
{
	unsigned overlapping = 0, interleaved = 0, exact = 0;

	for (int round = 0; round < 300000; round++) {
		static bool written[SPACE];
		struct extent extent = {.address = draw(60),
		                        .width = draw(12),
		                        .pitch = draw(30),
		                        .rows = draw(5),
		                        .slice_pitch = draw(60),
		                        .slices = draw(5)};
		uint64_t start = draw(SPACE), end = start + draw(40), from = NO_START, to = NO_END;
		uint64_t first = SPACE, last = 0, bytes = 0, counted;
		bool hit;

		memset(written, 0, sizeof written);
		for (uint64_t slice = 0; slice < extent.slices; slice++) {
			for (uint64_t row = 0; row < extent.rows; row++)
				memset(written + extent.address + slice * extent.slice_pitch + row * extent.pitch, 1,
				       extent.width);
		}
		for (uint64_t at = start; at < end && at < SPACE; at++) {
			if (!written[at])
				continue;
			first = at < first ? at : first;
			last = at + 1;
			bytes++;
		}
		hit = extent_overlaps(&extent, start, end, &from, &to);
		if (hit != (last > 0) || (hit && (from != first || to != last))) {
			char box[256];

			snprintf(box, sizeof box,
			         "box %lu width %lu, %lu rows by %lu, %lu slices by %lu; range %lu-%lu", extent.address,
			         extent.width, extent.rows, extent.pitch, extent.slices, extent.slice_pitch, start, end);
			cr_assert(false, "%s: got %d %lu-%lu, bytes say %lu-%lu", box, hit, from, to, first, last);
		}
		counted = extent_bytes(&extent, start, end);
		cr_assert(counted == bytes || (counted == 0 && extent.rows > 1 && extent.slices > 1),
		          "%lu bytes counted, %lu written", counted, bytes);
		exact += hit && counted == bytes;
		overlapping += hit;
		interleaved += extent.rows > 1 && extent.slices > 1 &&
		               extent.slice_pitch < extent.rows * extent.pitch && hit;
	}
	/* The draw is such that all kinds come up. */
	cr_assert(gt(uint, overlapping, 20000));
	cr_assert(gt(uint, exact, overlapping / 2));
	cr_assert(gt(uint, interleaved, 3000));
}
