/*
 * names CASE: a hook on a runtime function calls the library that the program would have called. Runs under the
 * preload.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

static void *open_env(const char *variable, int flags)
{
	CHECK(getenv(variable));
	void *handle = dlopen(getenv(variable), RTLD_NOW | flags);
	if (!handle)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(handle);
	return handle;
}

static int use(void *module)
{
	int (*run)(void);
	*(void **)&run = dlsym(module, "use_runtime");
	CHECK(run);
	return run();
}

static void local_module(void)
{
	CHECK_EQUAL(use(open_env("USER_13", RTLD_LOCAL)), 13);
}

static void each_its_own_version(void)
{
	void *new = open_env("USER_13", RTLD_LOCAL), *old = open_env("USER_12", RTLD_LOCAL);
	for (int i = 0; i < 3; i++) {
		CHECK_EQUAL(use(old), 12);
		CHECK_EQUAL(use(new), 13);
	}
}

/* The names of a static runtime that an extension forgot to hide are its own. */
static void static_runtime_inside(void)
{
	void *inside = open_env("USER_STATIC", RTLD_LOCAL), *new = open_env("USER_13", RTLD_LOCAL);
	CHECK_EQUAL(use(inside), 99);
	CHECK_EQUAL(use(new), 13);
	CHECK_EQUAL(use(inside), 99);
	CHECK(!is_hook(dlsym(inside, "cudaMemcpy")));
	CHECK_EQUAL(call_zero(dlsym(inside, "cudaMemcpy")), 99);
}

/* What was kept of an object does not speak for another that is loaded where it was. */
static void in_the_place_of_another(void)
{
	static const struct {
		const char *variable;
		int runtime;
	} users[] = {{"USER_STATIC", 99}, {"USER_13", 13}, {"USER_12", 12}};
	for (int i = 0; i < 12; i++) {
		void *user = open_env(users[i % 3].variable, RTLD_LOCAL);
		CHECK_EQUAL(use(user), users[i % 3].runtime);
		CHECK_EQUAL(use(user), users[i % 3].runtime);
		CHECK(!dlclose(user));
	}
}

