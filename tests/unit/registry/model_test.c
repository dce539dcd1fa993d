/*
 * Random operations, each answer compared with that of a naive array of intervals. Built twice: with the product's
 * nodes and with nodes of four entries, whose trees are deep. CUCONST_TEST_SEED picks the sequence; a failure
 * prints it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "registry/registry.h"
#include "tests/unit/registry/check.h"

TestSuite(registry_model, .timeout = 120);

#define OPERATIONS 200000
#define MOST_LIVE 1500
#define MOST_HANDLES (OPERATIONS + 1)

struct interval {
	uint64_t start, end;
	registry_handle handle;
};

static struct {
	uint64_t seed, state;
	struct interval live[MOST_LIVE]; /* by start, then handle */
	size_t many;
	registry_handle gone[MOST_HANDLES];
	size_t gone_many;
	struct registry *reg;
	unsigned operation;
	int attachments, released;
} model;

#define expect(condition)                                                                                              \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			cr_assert_fail("%s; CUCONST_TEST_SEED=%llu, operation %u, %zu ranges", #condition,             \
			               (unsigned long long)model.seed, model.operation, model.many);                   \
	} while (0)

/* xorshift64*: the same sequence everywhere. */
static uint64_t draw(uint64_t below)
{
	model.state ^= model.state >> 12;
	model.state ^= model.state << 25;
	model.state ^= model.state >> 27;
	return ((model.state * UINT64_C(2685821657736338717)) >> 11) % below;
}

static void on_release(void *attachment)
{
	model.released++;
}

/* How intervals are drawn: each shape stresses another thing. */
struct shape {
	const char *name;
	uint64_t base, space, longest;
	bool nested; /* around one centre, so that nearly all overlap */
};

static struct interval draw_interval(const struct shape *shape)
{
	struct interval drawn;

	if (shape->nested) {
		uint64_t reach = draw(shape->space / 2) + 1;

		drawn.start = shape->base + shape->space / 2 - reach;
		drawn.end = shape->base + shape->space / 2 + draw(reach) + 1;
	} else {
		uint64_t length = draw(shape->longest) + 1;

		drawn.start = shape->base + draw(shape->space - length);
		drawn.end = drawn.start + length;
	}
	drawn.handle = 0;
	return drawn;
}

static void do_insert(const struct shape *shape)
{
	struct interval new = draw_interval(shape);
	struct registry_spec spec = {.start = new.start, .end = new.end, .label = shape->name, .attachment = &model};
	size_t at = model.many;

	if (model.many == MOST_LIVE)
		return;
	expect(registry_insert(model.reg, &spec, &new.handle, NULL) == 0);
	model.attachments++;
	while (at > 0 && (model.live[at - 1].start > new.start ||
	                  (model.live[at - 1].start == new.start &&model.live[at - 1].handle > new.handle))) {
		model.live[at] = model.live[at - 1];
		at--;
	}
	model.live[at] = new;
	model.many++;
}

static void do_remove(void)
{
	size_t at;

	if (model.many == 0)
		return;
	at = draw(model.many);
	model.gone[model.gone_many++] = model.live[at].handle;
	expect(registry_remove(model.reg, model.live[at].handle, NULL) == 0);
	model.many--;
	for (; at < model.many; at++)
		model.live[at] = model.live[at + 1];
	expect(model.released == (int)model.gone_many);
}

static void do_stale(void)
{
	registry_handle handle;
	struct range *range;

	if (model.gone_many > 0) {
		handle = model.gone[draw(model.gone_many)];
		expect(registry_remove(model.reg, handle, NULL) == -ESTALE);
		expect(registry_find(model.reg, handle) == NULL);
	}
	if (model.many > 0) {
		const struct interval *any = &model.live[draw(model.many)];

		range = registry_find(model.reg, any->handle);
		expect(range && range->start == any->start && range->end == any->end && range->handle == any->handle);
		range_put(range);
	}
}

