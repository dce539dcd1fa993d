/*
 * Random courses of protections, frees, mappings, modules, captures and launches: launch_random list|block SEED STEPS.
 * With `list` each launch has its parameters in a list, so that it may be answered from memory
 * (shim/effects/launch_memo.h); with `block` in one block, so that it never is. What is printed, and what is recorded,
 * must be the same.
 */
#include <stdbool.h>
#include <string.h>

#include "tests/effects/random_course.h"

#define POOLS 4
#define POOL ((size_t)1 << 16)
#define CHUNKS 4 /* of mapped memory, side by side */
#define RANGES 10
#define KEPT 24 /* launches that are made again */
#define MODULES 3
#define WIDE 1600 /* bytes of a parameter: more than 255 words in two */

/* The pointer that a kernel has loaded is one, not a number that another kernel stored there. */
#define IF_POINTER "setp.gt.u64 %p1, %rd5, 0xffffffff;\n@!%p1 bra DONE;\n"
#define REGISTERS "{\n.reg .b64 %rd<8>;\n.reg .u32 %r<4>;\n.reg .pred %p<4>;\n"
#define THREE ".param .u64 a, .param .u64 b, .param .u64 v"
#define TWO_PARAMS ".param .u64 a, .param .u64 b, .param .u32 n, .param .u64 v"
#define TWO(out)                                                                                                       \
	".visible .entry two(" TWO_PARAMS ")\n" REGISTERS "ld.param.u64 %rd1, [" out                                   \
	"];\nld.param.u64 %rd2, [v];\nst.global.u64 [%rd1], %rd2;\nret;\n}\n"
/* With that number, its last parameter, it stores through its second pointer, else through what it loads by its first. */
#define CHOICE(name, type, number)                                                                                     \
	".visible .entry " name "(" THREE ", .param ." type " n)\n" REGISTERS                                          \
	"ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nld.param." type " %r1, [n];\nld.param.u32 %r2, [v];\n"      \
	"setp.ne.u32 %p2, %r1, " number ";\n@%p2 bra TABLE;\nst.global.u32 [%rd2], %r2;\nbra DONE;\n"                  \
	"TABLE:\nld.global.u64 %rd5, [%rd1];\n" IF_POINTER "st.global.u8 [%rd5], %r2;\nDONE:\nret;\n}\n"
#define CHOICES(number) CHOICE("choice", "u32", number) CHOICE("byte", "u8", number) CHOICE("half", "u16", number)
#define TABLE(name, from)                                                                                              \
	".visible .entry " name "(" THREE ")\n" REGISTERS "ld.param.u64 %rd1, [" from                                  \
	"];\nld.param.u32 %r2, [v];\nld.global.u64 %rd5, [%rd1];\n" IF_POINTER                                         \
	"st.global.u8 [%rd5], %r2;\nDONE:\nret;\n}\n"
#define READ(name, params) ".visible .entry " name "(" params ")\n{\nret;\n}\n"
/* Stores through its first or second pointer, but not with what lies in memory here. */
#define MAYBE(out, from)                                                                                               \
	".visible .entry maybe(" THREE ")\n" REGISTERS "ld.param.u64 %rd1, [" out "];\nld.param.u64 %rd2, [" from      \
	"];\nld.param.u64 %rd3, [v];\n"                                                                                \
	"ld.global.u64 %rd5, [%rd2];\nsetp.eq.u64 %p1, %rd5, -7;\n@!%p1 bra DONE;\nst.global.u64 [%rd1], %rd3;\n"      \
	"DONE:\nret;\n}\n"
/* The same through four pointers, or two. */
#define FOUR(third, fourth)                                                                                            \
	".visible .entry four(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 v)\n" REGISTERS  \
	"ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nld.param.u64 %rd3, [" third                                 \
	"];\nld.param.u64 %rd4, [" fourth "];\n"                                                                       \
	"ld.global.u64 %rd5, [%rd1];\nsetp.eq.u64 %p1, %rd5, -7;\n@!%p1 bra DONE;\nst.global.u64 [%rd1], %rd5;\n"      \
	"st.global.u64 [%rd2], %rd5;\nst.global.u64 [%rd3], %rd5;\nst.global.u64 [%rd4], %rd5;\nDONE:\nret;\n}\n"
/* Nine pointers in two large parameters, of which one is stored through. */
#define WIDE_ENTRY(out)                                                                                                \
	".visible .entry wide(.param .align 8 .b8 p[1600], .param .align 8 .b8 q[1600], .param .u64 v)\n" REGISTERS    \
	"ld.param.u64 %rd5, [" out "];\nld.param.u64 %rd2, [v];\n" IF_POINTER                                          \
	"st.global.u64 [%rd5], %rd2;\nDONE:\nret;\n}\n"
#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

/* Three that are of the same layout, and not the same. */
static const char *const texts[MODULES] = {HEAD TWO("a") CHOICES("0") TABLE("table", "a") READ("none", THREE)
                                                   WIDE_ENTRY("q+504") MAYBE("a", "b") FOUR("c", "d"),
                                           HEAD TWO("b") CHOICES("1") READ("table", THREE) TABLE("none", "b")
                                                   WIDE_ENTRY("p+56") MAYBE("b", "a") FOUR("a", "b"),
                                           HEAD READ("two", TWO_PARAMS) CHOICES("2") TABLE("table", "b")
                                                   TABLE("none", "a") WIDE_ENTRY("p") MAYBE("b", "b") FOUR("a", "b")};
