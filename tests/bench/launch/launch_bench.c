/*
 * What a launch costs under the shim, on a driver that answers at once. Prints a Markdown table: median and 99th
 * percentile of batches, in ns for one launch, and the ratio to a launch that goes to the driver directly. Run with
 * the shim preloaded; a name of a case as argument runs that one alone, for a profiler, in so many batches as a second argument says. With "cold" in
 * its place every launch finds the caches full of other things, and is timed alone; with "cool" as much work lies between two launches as in a real program; with
 * "trace" a few launches are marked for lines.py.
 * With mode=strict the cases are those of a launch whose argument is replaced.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "shim/cuconst.h"
#include "tests/bench/launch/stub.h"

#define BATCH 200
#define SAMPLES 1000
#define RANGES 1000
#define STRIDE UINT64_C(65536)
#define BYTES 4096
#define BESIDE 200
#define BUFFER ((size_t)4 << 20) /* that is set */
#define KERNELS_ASKED 8          /* whose functions are asked for */
#define WEIGHTS 48               /* that a loop reads in turn */
#define BUFFERS 20               /* that it writes to */
#define FLUSH ((size_t)4 << 20)  /* more than a second-level cache holds */
#define FLUSH_CODE ((size_t)2 << 20)
#define WORK ((size_t)16 << 20)       /* what a step goes through */
#define WORK_PART ((size_t)128 << 10) /* of it, between two launches */
#define WORK_CODE ((size_t)128 << 10) /* the same of code */
#define STEP 512                      /* launches of a model's step */
#define LINE 64
#define WARM                                                                                                           \
	1500 /* launches before those that are marked: by then few are the first of their kind, or the 1st, 2nd, 4th... */
#define WARM_STEPS 20
#define MARKED 15

static CUdeviceptr region, elsewhere[3];
static CUdeviceptr tensors[STUB_TENSORS];
static cuconst_handle handles[RANGES];
static int protected_count;

static void check(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "launch_bench: %s: %d\n", what, result);
	exit(1);
}

static void protect(int count)
{
	for (; protected_count < count; protected_count++)
		check(cuconst_protect(region + (CUdeviceptr)protected_count * STRIDE, BYTES, "bench", 0, NULL,
		                      &handles[protected_count]),
		      "cuconst_protect (is the shim preloaded?)");
}

/* The third pointer is `at`. */
static void launch_four(CUresult (*entry)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                          unsigned, CUstream, void **, void **),
                        uintptr_t function, CUdeviceptr at)
{
	int count = 7;
	void *params[] = {&elsewhere[0], &elsewhere[1], &at, &count};

	entry((CUfunction)function, 1, 1, 1, 1, 1, 1, 0, (CUstream)(uintptr_t)0x20, params, NULL);
}

static void direct(void)
{
	launch_four(stub_launch, STUB_FOUR, elsewhere[2]);
}

static void hooked_elsewhere(void)
{
	launch_four(cuLaunchKernel, STUB_FOUR, elsewhere[2]);
}

/* All three pointers lie between protected ranges. */
static void launch_between(uintptr_t function)
{
	static unsigned turn;
	CUdeviceptr at[3];
	int count = 7;
	void *params[] = {&at[0], &at[1], &at[2], &count};

	for (int i = 0; i < 3; i++)
		at[i] = region + (turn++ * 7919u % (RANGES - 1)) * STRIDE + BYTES + 256;
	cuLaunchKernel((CUfunction)function, 1, 1, 1, 1, 1, 1, 0, (CUstream)(uintptr_t)0x20, params, NULL);
}

static void hooked_between(void)
{
	launch_between(STUB_READER);
}

static void hooked_near(void)
{
	launch_between(STUB_FOUR);
}

static void hooked_clean(void)
{
	launch_four(cuLaunchKernel, STUB_READER, region + 64);
}

