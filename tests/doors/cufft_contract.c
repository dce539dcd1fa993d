/*
 * cufft_contract CASE: which executions are refused in `deny`, by what the contract of cuFFT says about their plan.
 * Linked with the shim's objects, so ranges are put straight into the registry, and the real functions come from a
 * look-alike.
 */
#include "check.h"

#include "shim/doors/names.h"
#include "shim/hook_state.h"
#include "shim/verdict/options.h"
#include "shim/verdict/protect.h"

enum { C2C = 0x29, R2C = 0x2a, C2R = 0x2c, Z2Z = 0x69, D2Z = 0x6a, Z2D = 0x6c, REFUSED = 4 };

#define A ((void *)0x7f0000000000)
#define B ((void *)0x7f0010000000)

static void (**inside)(void);
static int *calls, *answer;
static struct outer seen;

static void look(void)
{
	seen = hook_thread.outer;
}

static registry_handle protect(const void *address, uint64_t offset, uint64_t bytes)
{
	struct registry_spec spec = {
		.start = (uint64_t)address + offset, .end = (uint64_t)address + offset + bytes, .label = "x"};
	registry_handle handle;
	CHECK(!registry_insert(protect_ranges(), &spec, &handle, NULL));
	return handle;
}

static void unprotect(registry_handle handle)
{
	CHECK(!registry_remove(protect_ranges(), handle, NULL));
}

static int plan1d(int n, int type, int batch)
{
	int plan;
	CHECK_EQUAL(cufftPlan1d(&plan, n, type, batch), 0);
	return plan;
}

static int plan2d(int nx, int ny, int type)
{
	int plan;
	CHECK_EQUAL(cufftPlan2d(&plan, nx, ny, type), 0);
	return plan;
}

/* Refused is: the error, and the library was not called. */
#define CHECK_REFUSED(call)                                                                                            \
	do {                                                                                                           \
		int before_ = *calls;                                                                                  \
		CHECK_EQUAL(call, REFUSED);                                                                            \
		CHECK_EQUAL(*calls, before_);                                                                          \
		CHECK(!hook_thread.outer.api && !hook_thread.outer.note);                                              \
	} while (0)
#define CHECK_PASSED(call)                                                                                             \
	do {                                                                                                           \
		int before_ = *calls;                                                                                  \
		CHECK_EQUAL(call, 0);                                                                                  \
		CHECK_EQUAL(*calls, before_ + 1);                                                                      \
		CHECK(!hook_thread.outer.api && !hook_thread.outer.note);                                              \
	} while (0)

static void in_place(void)
{
	int c2c = plan1d(256, C2C, 64);
	protect(A, 0, 256 * 64 * 8);
	CHECK_REFUSED(cufftExecC2C(c2c, A, A, -1));
	CHECK_PASSED(cufftExecC2C(c2c, A, B, -1));
	CHECK_REFUSED(cufftExecC2C(c2c, B, A, -1));
	CHECK_REFUSED(cufftXtExec(c2c, A, A, -1));
	CHECK_REFUSED(cufftExecR2C(plan1d(256, R2C, 1), A, A));
	CHECK_REFUSED(cufftExecZ2Z(plan1d(256, Z2Z, 1), A, A, 1));
	CHECK_PASSED(cufftExecC2C(c2c, B, B, -1));
	CHECK_PASSED(cufftExecC2C(c2c, NULL, NULL, -1));
}

static void complex_to_real_uses_its_input(void)
{
	int three, many, xt, lengths[] = {8, 8};
	long long long_lengths[] = {8, 8};
	protect(A, 0, 64);
	CHECK_PASSED(cufftExecC2R(plan1d(256, C2R, 1), A, B));
	CHECK_PASSED(cufftExecZ2D(plan1d(1000, Z2D, 64), A, B));
	CHECK_REFUSED(cufftExecC2R(plan2d(8, 8, C2R), A, B));
	CHECK_REFUSED(cufftExecZ2D(plan2d(8, 8, Z2D), A, B));
	CHECK_PASSED(cufftExecR2C(plan2d(8, 8, R2C), A, B));
	CHECK_EQUAL(cufftPlan3d(&three, 4, 4, 4, C2R), 0);
	CHECK_REFUSED(cufftExecC2R(three, A, B));
	CHECK_EQUAL(cufftPlanMany(&many, 2, lengths, NULL, 1, 0, NULL, 1, 0, C2R, 3), 0);
	CHECK_REFUSED(cufftExecC2R(many, A, B));
	/* cufftCreate, then a plan by cudaDataType: C_32F is 4, R_32F is 0. */
	CHECK_EQUAL(cufftCreate(&xt), 0);
	CHECK_PASSED(cufftXtExec(xt, A, B, 1));
	CHECK_EQUAL(cufftXtMakePlanMany(xt, 2, long_lengths, NULL, 1, 0, 4, NULL, 1, 0, 0, 1, NULL, 4), 0);
	CHECK_REFUSED(cufftXtExec(xt, A, B, 1));
	/* A handle that was destroyed and given out again is a new plan. */
	CHECK_EQUAL(cufftDestroy(xt), 0);
	CHECK_PASSED(cufftXtExec(xt, A, B, 1));
	CHECK_EQUAL(cufftMakePlan1d(xt, 64, C2R, 1, NULL), 0);
	CHECK_PASSED(cufftExecC2R(xt, A, B));
	CHECK_EQUAL(cufftMakePlan2d(xt, 64, 64, C2R, NULL), 0);
	CHECK_REFUSED(cufftExecC2R(xt, A, B));
	/* A plan that cuFFT refused is none. */
	*answer = 8;
	CHECK_EQUAL(cufftMakePlan1d(xt, 64, C2R, 1, NULL), 8);
	*answer = 0;
	CHECK_REFUSED(cufftExecC2R(xt, A, B));
}