enum kernel { TWO_K, CHOICE_K, BYTE_K, HALF_K, TABLE_K, NONE_K, WIDE_K, MAYBE_K, FOUR_K, KERNELS };
static const char *const names[KERNELS] = {"two", "choice", "byte", "half", "table", "none", "wide", "maybe", "four"};

/* An address: memory that is freed may come again elsewhere. */
struct place {
	unsigned memory, offset; /* one of the pools, or of the chunks behind them */
};

/* Words of a launch: two addresses and a number; the value that is stored is another one each time. */
struct launch {
	enum kernel kernel;
	struct place a, b;
	unsigned number;
};

static uint64_t value;
static bool in_block, reloads, harmless;
static CUdeviceptr pools[POOLS], reserved;
static size_t chunk;
static CUmemGenericAllocationHandle mapped[CHUNKS];
static unsigned mapped_count;
static CUmodule module;
static unsigned code;
static CUfunction functions[KERNELS];
static cuconst_handle handles[RANGES];
static struct launch kept[KEPT];

static void load(void)
{
	code = below(MODULES);
	CHECK(cuModuleLoadData(&module, texts[code]));
	for (enum kernel i = 0; i < KERNELS; i++)
		CHECK(cuModuleGetFunction(&functions[i], module, names[i]));
}

static void map_one(void)
{
	const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	const CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr at = reserved + mapped_count * chunk;
	CHECK(cuMemCreate(&mapped[mapped_count], chunk, &prop, 0));
	CHECK(cuMemMap(at, chunk, 0, mapped[mapped_count], 0));
	CHECK(cuMemSetAccess(at, chunk, &access, 1));
	mapped_count++;
}

static void unmap_one(void)
{
	mapped_count--;
	CHECK(cuMemUnmap(reserved + mapped_count * chunk, chunk));
	CHECK(cuMemRelease(mapped[mapped_count]));
}

/* Few, so that they come again: the beginnings of pools and of mapped chunks, and what lies a little behind. */
static struct place some_place(void)
{
	unsigned memory = below(POOLS + mapped_count);
	return (struct place){memory, 256 * below(below(4) ? 4 : 16)};
}

/* 0: not there now. */
static CUdeviceptr address_of(struct place place)
{
	if (place.memory < POOLS)
		return pools[place.memory] + place.offset;
	return place.memory < POOLS + mapped_count ? reserved + (place.memory - POOLS) * chunk + place.offset : 0;
}

static CUdeviceptr some_address(void)
{
	return address_of(some_place());
}

static enum kernel some_kernel(void)
{
	enum kernel kernel = (enum kernel)below(KERNELS);
	return harmless && below(400) ? (kernel & 1 ? MAYBE_K : FOUR_K) : kernel;
}

static struct launch some_launch(void)
{
	enum kernel kernel = some_kernel();
	struct place a = some_place(), b = some_place();
	return (struct launch){kernel, a, b, below(3)};
}

/* One that differs from another in one thing alone. */
static struct launch alike(struct launch launch)
{
	switch (below(5)) {
	case 0:
		launch.a = some_place();
		break;
	case 1:
		launch.b = some_place();
		break;
	case 2:
		launch.kernel = some_kernel();
		break;
	default:
		launch.number = below(3);
	}
	return launch;
}

/* One call for both, so that it is made from the same place. */
static CUresult launch_words(CUfunction function, CUstream stream, void **list, void **extra, unsigned threads,
                             bool config)
{
	CUlaunchConfig how = {.gridDimX = 1,
	                      .gridDimY = 1,
	                      .gridDimZ = 1,
	                      .blockDimX = threads,
	                      .blockDimY = 1,
	                      .blockDimZ = 1,
	                      .hStream = stream};
	if (config)
		return cuLaunchKernelEx(&how, function, in_block ? NULL : list, in_block ? extra : NULL);
	return cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, stream, in_block ? NULL : list,
	                      in_block ? extra : NULL);
}

/* The eighth address is the 8th word, or the 264th: of that number the lowest 8 bits are the same. */
static void fill_wide(uint8_t *block, const struct launch *launch)
{
	CUdeviceptr a = address_of(launch->a), b = address_of(launch->b);
	for (unsigned i = 0; i < 7; i++)
		memcpy(block + 8 * i, &b, sizeof b);
	memcpy(block + (launch->number ? 56 : 56 + 8 * 256), &a, sizeof a);
}

/* Bytes of each kernel's parameters, all but the wide one's of at most 8 bytes each. */
static const size_t sizes[KERNELS] = {
	[TWO_K] = 32,  [CHOICE_K] = 28, [BYTE_K] = 25,           [HALF_K] = 26, [TABLE_K] = 24,
	[NONE_K] = 24, [MAYBE_K] = 24,  [WIDE_K] = 2 * WIDE + 8, [FOUR_K] = 40};

