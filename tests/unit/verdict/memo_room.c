/* Launches that come again and again find room, however many came before that never come again. */
#include "tests/unit/verdict/memo_fake.h"

#define KERNELS 16
#define LIVE 256
#define DEAD 12000
#define ROUNDS 100

/* So that all addresses from here on, to the next allocation with ranges, lie between two. */
#define FIRST UINT64_C(0x200)
#define ADDRESSES ((BESIDE - FIRST) / 8)

static uint64_t value, seed;
static int number = 7;
static void *params[] = {&value, &number};

/* One of any kernel with any address. */
static CUfunction any_launch(void)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	value = FIRST + (seed >> 33) % ADDRESSES * 8;
	return function(1 + (unsigned)(seed >> 60), 1);
}

/* Of a round of launches how many go the long way. */
static unsigned judged(void)
{
	unsigned count = 0;
	seed = 1;
	for (unsigned nth = 0; nth < LIVE; nth++) {
		CUfunction of = any_launch();
		if (passes(of, params))
			continue;
		judge(of, params);
		count++;
	}
	return count;
}

Test(memo_room, launches_that_never_come_again, .init = set_up)
{
	neighbours_leave(BESIDE);
	cr_assert(neighbours_join(0x100, FIRST));
	/* Before all launches: what was kept before that is as good as gone. */
	for (unsigned kernel = 1; kernel <= KERNELS; kernel++)
		has_paths(function(kernel, 1), &all_stored);
	seed = 2;
	for (unsigned nth = 0; nth < DEAD; nth++)
		judge(any_launch(), params);
	for (unsigned round = 0; round < ROUNDS; round++)
		judged();
	unsigned last = judged();
	cr_assert_leq(last, LIVE / 100, "%u", last);
}

/* Of `count` kernels that store beside a range through three addresses each, how many launches of the last round pass. */
static unsigned passing(unsigned count)
{
	enum { EACH = 40 };
	uint64_t values[3];
	void *list[] = {&values[0], &values[1], &values[2], &number};
	unsigned passed = 0;
	for (unsigned i = 0; i < count; i++)
		has_paths(function(1 + i, 3), &all_stored);
	for (unsigned nth = 0; nth < EACH * count; nth++) {
		CUfunction of = function(1 + nth % count, 3);
		for (unsigned i = 0; i < 3; i++)
			values[i] = BESIDE + (nth % count * 3 + i) * 8;
		if (passes(of, list))
			passed += nth >= (EACH - 1) * count;
		else
			judge(of, list);
	}
	return passed;
}

/* 512 kernels by parameter have a place where they are named. */
Test(memo_room, more_kernels_than_are_named, .init = set_up)
{
	cr_assert_gt(passing(120), 110);
	cr_assert_gt(passing(200), 190);
	cr_assert_gt(passing(300), 270);
}