static void hooked_runtime(void)
{
	const struct stub_dim one = {1, 1, 1};
	CUdeviceptr at = region + 64;
	int count = 7;
	void *params[] = {&elsewhere[0], &elsewhere[1], &at, &count};

	cudaLaunchKernel((const void *)(uintptr_t)STUB_READER, one, one, params, 0, (CUstream)(uintptr_t)0x20);
}

static void hooked_hit(void)
{
	launch_four(cuLaunchKernel, STUB_FOUR, region + 64);
}

static void hooked_many(void)
{
	void *params[] = {tensors};

	cuLaunchKernel((CUfunction)(uintptr_t)STUB_STRUCT, 1, 1, 1, 1, 1, 1, 0, (CUstream)(uintptr_t)0x20, params, NULL);
}

/* As a matrix-vector product of a linear algebra library: numbers, a weight that is read, activations, a result, which lie between weights. */
static void launch_gemv(CUdeviceptr weight)
{
	static unsigned turn;
	uint64_t words[STUB_WORDS];
	void *params[] = {words};
	CUdeviceptr free = region + (turn++ % BUFFERS) * STRIDE + BYTES + 256;

	for (int i = 0; i < STUB_WORDS; i++)
		words[i] = (uint64_t)i * 1000003;
	words[0] = weight;
	words[2] = free;
	words[4] = free + 1024;
	words[6] = free + 4096;
	cuLaunchKernel((CUfunction)(uintptr_t)STUB_GEMV, 1, 1, 1, 1, 1, 1, 0, (CUstream)(uintptr_t)0x20, params, NULL);
}

static void hooked_gemv(void)
{
	static unsigned turn;

	launch_gemv(region + (turn++ % WEIGHTS) * STRIDE);
}

/* Between two allocations with ranges, and never the same: as activations that come and go. */
static void hooked_apart(void)
{
	static CUdeviceptr small, turn;
	CUdeviceptr at[3];
	int count = 7;
	void *params[] = {&at[0], &at[1], &at[2], &count};

	if (!small) {
		cuconst_handle handle;
		check(cuMemAlloc(&small, BYTES), "cuMemAlloc");
		check(cuconst_protect(small, BYTES, "small", 0, NULL, &handle), "cuconst_protect");
	}
	/* Which of them lies lower depends on where the process has its memory. */
	CUdeviceptr low = small < region ? small : region + RANGES * STRIDE, high = small < region ? region : small;
	for (int i = 0; i < 3; i++)
		at[i] = low + (high - low) / 4 * (CUdeviceptr)(i + 1) + turn++ * LINE;
	cuLaunchKernel((CUfunction)STUB_FOUR, 1, 1, 1, 1, 1, 1, 0, (CUstream)(uintptr_t)0x20, params, NULL);
}

/* A step of a model: the same launches in the same order, of many kernels; two of three store beside weights. */
static void launch_of_step(unsigned nth)
{
	CUdeviceptr at[3];
	int count = 7;
	void *params[] = {&at[0], &at[1], &at[2], &count};

	for (unsigned i = 0; i < 3; i++)
		at[i] = i > nth % 3 ? elsewhere[i]
		                    : region + ((nth * 3 + i) * 7919u % (RANGES - 1)) * STRIDE + BYTES + 256;
	cuLaunchKernel((CUfunction)(uintptr_t)(STUB_MODEL + nth * 7919u % STUB_MODEL_KERNELS), 1, 1, 1, 1, 1, 1, 0,
	               (CUstream)(uintptr_t)0x20, params, NULL);
}

static void hooked_step(void)
{
	static unsigned turn;

	/* By then most are none of the 1st, 2nd, 4th... of their kind. */
	for (; turn < WARM_STEPS * STEP; turn++)
		launch_of_step(turn % STEP);
	launch_of_step(turn++ % STEP);
}

