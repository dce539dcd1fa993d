/*
 * Launches at random, against a model of what was judged: one passes only if it can store through nothing near a range, or if the same one was judged since the last change, and then it is
 * counted and noted as that was.
 */
#include <string.h>

#include "shim/kernels/variants.h"
#include "tests/unit/verdict/memo_fake.h"

#define INSIDE UINT64_C(0x2000)
#define STEPS 1000000
#define RELOADED 10000 /* steps, after which all code is another */
#define LAUNCHES 64    /* that come again, until one changes */
#define KERNELS 400    /* more than have room side by side */
#define OFTEN 6        /* of them are launched more often */
#define ADDRESSES 6    /* of a kernel, at most; then comes a number */
#define ANSWERS 3      /* for the numbers 0, 1 and so on; of others nothing is known */
#define JUDGED 200     /* launches of one kernel */

/* What it does for any number, and for some. */
struct kernel {
	CUfunction handle;
	unsigned addresses;
	bool understood; /* for any number */
	struct kernel_paths any, with[ANSWERS];
	struct slot_paths slots[1 + ANSWERS][ADDRESSES + 1];
	struct variant *variants[ANSWERS];
	size_t judged_count;
};

struct launch {
	struct kernel *kernel;
	uint64_t value[ADDRESSES];
	uint32_t number;
	void *params[ADDRESSES + 1];
};

/* One that was judged, and what it came to. */
struct judged {
	struct launch launch;
	enum kernel_verdict verdict;
	bool any_number; /* the answer holds for */
	unsigned notes;
	struct neighbours_mark note[MEMO_NOTES];
	uint64_t noted[MEMO_NOTES];
};

static struct kernel kernels[KERNELS];
static struct judged judged[KERNELS][JUDGED];
static unsigned seed, passed, passed_near;

static unsigned any_below(unsigned limit)
{
	return (unsigned)rand_r(&seed) % limit;
}

static void forget_judged(void)
{
	for (size_t i = 0; i < KERNELS; i++)
		kernels[i].judged_count = 0;
}

/* Of something that all answers hang on. */
static void change(void)
{
	hook_stamp_renew();
	forget_judged();
}

static void make_paths(struct kernel_paths *paths, struct slot_paths *slots, enum paths_reason reason)
{
	*paths = (struct kernel_paths){.slots = slots, .slot_count = ADDRESSES + 1, .reason = reason};
	for (unsigned i = 0; i < ADDRESSES; i++)
		slots[i] = any_below(3) ? (struct slot_paths){.use = SLOT_LOAD, .loaded = true}
		                        : (struct slot_paths){.use = SLOT_STORE, .only_base = true};
}

static void make_kernel(struct kernel *kernel, unsigned number)
{
	kernel->addresses = 1 + any_below(ADDRESSES);
	kernel->handle = function(number, kernel->addresses);
	kernel->understood = any_below(2);
	make_paths(&kernel->any, kernel->slots[0], kernel->understood ? PATHS_CLEAR : PATHS_TABLE);
	for (unsigned i = 0; i < ANSWERS; i++) {
		make_paths(&kernel->with[i], kernel->slots[1 + i], PATHS_CLEAR);
		if (!kernel->variants[i])
			kernel->variants[i] = calloc(1, sizeof *kernel->variants[i] + sizeof(struct variant_guard));
		struct variant *variant = kernel->variants[i];
		variant->number = (uint16_t)(1 + number * ANSWERS + i);
		variant->paths = &kernel->with[i];
		variant->guard_count = 1;
		variant->guards[0] = (struct variant_guard){8 * kernel->addresses, UINT32_MAX, i, 0};
	}
}

/* Handles come again for other code. */
static void load_all(void)
{
	function_forget();
	for (unsigned i = 0; i < KERNELS; i++) {
		struct kernel *kernel = &kernels[i];
		make_kernel(kernel, 1 + i);
		has_paths(kernel->handle, &kernel->any);
		struct function_variants *known = function_variants(function_info(kernel->handle));
		for (unsigned k = 0; k < ANSWERS; k++)
			atomic_store(&known->of[k], kernel->understood ? NULL : kernel->variants[k]);
	}
	forget_judged();
}

static void make_launch(struct launch *launch)
{
	static const uint64_t values[] = {0, 0, 0x100000, NO_CONCERN, NO_CONCERN + 8, BESIDE, BESIDE + 8, INSIDE};
	struct kernel *kernel = &kernels[any_below(any_below(2) ? OFTEN : KERNELS)];
	launch->kernel = kernel;
	for (unsigned i = 0; i < kernel->addresses; i++) {
		launch->value[i] = values[any_below(sizeof values / sizeof *values)];
		launch->params[i] = &launch->value[i];
	}
	launch->number = any_below(ANSWERS + 1);
	launch->params[kernel->addresses] = &launch->number;
}

/* What is known of it; NULL: nothing. */
static const struct kernel_paths *paths_of(const struct launch *launch)
{
	const struct kernel *kernel = launch->kernel;
	const struct kernel_paths *with = launch->number < ANSWERS ? &kernel->with[launch->number] : NULL;
	return kernel->understood ? &kernel->any : with;
}

/* The address, if it may lie near a range and the launch may store through it; else 0. */
static uint64_t near(const struct launch *launch, const struct kernel_paths *paths, unsigned nth)
{
	uint64_t value = launch->value[nth];
	bool may_store = !paths || paths->slots[nth].use == SLOT_STORE;
	return may_store && value >= 0x1000 && value < 0xf100 ? value : 0;
}

