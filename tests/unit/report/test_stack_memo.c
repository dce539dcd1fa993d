/* Stacks of threads and of coroutines that come to lie where others lay: what was kept of those must not lead out of these. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "shim/report/site_ring.h"

#define LARGE ((size_t)1 << 20)
#define CUT ((size_t)1 << 18) /* by so much the second stack is smaller */
#define FRAME ((size_t)3 << 17)

static bool by_number; /* through the ring */
static struct site taken;
static ucontext_t back, coroutine;
static char *room;

static __attribute__((noinline)) void hook(void)
{
	if (by_number)
		cr_assert(site_ring_get(site_ring_here(__builtin_return_address(0), 1), &taken));
	else
		site_capture(&taken, __builtin_return_address(0));
}

/* Its frame has no fixed size. */
static __attribute__((noinline)) void grow(size_t bytes)
{
	volatile char *grown = __builtin_alloca(bytes);
	grown[0] = 1;
	hook();
	__asm__ volatile("" ::"r"(grown));
}

static size_t frame;

static void in_coroutine(void)
{
	grow(frame);
	__asm__ volatile("");
}

static void *in_thread(void *unused)
{
	grow(frame);
	__asm__ volatile("");
	return NULL;
}

static void run_coroutine(size_t bytes)
{
	cr_assert_eq(getcontext(&coroutine), 0);
	coroutine.uc_stack.ss_sp = room;
	coroutine.uc_stack.ss_size = bytes;
	coroutine.uc_link = &back;
	makecontext(&coroutine, in_coroutine, 0);
	cr_assert_eq(swapcontext(&back, &coroutine), 0);
}

static void run_thread(size_t bytes)
{
	pthread_attr_t attributes;
	pthread_t thread;
	pthread_attr_init(&attributes);
	cr_assert_eq(pthread_attr_setstack(&attributes, room, bytes), 0);
	cr_assert_eq(pthread_create(&thread, &attributes, in_thread, NULL), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}

/* The hook's frame lies where it lay, the stack ends where the frame of grow() did. */
static void check(void (*run)(size_t bytes), bool with_ring)
{
	by_number = with_ring;
	site_prepare();
	site_ring_start();
	room = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(room, MAP_FAILED);
	frame = FRAME;
	run(LARGE);
	int count = taken.native_count;
	cr_assert_gt(count, 1);
	cr_assert_eq(munmap(room + LARGE - CUT, CUT), 0);
	frame = FRAME - CUT;
	run(LARGE - CUT);
	cr_assert_eq(taken.native_count, count);
}

Test(stack_memo, a_coroutine_on_a_smaller_stack)
{
	check(run_coroutine, false);
}

Test(stack_memo, a_coroutine_on_a_smaller_stack_by_number)
{
	check(run_coroutine, true);
}

Test(stack_memo, a_thread_on_a_smaller_stack)
{
	check(run_thread, false);
}

Test(stack_memo, a_thread_on_a_smaller_stack_by_number)
{
	check(run_thread, true);
}