static void do_overlaps(const struct shape *shape)
{
	static struct range *out[MOST_LIVE];
	struct interval asked = draw_interval(shape);
	size_t room = draw(4) ? MOST_LIVE : draw(8), total = 0, got;

	if (draw(2))
		asked.end = asked.start + 1;
	got = registry_overlaps(model.reg, asked.start, asked.end, out, room);
	for (size_t at = 0; at < model.many; at++) {
		const struct interval *one = &model.live[at];

		if (one->start >= asked.end || one->end <= asked.start)
			continue;
		if (total < room) {
			expect(total < got && out[total]->handle == one->handle);
			expect(out[total]->start == one->start && out[total]->end == one->end);
			range_put(out[total]);
		}
		total++;
	}
	expect(got == total);
	expect(registry_hits(model.reg, asked.start, asked.end) == (total > 0));
	expect(total == 0 || registry_in_bounds(model.reg, asked.start, asked.end));
}

static uint64_t distance_to(const struct interval *one, uint64_t address)
{
	if (address < one->start)
		return one->start - address;
	return address < one->end ? 0 : address - one->end + 1;
}

static void do_nearest(const struct shape *shape)
{
	uint64_t address = shape->base + draw(shape->space), distance;
	struct range *range = registry_nearest(model.reg, address, &distance);
	const struct interval *best = NULL;

	for (size_t at = 0; at < model.many; at++) {
		if (!best || distance_to(&model.live[at], address) < distance_to(best, address))
			best = &model.live[at];
	}
	expect(!range == !best);
	if (best) {
		expect(distance == distance_to(best, address));
		expect(range->handle == best->handle);
	}
	range_put(range);
}

static void run(const struct shape *shape)
{
	const char *seed = getenv("CUCONST_TEST_SEED");
	const struct registry_hooks hooks = {.release = on_release};
	unsigned bias = 60;

	model.seed = seed ? strtoull(seed, NULL, 0) : 20250301;
	model.state = model.seed * 2 + 1;
	expect(registry_create(&hooks, &model.reg) == 0);
	for (model.operation = 0; model.operation < OPERATIONS; model.operation++) {
		/* Grow, shrink to nothing, grow again. */
		if (model.operation % 5000 == 0)
			bias = bias == 60 ? 20 : 60;
		if (model.operation % 20000 == 0)
			bias = 60;
		switch (draw(10)) {
		case 0:
			do_stale();
			break;
		case 1:
			do_overlaps(shape);
			break;
		case 2:
			do_nearest(shape);
			break;
		default:
			if (draw(100) < bias)
				do_insert(shape);
			else
				do_remove();
		}
		if (model.operation % 64 == 0) {
			const char *broken = check_registry(model.reg);

			if (broken)
				cr_assert_fail("%s; CUCONST_TEST_SEED=%llu, operation %u", broken,
				               (unsigned long long)model.seed, model.operation);
		}
	}
	registry_destroy(&model.reg);
	expect(model.released == model.attachments);
}

Test(registry_model, scattered)
{
	run(&(const struct shape){"scattered", UINT64_C(0x7f0000000000), UINT64_C(1) << 36, 1 << 20, false});
}

Test(registry_model, crowded)
{
	run(&(const struct shape){"crowded", 0, 5000, 40, false});
}

Test(registry_model, few_addresses)
{
	run(&(const struct shape){"few addresses", 1000, 12, 4, false});
}

Test(registry_model, heavily_nested)
{
	run(&(const struct shape){"heavily nested", 4096, UINT64_C(1) << 30, 0, true});
}

Test(registry_model, short_and_very_long)
{
	run(&(const struct shape){"short and very long", 0, 100000, 90000, false});
}

Test(registry_model, top_of_the_address_space)
{
	run(&(const struct shape){"top", UINT64_MAX - 3000, 3000, 50, false});
}