/* A step of training beside a frozen model: six of seven launches have nothing to do with a weight. */
static void launch_of_training(unsigned nth)
{
	int count = 7;
	void *params[] = {&elsewhere[0], &elsewhere[1], &elsewhere[2], &count};

	if (nth % 7 == 0)
		launch_of_step(nth);
	else
		cuLaunchKernel((CUfunction)(uintptr_t)(STUB_MODEL + nth * 7919u % STUB_MODEL_KERNELS), 1, 1, 1, 1, 1, 1,
		               0, (CUstream)(uintptr_t)0x20, params, NULL);
}

static void hooked_training(void)
{
	static unsigned turn;

	for (; turn < WARM_STEPS * STEP; turn++)
		launch_of_training(turn % STEP);
	launch_of_training(turn++ % STEP);
}

/* A buffer between two allocations with ranges, as a library's workspace that is emptied before each use. */
static void hooked_set(void)
{
	static CUdeviceptr buffer;

	if (!buffer) {
		CUdeviceptr behind;
		cuconst_handle handle;
		check(cuMemAlloc(&buffer, BUFFER), "cuMemAlloc");
		check(cuMemAlloc(&behind, BYTES), "cuMemAlloc");
		check(cuconst_protect(behind, BYTES, "behind", 0, NULL, &handle), "cuconst_protect");
	}
	cuMemsetD8Async(buffer + BYTES, 0, BYTES, (CUstream)(uintptr_t)0x20);
}

/* Some libraries ask before each launch. */
static void hooked_get_function(void)
{
	static unsigned turn;
	CUfunction function;

	cuKernelGetFunction(&function, (CUkernel)(uintptr_t)(STUB_MODEL + turn++ % KERNELS_ASKED));
}

static void hooked_table_beside(void)
{
	launch_four(cuLaunchKernel, STUB_TABLE, region + BYTES + 256);
}

static void hooked_table(void)
{
	launch_four(cuLaunchKernel, STUB_TABLE, region + 64);
}

/* The kernels' code, for the shim to read. */
static void load(void)
{
	static char text[8192];
	CUmodule module;
	size_t used = (size_t)snprintf(
		text, sizeof text,
		".version 7.0\n.target sm_75\n.address_size 64\n"
		".visible .entry reader(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) { ret; }\n"
		".visible .entry four(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n.reg .b64 %%rd<4>;\n"
		"ld.param.u64 %%rd1, [a];\nld.param.u64 %%rd2, [b];\nld.param.u64 %%rd3, [c];\n"
		"st.global.u64 [%%rd1], 0;\nst.global.u64 [%%rd2], 0;\nst.global.u64 [%%rd3], 0;\nret;\n}\n"
		".visible .entry gemv(.param .align 8 .b8 p[%d])\n{\n.reg .b64 %%rd<8>;\n"
		"ld.param.u64 %%rd1, [p];\nld.param.u64 %%rd2, [p+16];\nld.param.u64 %%rd3, [p+32];\n"
		"ld.param.u64 %%rd4, [p+48];\nld.global.u64 %%rd5, [%%rd1];\nld.global.u64 %%rd6, [%%rd2];\n"
		"ld.global.u64 %%rd7, [%%rd3];\nst.global.u64 [%%rd4], %%rd5;\nret;\n}\n"
		".visible .entry table(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n.reg .b64 %%rd<3>;\n"
		"ld.param.u64 %%rd1, [c];\nld.global.u64 %%rd2, [%%rd1];\nst.global.u64 [%%rd2], 0;\nret;\n}\n"
		".visible .entry many(.param .align 8 .b8 t[%d])\n{\n.reg .b64 %%rd<2>;\n",
		STUB_WORDS * 8, STUB_TENSORS * 8);

	for (int i = 0; i < STUB_TENSORS; i++)
		used += (size_t)snprintf(text + used, sizeof text - used,
		                         "ld.param.u64 %%rd1, [t+%d];\nst.global.u64 [%%rd1], 0;\n", i * 8);
	snprintf(text + used, sizeof text - used, "ret;\n}\n");
	check(cuModuleLoadData(&module, text), "cuModuleLoadData");
}

