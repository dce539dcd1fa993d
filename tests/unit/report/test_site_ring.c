/* The ring of places: what is told by a number is the place that was put there, as long as the header says. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "shim/report/python.h"
#include "tests/unit/report/site_ring_sites.h"

#define ROUNDS 10000
#define YOUNG 1000 /* places that come before one is used again, from memory */

static void expect(uint64_t number, uint64_t seed)
{
	struct site got, put = site_of(seed);
	cr_assert(site_ring_get(number, &got), "place %lu is gone", (unsigned long)seed);
	cr_assert(same_site(&got, &put), "place %lu is another", (unsigned long)seed);
}

static uint64_t put(uint64_t seed)
{
	struct site site = site_of(seed);
	uint64_t number = site_ring_put(&site);
	expect(number, seed);
	return number;
}

Test(site_ring, nothing_is_kept_before_the_start)
{
	struct site site = site_of(20), got = site;
	cr_assert_eq(site_ring_put(&site), 0);
	cr_assert_not(site_ring_get(1, &got));
	cr_assert(!got.native_count && !got.python_count && !got.python_cut);
}

Test(site_ring, number_0_and_one_that_was_not_given_are_no_place)
{
	struct site got;
	site_ring_start();
	uint64_t number = put(5);
	cr_assert_not(site_ring_get(0, &got));
	cr_assert_not(site_ring_get(number + 1, &got));
	cr_assert_not(site_ring_get(UINT64_MAX, &got));
}

Test(site_ring, the_same_place_has_the_same_number)
{
	site_ring_start();
	uint64_t first = put(7);
	site_ring_start();
	for (int i = 0; i < ROUNDS; i++)
		cr_assert_eq(put(7), first);
}

Test(site_ring, places_in_turns_keep_their_numbers)
{
	uint64_t number[300];
	site_ring_start();
	for (uint64_t i = 0; i < 300; i++)
		number[i] = put(i);
	for (int round = 0; round < 20; round++)
		for (uint64_t i = 0; i < 300; i++)
			cr_assert_eq(put(i), number[i]);
}

/* Each member tells two places apart, also where all others are the same. */
Test(site_ring, places_that_differ_in_one_member_are_two)
{
	struct site site = site_of(15), got;
	site_ring_start();
	uint64_t number = site_ring_put(&site);
	struct site others[] = {site, site, site, site, site, site, site, site, site};
	others[0].python[14].line++;
	others[1].python[0].line++;
	others[2].python[14].file++;
	others[3].python[7].function++;
	others[4].native[15] = (char *)others[4].native[15] + 1;
	others[5].native[0] = (char *)others[5].native[0] + 1;
	others[6].python_count--;
	others[7].native_count--;
	others[8].python_cut = !others[8].python_cut;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		uint64_t other = site_ring_put(&others[i]);
		cr_assert_neq(other, number, "%zu", i);
		cr_assert(site_ring_get(other, &got) && same_site(&got, &others[i]), "%zu", i);
		cr_assert_eq(site_ring_put(&site), number);
		expect(number, 15);
	}
}

/* Whatever came before: from each use on a place lasts for SITE_RING_LASTS new ones. */
Test(site_ring, a_place_lasts_from_its_last_use_on)
{
	uint64_t fresh = 1000;
	site_ring_start();
	for (int before = 0; before < 4 * SITE_RING_LASTS; before += 97) {
		put(1);
		for (int i = 0; i < before; i++)
			put(fresh++);
		uint64_t number = put(1);
		for (int i = 0; i < SITE_RING_LASTS; i++)
			put(fresh++);
		expect(number, 1);
	}
}

Test(site_ring, a_young_place_is_used_again_and_an_old_one_is_written_anew)
{
	uint64_t fresh = 1000, number;
	site_ring_start();
	number = put(1);
	for (int i = 0; i < YOUNG; i++)
		put(fresh++);
	cr_assert_eq(put(1), number);
	for (int i = 0; i < YOUNG; i++)
		put(fresh++);
	cr_assert_neq(put(1), number);
}

/* More than there is room for: none is told for another. */
Test(site_ring, new_places_without_end)
{
	struct site got;
	site_ring_start();
	uint64_t first = put(1);
	for (uint64_t i = 2; i < ROUNDS; i++)
		put(i);
	cr_assert_not(site_ring_get(first, &got));
	cr_assert(!got.native_count && !got.python_count && !got.python_cut);
}

/* As a hook: its caller is where native frames start. */
static __attribute__((noinline)) uint64_t hook(void)
{
	struct site got, taken;
	uint64_t number = site_ring_here(__builtin_return_address(0), 1);
	site_capture(&taken, __builtin_return_address(0));
	cr_assert(site_ring_get(number, &got));
	cr_assert(taken.native_count > 0 && same_site(&got, &taken));
	return number;
}

/* Stacks that are alike but for one return address: no compiler may make one call of the two. */
static __attribute__((noinline)) uint64_t deep(unsigned way, int depth)
{
	uint64_t number;
	if (!depth) {
		number = hook();
		__asm__ volatile("# in");
	} else if (way >> (depth - 1) % 32 & 1) {
		__asm__ volatile("# one way");
		number = deep(way, depth - 1);
		__asm__ volatile("# and back");
	} else {
		__asm__ volatile("# the other");
		number = deep(way, depth - 1);
		__asm__ volatile("# back, too");
	}
	return number;
}