static void fill_words(uint8_t *block, const struct launch *launch)
{
	CUdeviceptr a = address_of(launch->a), b = address_of(launch->b);
	uint64_t words[5] = {a, b, value, launch->number, value};
	if (launch->kernel == TWO_K) {
		words[2] = launch->number;
		words[3] = value;
	} else if (launch->kernel == FOUR_K) {
		words[2] = a + 256 * launch->number;
		words[3] = b + 512;
	}
	memcpy(block, words, sizeof words);
}

static CUresult make(const struct launch *launch, CUstream stream, unsigned threads)
{
	_Alignas(16) uint8_t block[2 * WIDE + 8] = {0};
	bool wide = launch->kernel == WIDE_K;
	size_t bytes = sizes[launch->kernel];
	void *list[5];
	value++;
	if (wide) {
		fill_wide(block, launch);
		memcpy(block + 2 * WIDE, &value, sizeof value);
	} else {
		fill_words(block, launch);
	}
	for (size_t i = 0; i < 5; i++)
		list[i] = block + (wide ? i % 3 * WIDE : i * 8);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
	return launch_words(functions[launch->kernel], stream, list, extra, threads, launch->b.offset & 256);
}

static void launch(CUstream stream)
{
	unsigned nth = below(KEPT), times = 1 + below(6);
	if (!below(4))
		kept[nth] = below(2) ? some_launch() : alike(kept[below(KEPT)]);
	bool wrong = !below(60);
	if (!address_of(kept[nth].a) || !address_of(kept[nth].b))
		return;
	for (unsigned i = 0; i < times; i++) {
		CUresult result = make(&kept[nth], stream, wrong ? 4096 : 1);
		if (result != CUDA_SUCCESS)
			printf("%" PRIu64 " launch: %d\n", step, (int)result);
	}
}

/* What is captured, and another stream's launch beside it; then the graph runs. */
static void capture(void)
{
	CUgraph graph;
	CUgraphExec exec;
	CHECK(cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	launch(streams[0]);
	launch(streams[1]);
	launch(streams[0]);
	CHECK(cuStreamEndCapture(streams[0], &graph));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	for (unsigned i = below(3); i; i--)
		printf("%" PRIu64 " graph: %d\n", step, (int)cuGraphLaunch(exec, streams[0]));
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}

static void protect(void)
{
	unsigned nth = below(RANGES);
	if (handles[nth]) {
		printf("%" PRIu64 " ended: %d\n", step,
		       (int)(below(3) ? cuconst_unprotect(handles[nth]) : cuconst_release(handles[nth])));
		handles[nth] = 0;
		return;
	}
	CHECK(cuconst_protect(some_address(), below(4) ? 256 : 1024, "range", below(6) ? 0 : CUCONST_VERIFY_ONLY, NULL,
	                      &handles[nth]));
}

/* Memory that is freed comes again, at the same address or another. What pointers in memory point to is never freed. */
static void allocate(void)
{
	unsigned nth = 1 + below(POOLS - 1);
	CHECK(cuCtxSynchronize());
	CHECK(cuMemFree(pools[nth]));
	CHECK(cuMemAlloc(&pools[nth], below(2) ? POOL : POOL / 2));
}

static void write_by_contract(void)
{
	CUdeviceptr at = some_address(), pointer = pools[0] + 256 * below(4);
	CUresult result = below(2) ? cuMemsetD8Async(at, 0, 8, streams[1]) : cuMemcpyHtoD(at, &pointer, sizeof pointer);
	printf("%" PRIu64 " write: %d\n", step, (int)result);
}

/* The course is the same, whatever is refused. */
static void play(void)
{
	uint32_t what = below(40);
	if (what < 4)
		protect();
	else if (what == 4)
		allocate();
	else if (what == 5)
		capture();
	else if (what == 6 && mapped_count < CHUNKS)
		map_one();
	else if (what == 7 && mapped_count > 1 && !below(2))
		unmap_one();
	else if ((what == 8 || what == 9) && !harmless)
		write_by_contract();
	else if (what == 10 && reloads) {
		CHECK(cuCtxSynchronize());
		CHECK(cuModuleUnload(module));
		load();
	} else if (what == 11)
		printf("%" PRIu64 " check: %d\n", step, (int)cuconst_check(0));
	else
		launch(streams[below(3)]);
}

static void start(void)
{
	const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	for (int i = 0; i < POOLS; i++) {
		CHECK(cuMemAlloc(&pools[i], POOL));
		CHECK(cuMemsetD8(pools[i], 0, POOL));
	}
	CHECK(cuMemGetAllocationGranularity(&chunk, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CHECK(cuMemAddressReserve(&reserved, CHUNKS * chunk, 0, 0, 0));
	map_one();
	load();
	for (int i = 0; i < KEPT; i++)
		kept[i] = some_launch();
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	in_block = !strcmp(argv[1], "block");
	random_state = strtoull(argv[2], NULL, 10);
	reloads = random_state & 1;
	harmless = random_state & 2;
	return course_run(strtoull(argv[3], NULL, 10), 16, start, play);
}