/* In order: ranges are added, never taken away. */
static const struct {
	const char *name, *what;
	void (*launch)(void);
	int ranges;
	unsigned checks; /* check launches for one launch */
	bool strict;     /* in strict alone; the others in any other mode, but for the first two */
	bool any;        /* in strict, too */
} cases[] = {
	{"direct", "no shim: straight to the driver", direct, 0, 0, false, false},
	{"nothing", "nothing protected", hooked_elsewhere, 0, 0, false, false},
	{"elsewhere", "1000 ranges, 3 pointers outside their bounds", hooked_elsewhere, RANGES, 0, false, false},
	{"between", "1000 ranges, 3 pointers between them, all read", hooked_between, RANGES, 0, false, false},
	{"near", "1000 ranges, 3 pointers between them, all stored through", hooked_near, RANGES, 0, false, false},
	{"clean", "1 pointer of 3 in a range, read", hooked_clean, RANGES, 0, false, true},
	{"runtime", "the same by the runtime's call", hooked_runtime, RANGES, 0, false, false},
	{"gemv", "64 words: a weight and activations between weights read, a result between weights stored",
         hooked_gemv, RANGES, 0, false, true},
	{"table_beside", "1 pointer of 3 between ranges, the kernel stores through an address that it loads",
         hooked_table_beside, RANGES, 0, false, false},
	{"table", "1 pointer of 3 in a range, the kernel stores through an address that it loads", hooked_table, RANGES,
         0, false, false},
	{"hit", "1 pointer of 3 in a range, stored through", hooked_hit, RANGES, 1, false, false},
	{"many", "16 pointers in 16 ranges", hooked_many, RANGES, 1, false, false},
	{"step", "the launches of a model's step in turn, by 150 kernels, beside ranges", hooked_step, RANGES, 0, false,
         false},
	{"training", "the same, six of seven outside the bounds of ranges", hooked_training, RANGES, 0, false, false},
	{"apart", "3 pointers between two allocations with ranges, other ones each time", hooked_apart, RANGES, 0,
         false, false},
	{"set", "a set of memory between two allocations with ranges", hooked_set, RANGES, 0, false, true},
	{"get_function", "a kernel's function is asked for", hooked_get_function, RANGES, 0, false, true},
	{"swapped", "strict: 1 pointer of 3 in a range, replaced by its twin", hooked_hit, RANGES, 0, true, false},
	{"swapped_many", "strict: 16 pointers in 16 ranges, replaced", hooked_many, RANGES, 0, true, false},
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* Code that fills the caches of instructions and of branch targets: a jump in each line to the next one, and at the end of each part the way back. */
static unsigned char *make_code(size_t part)
{
	const unsigned char jump[] = {0xe9, LINE - 5, 0, 0, 0}, back = 0xc3;
	unsigned char *code =
		mmap(NULL, FLUSH_CODE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(code == MAP_FAILED, "mmap");
	for (size_t at = 0; at < FLUSH_CODE; at += LINE)
		memcpy(code + at, jump, sizeof jump);
	for (size_t at = part; at <= FLUSH_CODE; at += part)
		code[at - LINE] = back;
	return code;
}

static void run_code(const unsigned char *code)
{
	void (*run)(void);

	memcpy(&run, &code, sizeof run);
	run();
}

/* Takes the place of all else in the caches. */
static void flush(void)
{
	static volatile char other[FLUSH];
	static unsigned char *code;

	if (!code)
		code = make_code(FLUSH_CODE);
	for (size_t i = 0; i < FLUSH; i += LINE)
		other[i]++;
	run_code(code);
}

/* A part of a step's work: what belongs to all launches stays near, what belongs to one of them does not. */
static void work(void)
{
	static volatile char memory[WORK];
	static unsigned char *code;
	static size_t at, code_at;

	if (!code)
		code = make_code(WORK_CODE);
	for (size_t i = 0; i < WORK_PART; i += LINE)
		memory[(at + i) % WORK]++;
	run_code(code + code_at);
	at = (at + WORK_PART) % WORK;
	code_at = (code_at + WORK_CODE) % FLUSH_CODE;
}

/* ns for one launch: one of a batch, or one alone after `before`. */
static double sample(void (*launch)(void), void (*before)(void))
{
	double start;

	if (before)
		before();
	start = now();
	for (int i = 0; i < (before ? 1 : BATCH); i++)
		launch();
	return (now() - start) / (before ? 1 : BATCH);
}

/* Around each launch the marker is written, for who follows all accesses to memory. */
static int trace(void (*launch)(void))
{
	static volatile uint64_t marker __attribute__((aligned(LINE)));
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");

	if (!maps)
		return 1;
	for (int i = 0; i < WARM; i++)
		launch();
	printf("marker %" PRIxPTR "\nstack %" PRIxPTR "\n", (uintptr_t)&marker, (uintptr_t)line);
	while (fgets(line, sizeof line, maps))
		printf("%s", line);
	fclose(maps);
	fflush(stdout);
	for (int i = 0; i < MARKED; i++) {
		marker = 1;
		launch();
		marker = 0;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static double ns[SAMPLES];
	bool cold = argc > 2 && !strcmp(argv[2], "cold"), cool = argc > 2 && !strcmp(argv[2], "cool");
	void (*between)(void) = cold ? flush : cool ? work : NULL;
	bool traced = argc > 2 && !strcmp(argv[2], "trace");
	const char *only = argc > 1 && strcmp(argv[1], "all") ? argv[1] : NULL;
	int samples = argc > 2 && !between && !traced ? atoi(argv[2]) : SAMPLES;
	double first = 0;
	const char *options = getenv("CUCONST_OPTIONS");
	bool strict = options && strstr(options, "mode=strict");

	if (samples < 1 || samples > SAMPLES)
		return 1;
	check(cuInit(0), "cuInit");
	check(cuMemAlloc(&region, RANGES * STRIDE), "cuMemAlloc");
	load();
	/* Low addresses: below every range. */
	for (int i = 0; i < 3; i++)
		elsewhere[i] = 4096u * (CUdeviceptr)(i + 1);
	for (int i = 0; i < STUB_TENSORS; i++)
		tensors[i] = region + (CUdeviceptr)i * STRIDE + 8;
	printf("| launch | ns, median | p99 | ratio to direct |\n| --- | --: | --: | --: |\n");
	for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
		uint64_t before, launches = (uint64_t)samples * (between ? 1 : BATCH);

		if (only && strcmp(only, cases[at].name))
			continue;
		if (at > 1 && cases[at].strict != strict && !cases[at].any)
			continue;
		protect(cases[at].ranges);
		cases[at].launch();
		if (traced)
			return trace(cases[at].launch);
		before = stub_checks;
		for (int i = 0; i < samples; i++)
			ns[i] = sample(cases[at].launch, between);
		/* Now and then ranges beside the pointer are looked at, too. */
		uint64_t wanted = launches * cases[at].checks, issued = stub_checks - before;
		if (issued < wanted || issued > wanted + BESIDE + launches / 100) {
			fprintf(stderr, "launch_bench: %s: %" PRIu64 " checks for %" PRIu64 " launches\n",
			        cases[at].name, issued, launches);
			return 1;
		}
		qsort(ns, (size_t)samples, sizeof *ns, by_value);
		first = at == 0 ? ns[samples / 2] : first;
		printf("| %s | %.0f | %.0f | %.1f |\n", cases[at].what, ns[samples / 2], ns[samples * 99 / 100],
		       first > 0 ? ns[samples / 2] / first : 0);
		fflush(stdout);
	}
	return 0;
}