Test(site_ring, here_is_where_this_thread_is)
{
	uint64_t number[4];
	site_prepare();
	site_ring_start();
	for (int round = 0; round < 100; round++)
		for (unsigned way = 0; way < 4; way++) {
			uint64_t here = deep(way, 2);
			cr_assert(here && (!round || here == number[way]));
			for (unsigned other = 0; other < way; other++)
				cr_assert_neq(here, number[other]);
			number[way] = here;
		}
}

/* Also where there are more frames than a place has. */
Test(site_ring, here_at_all_depths)
{
	site_prepare();
	site_ring_start();
	for (int round = 0; round < 3; round++)
		for (int depth = 0; depth < 2 * SITE_NATIVE_FRAMES; depth++)
			deep(0x155555, depth);
}

/* The hook's caller calls itself by the same call: many frames return to that very address. */
static __attribute__((noinline)) uint64_t turn(uint64_t (*volatile next)(int), int depth)
{
	uint64_t number = next(depth);
	__asm__ volatile("# back");
	return number;
}

static uint64_t around(int depth)
{
	return depth ? turn(around, depth - 1) : hook();
}

Test(site_ring, here_where_many_frames_return_to_the_callers_address)
{
	site_prepare();
	site_ring_start();
	for (int round = 0; round < 3; round++)
		for (int depth = 0; depth < 2 * SITE_NATIVE_FRAMES; depth++)
			turn(around, depth);
}

/* An interpreter that is loaded and starts in the middle, and runs nothing. */
static bool loaded, started;

static int is_initialized(void)
{
	return started;
}

static void *no_thread_state(void)
{
	return NULL;
}

static void *look_up(const char *symbol)
{
	static unsigned long version = 0x030b07f0, type;
	if (!loaded)
		return NULL;
	if (!strcmp(symbol, "Py_Version"))
		return &version;
	if (!strcmp(symbol, "Py_IsInitialized"))
		return (void *)(uintptr_t)is_initialized;
	if (!strcmp(symbol, "PyGILState_GetThisThreadState"))
		return (void *)(uintptr_t)no_thread_state;
	return strstr(symbol, "_Type") ? &type : NULL;
}

/* A library that was not there before: a sanitizer's runtime brings some. */
static void *load_something(void)
{
	static const char *const names[] = {"libBrokenLocale.so.1", "libanl.so.1", "libcrypt.so.1", "libstdc++.so.6"};
	void *found = NULL;
	for (size_t i = 0; !found && i < sizeof names / sizeof *names; i++)
		if (!dlopen(names[i], RTLD_NOW | RTLD_NOLOAD))
			found = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return found;
}

/* Asks for Python where the ring does, and nowhere else. */
static __attribute__((noinline)) uint64_t quiet_hook(void)
{
	uint64_t number = site_ring_here(__builtin_return_address(0), 1);
	__asm__ volatile("# in");
	return number;
}

static __attribute__((noinline)) uint64_t from_another_place(void)
{
	uint64_t number = quiet_hook();
	__asm__ volatile("# there");
	return number;
}

/* It is looked for at intervals; a place that was met between two looks may be one that Python calls from. */
Test(site_ring, python_that_started_since_it_was_asked_for)
{
	site_prepare();
	site_ring_start();
	site_set_resolver(look_up);
	quiet_hook();
	loaded = load_something();
	cr_assert(loaded);
	usleep(20000);
	cr_assert(quiet_hook() && !python_known());
	started = true;
	for (int i = 0; i < 3; i++) {
		cr_assert(from_another_place());
		usleep(20000);
	}
	cr_assert(python_known());
}

/*
 * A thread that is held up in the middle while more are put than there is room for: signals that come at any moment stand for the other threads. What was given meanwhile holds.
 */
#define MEANWHILE (2 * SITE_RING_LASTS + 100) /* more than the ring has */
#define HELD_UP 400                           /* times */

static volatile uint64_t met = 1000000, given[SITE_RING_LASTS];
static volatile int held_up;

static void meanwhile(int unused)
{
	for (uint64_t i = 0; i < MEANWHILE; i++, met++) {
		struct site site = site_of(met);
		given[met % SITE_RING_LASTS] = site_ring_put(&site);
	}
	held_up++;
}

Test(site_ring, what_is_given_while_a_thread_is_held_up, .timeout = 60)
{
	const struct itimerval soon = {.it_value = {.tv_usec = 20}};
	uint64_t fresh = 1;
	site_ring_start();
	cr_assert_eq(sigaction(SIGALRM, &(struct sigaction){.sa_handler = meanwhile}, NULL), 0);
	for (int last = held_up; held_up < HELD_UP; last = held_up) {
		cr_assert_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
		while (held_up == last) {
			struct site site = site_of(fresh++ % 500000);
			site_ring_put(&site);
		}
		/* The one that was put then may have been the first after them. */
		for (uint64_t seed = met - SITE_RING_LASTS + 1; seed < met; seed++)
			if (given[seed % SITE_RING_LASTS])
				expect(given[seed % SITE_RING_LASTS], seed);
	}
}
