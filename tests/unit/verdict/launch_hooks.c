/* The hooks of launches (shim/doors/launch.S), called as a program calls them, with recorders in place of the driver: each way through them, and what they have to leave as it was. */
#include <pthread.h>
#include <string.h>
#include <unwind.h>

#include "tests/unit/verdict/memo_fake.h"

#define ARGUMENTS 11
#define OFTEN 2000000
#define SAVED 6 /* registers that belong to the caller: rbx, rbp, r12 to r15 */

typedef CUresult (*any_hook)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                             uint64_t, uint64_t);

CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                             void **, void **);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *, CUfunction, void **, void **);
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                        unsigned, CUstream, void **);

/* Calls the hook with these arguments, six in registers and five on the stack, and numbers in the caller's registers; *ret_saved: what is in them afterwards. */
CUresult call_marked(any_hook hook, const uint64_t arguments[ARGUMENTS], uint64_t ret_saved[SAVED]);
__asm__(".text\n"
        ".globl call_marked\n"
        ".type call_marked, @function\n"
        "call_marked:\n"
        "	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n	push %rdx\n"
        "	sub $48, %rsp\n"
        "	mov %rdi, %r11\n"
        "	mov %rsi, %r10\n"
        "	mov 48(%r10), %rax\n	mov %rax, (%rsp)\n"
        "	mov 56(%r10), %rax\n	mov %rax, 8(%rsp)\n"
        "	mov 64(%r10), %rax\n	mov %rax, 16(%rsp)\n"
        "	mov 72(%r10), %rax\n	mov %rax, 24(%rsp)\n"
        "	mov 80(%r10), %rax\n	mov %rax, 32(%rsp)\n"
        "	mov (%r10), %rdi\n	mov 8(%r10), %rsi\n	mov 16(%r10), %rdx\n"
        "	mov 24(%r10), %rcx\n	mov 32(%r10), %r8\n	mov 40(%r10), %r9\n"
        "	mov $101, %rbx\n	mov $102, %rbp\n	mov $103, %r12\n	mov $104, %r13\n	mov $105, %r14\n	mov $106, %r15\n"
        "	call *%r11\n"
        "	mov 48(%rsp), %rdx\n"
        "	mov %rbx, (%rdx)\n	mov %rbp, 8(%rdx)\n	mov %r12, 16(%rdx)\n"
        "	mov %r13, 24(%rdx)\n	mov %r14, 32(%rdx)\n	mov %r15, 40(%rdx)\n"
        "	add $48, %rsp\n"
        "	pop %rdx\n	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbx\n	pop %rbp\n"
        "	ret\n"
        ".size call_marked, . - call_marked\n");

/* What the driver was given, and what it answers. */
static struct {
	uint64_t argument[ARGUMENTS];
	unsigned calls, depth, hook; /* `hook`: whose call of the driver it was */
	bool aligned, unwinds;
} seen;
static CUresult answer;

static _Unwind_Reason_Code is_the_tests(struct _Unwind_Context *context, void *test)
{
	return _Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(context)) == test ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

static void *unwound_to; /* NULL: nobody asks */

static CUresult record(unsigned hook, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
                       uint64_t g, uint64_t h, uint64_t i, uint64_t j, uint64_t k, const void *frame)
{
	const uint64_t all[] = {a, b, c, d, e, f, g, h, i, j, k};
	memcpy(seen.argument, all, sizeof all);
	seen.calls++;
	seen.hook = hook;
	seen.depth = hook_thread.depth;
	seen.aligned = (uintptr_t)frame % 16 == 0;
	/* It ends with another code where it was not stopped. */
	seen.unwinds = unwound_to && _Unwind_Backtrace(is_the_tests, unwound_to) != _URC_END_OF_STACK;
	return answer;
}

/* One for each of the driver's calls. */
#define RECORDER(hook)                                                                                                 \
	static CUresult record_##hook(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,          \
	                              uint64_t g, uint64_t h, uint64_t i, uint64_t j, uint64_t k)                      \
	{                                                                                                              \
		return record(hook, a, b, c, d, e, f, g, h, i, j, k, __builtin_frame_address(0));                      \
	}
RECORDER(0)
RECORDER(1)
RECORDER(2)
RECORDER(3)
RECORDER(4)
RECORDER(5)
static const any_hook recorders[] = {record_0, record_1, record_2, record_3, record_4, record_5};