static bool stores_near(const struct launch *launch)
{
	bool any = false;
	for (unsigned i = 0; i < launch->kernel->addresses; i++)
		any |= near(launch, paths_of(launch), i) != 0;
	return any;
}

static bool stores_inside(const struct launch *launch)
{
	const struct kernel_paths *known = paths_of(launch), *paths = known ? known : &launch->kernel->any;
	bool any = false;
	for (unsigned i = 0; i < launch->kernel->addresses; i++)
		any |= launch->value[i] == INSIDE && paths->slots[i].use == SLOT_STORE;
	return any;
}

static bool is_same(const struct launch *one, const struct launch *other, const struct kernel_paths *paths)
{
	bool same = true;
	for (unsigned i = 0; i < one->kernel->addresses; i++)
		same &= near(one, paths, i) == near(other, paths, i);
	return same;
}

/* Does what was judged answer for the launch? Where the code is understood for their number, what they read does not matter. */
static bool answers(const struct judged *known, const struct launch *launch)
{
	bool understood = launch->kernel->understood, same_number = known->launch.number == launch->number;
	return (same_number || known->any_number) &&
	       (is_same(&known->launch, launch, NULL) ||
	        ((understood || same_number) && is_same(&known->launch, launch, paths_of(launch))));
}

static void judge_one(struct launch *launch)
{
	struct kernel *kernel = launch->kernel;
	struct judged *new = &judged[kernel - kernels][kernel->judged_count];
	const struct kernel_paths *paths = paths_of(launch);
	struct call call;
	void **params = launch->params, **extra = NULL;
	call_begin(&call, ENTRY_cuLaunchKernel, (CUstream)0x20, NULL);
	effect_launch(&call, kernel->handle, &params, &extra);
	*new = (struct judged){*launch, call.verdict, !call.draft->variant, 0, {{0}}, {0}};
	for (unsigned i = 0; i < call.draft->notes; i++) {
		unsigned word = call.draft->noted[i];
		/* What was noted before its numbers were asked for, and is not stored through with these, need not be noted again. */
		if (paths && paths->slots[call.draft->at[word]].use != SLOT_STORE)
			continue;
		new->note[new->notes] = call.draft->note[i];
		new->noted[new->notes++] = call.draft->word[word];
	}
	call_end(&call);
	if (++kernel->judged_count == JUDGED)
		change();
}

/* Counted and noted as it was. */
static bool came_to_the_same(const struct judged *known, const uint64_t counted[COUNT_KINDS])
{
	bool same = counted[COUNT_CHECKED] == (known->verdict != KERNEL_CLEAN);
	for (unsigned verdict = KERNEL_NEAR; verdict <= KERNEL_STORES; verdict++)
		same &= counted[COUNT_CLEAN + verdict] == (known->verdict == verdict);
	for (unsigned i = 0; i < known->notes; i++)
		same &= atomic_load(&known->note[i].writer->value) == known->noted[i];
	return same;
}

static void check(struct launch *launch)
{
	const struct kernel *kernel = launch->kernel;
	const struct judged *list = judged[kernel - kernels];
	uint64_t counted[COUNT_KINDS];
	bool known = false;
	for (size_t i = 0; i < kernel->judged_count; i++)
		for (unsigned k = 0; k < list[i].notes; k++)
			atomic_store(&list[i].note[k].writer->value, 0);
	for (unsigned kind = 0; kind < COUNT_KINDS; kind++)
		counted[kind] = hook_counted(kind);
	bool passes_now = passes(kernel->handle, launch->params);
	for (unsigned kind = 0; kind < COUNT_KINDS; kind++)
		counted[kind] = hook_counted(kind) - counted[kind];
	cr_assert_eq(counted[COUNT_LAUNCH], passes_now);
	cr_assert(passes_now ? !stores_inside(launch) : !counted[COUNT_CHECKED]);
	passed += passes_now;
	if (!passes_now || (!stores_near(launch) && !counted[COUNT_CHECKED]))
		return;
	for (size_t i = 0; !known && i < kernel->judged_count; i++)
		known = answers(&list[i], launch) && came_to_the_same(&list[i], counted);
	cr_assert(known, "kernel %d, number %u", (int)(kernel - kernels), launch->number);
	passed_near++;
}

Test(memo_model, no_launch_passes_that_was_not_judged, .init = set_up, .timeout = 60)
{
	static struct launch launches[LAUNCHES];
	const struct registry_spec spec = {.start = INSIDE, .end = INSIDE + 0x100};
	cr_assert_eq(registry_insert(protect_ranges(), &spec, NULL, NULL), 0);
	for (unsigned step = 0; step < STEPS; step++) {
		if (step % RELOADED == 0) {
			seed = step + 1;
			load_all();
			for (size_t i = 0; i < LAUNCHES; i++)
				make_launch(&launches[i]);
		}
		struct launch *launch = &launches[any_below(LAUNCHES)];
		check(launch);
		if (any_below(3) == 0)
			judge_one(launch);
		if (any_below(20) == 0)
			make_launch(launch);
		if (any_below(2000) == 0)
			change();
	}
	cr_assert(passed > STEPS / 4 && passed_near > passed / 10, "%u, %u near", passed, passed_near);
}