static void by_handle(void)
{
	void *new = open_env("CUDART_13", RTLD_LOCAL);
#define CUDART(symbol)                                                                                                 \
	CHECK(is_hook(dlsym(new, #symbol)));                                                                           \
	CHECK_EQUAL(call_zero(dlsym(new, #symbol)), 13);
#include "names.inc"
	CHECK(!is_hook(dlsym(new, "fake_cudart_last")));
	CHECK(is_hook(dlsym(RTLD_DEFAULT, "cudaMemcpy")));
	/* A second version by handle: hooks can stand for one library only, so its functions stay its own. */
	void *old = open_env("CUDART_12", RTLD_LOCAL);
	CHECK(!is_hook(dlsym(old, "cudaMemcpy")));
	CHECK_EQUAL(call_zero(dlsym(old, "cudaMemcpy")), 12);
	CHECK_EQUAL(call_zero(dlsym(new, "cudaMemcpy")), 13);
	CHECK(!dlsym(new, "cufftExecC2C"));
	CHECK(strstr(dlerror(), "undefined symbol: cufftExecC2C"));
}

/* A search of the whole program finds the one that is loaded globally. */
static void global_scope(void)
{
	void *new = open_env("CUDART_13", RTLD_GLOBAL);
	CHECK(is_hook(dlsym(RTLD_DEFAULT, "cudaMemcpy")) && new);
	CHECK_EQUAL(call_zero(dlsym(RTLD_DEFAULT, "cudaMemcpy")), 13);
	CHECK_EQUAL(call_zero(dlsym(RTLD_DEFAULT, "cudaGraphLaunch")), 13);
}

/* Words on the stack, structs by value and the argument that CUDA 13 took away arrive as they were passed. */
static void arguments_arrive(void)
{
	void *new = open_env("CUDART_13", RTLD_LOCAL);
	const uint64_t *last = dlsym(new, "fake_cudart_last");
	int (*copy)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
	*(void **)&copy = dlsym(new, "cudaMemcpy2DAsync");
	CHECK(last && copy);
	CHECK_EQUAL(copy(1, 2, 3, 4, 5, 6, 7, 8), 13);
	for (uint64_t i = 0; i < 8; i++)
		CHECK_EQUAL(i == 6 ? (uint32_t)last[i] : last[i], i + 1);
	int (*batch13)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
	int (*batch12)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
	*(void **)&batch13 = dlsym(new, "cudaMemcpyBatchAsync");
	*(void **)&batch12 = (void *)batch13;
	CHECK_EQUAL(batch13(11, 12, 13, 14, 15, 16, 17, 18), 13);
	for (uint64_t i = 0; i < 8; i++)
		CHECK_EQUAL(last[i], i + 11);
	CHECK_EQUAL(batch12(21, 22, 23, 24, 25, 26, 27, 28, 29), 13);
	for (uint64_t i = 0; i < 9; i++)
		CHECK_EQUAL(last[i], i + 21);
	struct pitched {
		uint64_t ptr, pitch, xsize, ysize;
	};
	struct extent {
		uint64_t width, height, depth;
	};
	int (*set)(struct pitched, int, struct extent, void *);
	*(void **)&set = dlsym(new, "cudaMemset3DAsync");
	CHECK_EQUAL(set((struct pitched){31, 32, 33, 34}, 35, (struct extent){36, 37, 38}, (void *)39), 13);
	CHECK_EQUAL((uint32_t)last[0], 35);
	CHECK_EQUAL(last[1], 39);
	for (uint64_t i = 0; i < 4; i++)
		CHECK_EQUAL(last[6 + i], 31 + i);
	for (uint64_t i = 0; i < 3; i++)
		CHECK_EQUAL(last[10 + i], 36 + i);
}

/* A stack that ends with what a caller of eight words passes there, and with a variable of its own. */
static struct {
	_Alignas(64) uint8_t below[1 << 16];
	uint64_t seventh, eighth;
	_Atomic uint64_t own;
} stack;
static _Atomic bool done;

static void *count(void *counted)
{
	uint64_t times = 0;
	for (; !atomic_load_explicit(&done, memory_order_relaxed); times++)
		atomic_fetch_add_explicit(&stack.own, 1, memory_order_relaxed);
	*(uint64_t *)counted = times;
	return NULL;
}

static void call_with_eight(void *function)
{
	register uint64_t r8 __asm__("r8") = 5, r9 __asm__("r9") = 6;
	uint64_t rdi = 1, rsi = 2, rdx = 3, rcx = 4;
	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %[stack], %%rsp\n\tcall *%[function]\n\tmov %%rbx, %%rsp"
	                 : "+D"(rdi), "+S"(rsi), "+d"(rdx), "+c"(rcx), "+r"(r8), "+r"(r9)
	                 : [stack] "r"(&stack.seventh), [function] "a"(function)
	                 : "rbx", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
	                   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

/* A hook that passes on one word more than its caller gave reads a variable of the caller's; another thread may write it meanwhile. */
static void a_word_of_the_callers_is_left_alone(void)
{
	static const char *const batches[] = {"cudaMemcpyBatchAsync", "cudaMemcpyBatchAsync_ptsz"};
	void *new = open_env("CUDART_13", RTLD_LOCAL), *functions[2] = {dlsym(new, batches[0]), dlsym(new, batches[1])};
	uint64_t counted;
	pthread_t other;
	CHECK(is_hook(functions[0]) && is_hook(functions[1]));
	CHECK(!pthread_create(&other, NULL, count, &counted));
	for (int i = 0; i < 10000000; i++)
		call_with_eight(functions[i & 1]);
	atomic_store(&done, true);
	CHECK(!pthread_join(other, NULL));
	CHECK_EQUAL(stack.own, counted);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
/* clang-format off */
#define TEST(name) {#name, name}
	TEST(local_module),
	TEST(each_its_own_version),
	TEST(static_runtime_inside),
	TEST(in_the_place_of_another),
	TEST(by_handle),
	TEST(global_scope),
	TEST(arguments_arrive),
	TEST(a_word_of_the_callers_is_left_alone),
	/* clang-format on */
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof tests / sizeof *tests; i++)
		if (!strcmp(argv[1], tests[i].name)) {
			tests[i].run();
			return 0;
		}
	return 2;
}