static const struct {
	const char *name;
	void *hook;
	void **real;
	unsigned arguments, function, params; /* how many, and which are these */
} hooks[] = {
	{"cuLaunchKernel", (void *)cuLaunchKernel, (void **)&drv.cuLaunchKernel, 11, 0, 9},
	{"cuLaunchKernel_ptsz", (void *)cuLaunchKernel_ptsz, (void **)&drv.cuLaunchKernel_ptsz, 11, 0, 9},
	{"cuLaunchKernelEx", (void *)cuLaunchKernelEx, (void **)&drv.cuLaunchKernelEx, 4, 1, 2},
	{"cuLaunchKernelEx_ptsz", (void *)cuLaunchKernelEx_ptsz, (void **)&drv.cuLaunchKernelEx_ptsz, 4, 1, 2},
	{"cuLaunchCooperativeKernel", (void *)cuLaunchCooperativeKernel, (void **)&drv.cuLaunchCooperativeKernel, 10, 0,
         9},
	{"cuLaunchCooperativeKernel_ptsz", (void *)cuLaunchCooperativeKernel_ptsz,
         (void **)&drv.cuLaunchCooperativeKernel_ptsz, 10, 0, 9},
};
#define HOOKS (sizeof hooks / sizeof *hooks)
_Static_assert(HOOKS == sizeof recorders / sizeof *recorders, "a recorder for each");

static uint64_t value;
static int number = 7;
static void *params[] = {&value, &number};

/* Through hook `nth`: one launch, with all arguments different; and that it went through as it should. */
static void launch(unsigned nth, CUfunction of, const char *way)
{
	static const CUlaunchConfig config;
	uint64_t arguments[ARGUMENTS], saved[SAVED], launches = hook_counted(COUNT_LAUNCH);
	const bool has_config = hooks[nth].function == 1;
	for (unsigned i = 0; i < ARGUMENTS; i++)
		arguments[i] = 1000 + i;
	if (has_config)
		arguments[0] = (uintptr_t)&config;
	arguments[hooks[nth].function] = (uintptr_t)of;
	arguments[hooks[nth].params] = (uintptr_t)params;
	if (hooks[nth].arguments == ARGUMENTS || has_config)
		arguments[hooks[nth].params + 1] = 0; /* no `extra` */
	memset(&seen, 0, sizeof seen);
	cr_assert_eq(call_marked((any_hook)hooks[nth].hook, arguments, saved), answer, "%s, %s", hooks[nth].name, way);
	cr_assert(seen.calls == 1 && seen.hook == nth, "%s, %s", hooks[nth].name, way);
	for (unsigned i = 0; i < hooks[nth].arguments; i++)
		cr_assert_eq(seen.argument[i], arguments[i], "%s, %s: argument %u", hooks[nth].name, way, i);
	for (unsigned i = 0; i < SAVED; i++)
		cr_assert_eq(saved[i], 101 + i, "%s, %s: register %u", hooks[nth].name, way, i);
	cr_assert(seen.aligned, "%s, %s", hooks[nth].name, way);
	cr_assert_eq(hook_counted(COUNT_LAUNCH), launches + 1, "%s, %s", hooks[nth].name, way);
}

static void set_up_hooks(void)
{
	set_up();
	for (unsigned i = 0; i < HOOKS; i++)
		*hooks[i].real = (void *)recorders[i];
}

static void *launch_all(void *way)
{
	for (unsigned i = 0; i < HOOKS; i++)
		launch(i, function(1, 1), way);
	return NULL;
}

Test(launch_hooks, nothing_is_protected, .init = set_up_hooks)
{
	pthread_t thread;
	launch_all("its own counts");
	hook_thread.counts = &hook_counts_shared;
	launch_all("shared counts");
	cr_assert_eq(pthread_create(&thread, NULL, launch_all, "no counts yet"), 0);
	pthread_join(thread, NULL);
	answer = CUDA_ERROR_LAUNCH_FAILED;
	launch_all("an error");
}

static CUresult answer_only(void)
{
	return CUDA_SUCCESS;
}

static pthread_barrier_t both;