/* The byte after the last one that is written, and that one. */
static void check_end(int plan, int (*exec)(int, void *, void *), uint64_t bytes)
{
	registry_handle behind = protect(B, bytes, 16);
	CHECK_PASSED(exec(plan, A, B));
	unprotect(behind);
	registry_handle last = protect(B, bytes - 1, 16);
	CHECK_REFUSED(exec(plan, A, B));
	unprotect(last);
}

static void extents(void)
{
	int many, n[] = {10}, embed[] = {16};
	check_end(plan1d(100, R2C, 3), cufftExecR2C, 3 * 51 * 8);
	check_end(plan1d(101, D2Z, 1), cufftExecD2Z, 51 * 16);
	check_end(plan1d(100, C2R, 3), cufftExecC2R, 3 * 100 * 4);
	check_end(plan2d(6, 10, R2C), cufftExecR2C, 6 * 6 * 8);
	check_end(plan2d(6, 10, Z2D), cufftExecZ2D, 6 * 10 * 8);
	/* A layout of the program's own: only that it starts at the pointer is certain. */
	CHECK_EQUAL(cufftPlanMany(&many, 1, n, embed, 2, 32, embed, 2, 32, R2C, 4), 0);
	check_end(many, cufftExecR2C, 1);
	/* An in-place real transform is padded to its complex side. */
	int padded = plan1d(100, C2R, 1);
	registry_handle tail = protect(A, 400, 8);
	CHECK_REFUSED(cufftExecC2R(padded, A, A));
	unprotect(tail);
	protect(A, 408, 8);
	CHECK_PASSED(cufftExecC2R(padded, A, A));
	/* Sizes that overflow are no sizes. */
	check_end(plan1d(0x7fffffff, Z2Z, 0x7fffffff), cufftExecD2Z, 1);
}

static void outermost_only(void)
{
	int plan = plan2d(8, 8, C2R);
	*inside = look;
	CHECK_PASSED(cufftExecC2R(plan, A, A));
	CHECK(!strcmp(seen.api, "cufftExecC2R") && !strcmp(seen.note, "idata=odata") && seen.caller);
	CHECK_PASSED(cufftExecC2R(plan, A, B));
	CHECK(!strcmp(seen.note, "idata, odata"));
	CHECK_PASSED(cufftExecC2C(plan1d(8, C2C, 1), A, B, 1));
	CHECK(!strcmp(seen.api, "cufftExecC2C") && !strcmp(seen.note, "odata"));
	/* Inside another library call the outer name stays, and its library answers for what it does. */
	protect(A, 0, 64);
	hook_thread.outer = (struct outer){.api = "cublasSomething", .note = "C"};
	CHECK_EQUAL(cufftExecC2R(plan, A, A), 0);
	CHECK(!strcmp(seen.api, "cublasSomething") && !strcmp(seen.note, "C"));
	CHECK(!strcmp(hook_thread.outer.api, "cublasSomething"));
	hook_thread.outer = (struct outer){0};
	CHECK_REFUSED(cufftExecC2R(plan, A, A));
	/* Nothing protected: no name is kept. */
	atomic_store(&hook_line.armed, false);
	seen = (struct outer){.api = "unset"};
	CHECK_PASSED(cufftExecC2R(plan, A, A));
	CHECK(!seen.api);
}

static void log_mode_refuses_nothing(void)
{
	protect(A, 0, 64);
	CHECK_PASSED(cufftExecC2R(plan2d(8, 8, C2R), A, A));
}

static void names_off(void)
{
	CHECK(!options_get()->names);
	*inside = look;
	protect(A, 0, 64);
	CHECK_PASSED(cufftExecC2R(plan2d(8, 8, C2R), A, A));
	CHECK(!seen.api);
}

/* Many plans alive at once, and as many gone, by handles that share a place in the table. */
static void many_plans(void)
{
	enum { PLANS = 1000 };
	static int plans[PLANS];
	protect(A, 0, 64);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < PLANS; i++)
			plans[i] = (i + round) % 2 ? plan2d(8, 8, C2R) : plan1d(8, C2R, 1);
		for (int i = 0; i < PLANS; i++)
			CHECK_EQUAL(cufftExecC2R(plans[i], A, B), (i + round) % 2 ? REFUSED : 0);
		for (int i = 0; i < PLANS; i++)
			CHECK_EQUAL(cufftDestroy(plans[i]), 0);
		for (int i = 0; i < PLANS; i++)
			CHECK_EQUAL(cufftExecC2R(plans[i], A, B), 0);
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
/* clang-format off */
#define TEST(name) {#name, name}
	TEST(in_place),
	TEST(complex_to_real_uses_its_input),
	TEST(extents),
	TEST(outermost_only),
	TEST(log_mode_refuses_nothing),
	TEST(names_off),
	TEST(many_plans),
	/* clang-format on */
};

int main(int argc, char **argv)
{
	void *library = dlopen("libcufft.so.12", RTLD_NOW | RTLD_LOCAL);
	CHECK(library);
	inside = dlsym(library, "fake_cufft_inside");
	calls = dlsym(library, "fake_cufft_calls");
	answer = dlsym(library, "fake_cufft_answer");
	CHECK(inside && calls && answer);
	CHECK(!protect_start());
	atomic_store(&hook_line.armed, true);
	atomic_store(&hook_line.names, options_get()->names);
	for (size_t i = 0; argc == 2 && i < sizeof tests / sizeof *tests; i++)
		if (!strcmp(argv[1], tests[i].name)) {
			tests[i].run();
			return 0;
		}
	return 2;
}
