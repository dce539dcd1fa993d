/* The ring of notes for faults: a launch that is noted is found as long as NOTES others have not been. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/time.h>

#include "shim/effects/call.h"
#include "shim/kernels/function.h"
#include "shim/verdict/fault.h"
#include "shim/verdict/fault_notes.h"
#include "shim/verdict/judge_internal.h"

#define MEANWHILE (2 * NOTES)
#define HELD_UP 1000 /* times */

static struct function_info *kernel;
static struct judgement place;
static volatile uint64_t met;
static volatile int held_up;

/* Its value tells which it is. */
static bool note(uint64_t value)
{
	struct call call;
	call_begin(&call, ENTRY_cuLaunchKernel, (CUstream)0x20, NULL);
	call.judgement = &place;
	call.slots[0] = (struct call_slot){.function = kernel, .verdict = KERNEL_STORES, .value = value, .twin = 1};
	call.slot_count = 1;
	return fault_note(&call);
}

static void set_up(void)
{
	kernel = calloc(1, sizeof *kernel + sizeof kernel->params[0]);
	*kernel = (struct function_info){.name = "kernel", .readable = true, .param_count = 1, .params_bytes = 8};
	kernel->params[0].bytes = 8;
	fault_start();
}

Test(notes, the_last_ones_are_told, .init = set_up)
{
	struct note_told told;
	for (uint64_t value = 0; value < 5 * NOTES; value++) {
		cr_assert(note(value));
		cr_assert_eq(fault_noted(), value + 1);
	}
	for (uint64_t number = 4 * NOTES; number < 5 * NOTES; number++)
		cr_assert(note_read(number, NULL, &told) && told.kernel.value == number && told.stream == 0x20);
	cr_assert(!note_read(4 * NOTES - 1, NULL, &told) && !note_read(5 * NOTES, NULL, &told));
	fault_ended(NULL, 0x20, 5 * NOTES);
	cr_assert(!note_read(5 * NOTES - 1, NULL, &told));
}

Test(notes, from_the_beginning_again, .init = set_up)
{
	struct note_told told;
	for (uint64_t value = 0; value < 3 * NOTES; value++)
		note(value);
	notes_reset();
	cr_assert(!note_read(2 * NOTES, NULL, &told) && !fault_noted());
	note(7);
	cr_assert(note_read(0, NULL, &told) && told.kernel.value == 7);
}

/* How many of the last ones there are, but for the oldest, in whose place one more may have been noted. */
static uint64_t upto;

static unsigned count_last(void)
{
	struct note_told told;
	unsigned count = 0;
	for (uint64_t number = upto - NOTES + 1; number < upto; number++)
		count += note_read(number, NULL, &told);
	return count;
}

/* Others note more than there is room for while one thread is held up in the middle; signals stand for them. */
static volatile unsigned there;

static void meanwhile(int unused)
{
	for (int i = 0; i < MEANWHILE; i++)
		note(++met);
	upto = fault_noted();
	there = count_last();
	held_up++;
}

Test(notes, while_a_thread_is_held_up, .init = set_up, .timeout = 60)
{
	const struct itimerval soon = {.it_value = {.tv_usec = 20}};
	cr_assert_eq(sigaction(SIGALRM, &(struct sigaction){.sa_handler = meanwhile}, NULL), 0);
	for (int last = held_up; held_up < HELD_UP; last = held_up) {
		cr_assert_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
		while (held_up == last)
			note(0);
		/* All but the one in whose place the thread was writing. */
		cr_assert_geq(there, NOTES - 2);
		cr_assert_eq(count_last(), there);
	}
}