static void *launch_often(void *unused)
{
	hook_thread.counts = &hook_counts_shared;
	pthread_barrier_wait(&both);
	for (int i = 0; i < OFTEN; i++)
		cuLaunchKernel(function(1, 1), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
	return NULL;
}

Test(launch_hooks, counts_that_threads_share, .init = set_up_hooks)
{
	pthread_t threads[2];
	drv.cuLaunchKernel = (void *)answer_only;
	cr_assert_eq(pthread_barrier_init(&both, NULL, 2), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, launch_often, NULL), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(hook_counted(COUNT_LAUNCH), 2 * OFTEN);
}

/* So often that none of the next ones is due to be checked. */
static void judge_until_kept(CUfunction of)
{
	has_paths(of, &all_stored);
	for (int i = 0; i < 17; i++)
		judge(of, params);
}

/* The driver called back: nothing is looked at, not even what is known. */
Test(launch_hooks, inside_a_hook, .init = set_up_hooks)
{
	hook_line.armed = true;
	value = BESIDE;
	judge_until_kept(function(1, 1));
	uint64_t near = hook_counted(COUNT_NEAR);
	hook_thread.depth = 2;
	launch_all("inside");
	cr_assert(hook_thread.depth == 2 && seen.depth == 2);
	cr_assert_eq(hook_counted(COUNT_NEAR), near);
}

Test(launch_hooks, the_long_way, .init = set_up_hooks)
{
	hook_line.armed = true;
	value = BESIDE;
	for (int failing = 0; failing < 2; failing++) {
		answer = failing ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
		for (unsigned i = 0; i < HOOKS; i++) {
			CUfunction of = function(1 + i + failing * (unsigned)HOOKS, 1);
			uint64_t near = hook_counted(COUNT_NEAR);
			has_paths(of, &all_stored);
			launch(i, of, "long");
			cr_assert(hook_thread.depth == 0 && seen.depth == 1);
			cr_assert_eq(hook_counted(COUNT_NEAR), near + 1);
		}
	}
}

/* Of each what one launch is counted as, and whether somebody waits for its end, in the driver and afterwards. */
static void passes_in_all(uint64_t address, unsigned near, bool watched)
{
	static unsigned kernels;
	CUfunction of = function(++kernels, 1);
	value = address;
	judge_until_kept(of);
	for (unsigned i = 0; i < HOOKS; i++) {
		uint64_t counted = hook_counted(COUNT_NEAR), launches = hook_thread.launches;
		launch(i, of, watched ? "watched" : "passes");
		cr_assert_eq(hook_counted(COUNT_NEAR), counted + near, "%s", hooks[i].name);
		/* By the long way the thread would be inside the hook, whoever waits. */
		cr_assert_eq(seen.depth, watched, "%s", hooks[i].name);
		cr_assert_eq(hook_thread.launches, launches + (watched && answer == CUDA_SUCCESS), "%s", hooks[i].name);
		cr_assert_eq(hook_thread.depth, 0, "%s", hooks[i].name);
	}
}

Test(launch_hooks, launches_that_were_judged_before, .init = set_up_hooks)
{
	hook_line.armed = true;
	for (int i = 0; i < 2; i++) {
		passes_in_all(0, 0, false);
		passes_in_all(BESIDE, 1, false);
		hook_thread.outer.api = "cudaLaunchKernel";
		passes_in_all(0, 0, true);
		passes_in_all(BESIDE + 8, 1, true);
		hook_thread.outer.api = NULL;
		answer = CUDA_ERROR_LAUNCH_FAILED;
	}
}

Test(launch_hooks, a_driver_that_has_no_such_call, .init = set_up_hooks)
{
	const uint64_t arguments[ARGUMENTS] = {0};
	uint64_t saved[SAVED];
	for (unsigned i = 0; i < HOOKS; i++) {
		*hooks[i].real = NULL;
		cr_assert_eq(call_marked((any_hook)hooks[i].hook, arguments, saved), CUDA_ERROR_NOT_FOUND, "%s",
		             hooks[i].name);
		cr_assert_eq(seen.calls, 0);
	}
}

/* What stands on the stack between the program and the driver is nothing, where a launch passes, or what can be unwound. */
static __attribute__((noinline)) void from_here(unsigned nth, CUfunction of)
{
	uint64_t at[ARGUMENTS] = {0};
	static const CUlaunchConfig config;
	if (hooks[nth].function == 1)
		at[0] = (uintptr_t)&config;
	at[hooks[nth].function] = (uintptr_t)of;
	at[hooks[nth].params] = (uintptr_t)params;
	((any_hook)hooks[nth].hook)(at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], at[9], at[10]);
}

Test(launch_hooks, the_driver_finds_its_caller, .init = set_up_hooks)
{
	unwound_to = (void *)from_here;
	has_paths(function(1, 1), &all_stored);
	for (int armed = 0; armed < 2; armed++) {
		hook_line.armed = armed;
		for (unsigned i = 0; i < HOOKS; i++) {
			seen.unwinds = false;
			from_here(i, function(1, 1));
			cr_assert(seen.unwinds, "%s, armed %d", hooks[i].name, armed);
			from_here(i, function(1, 1));
			cr_assert(seen.unwinds, "%s, armed %d, again", hooks[i].name, armed);
		}
	}
}
