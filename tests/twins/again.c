/* Scenes about launches that are given twins again, from memory (shim/effects/launch_memo.h): as right as the first, and only as long as the first would be. */
#include "again_owner.h"
#include "vmm.h"

#define OFTEN 20
#define WORDS 1024

static CUfunction kernel_of(const char *name)
{
	static CUmodule kernels;
	static char text[1 << 16];
	CUfunction found;
	if (!kernels) {
		FILE *file = fopen(getenv("SWAP_PTX"), "r");
		EXPECT(file && fread(text, 1, sizeof text - 1, file) > 0);
		fclose(file);
		CHECK(cuModuleLoadData(&kernels, text));
	}
	CHECK(cuModuleGetFunction(&found, kernels, name));
	return found;
}

static CUdeviceptr w; /* protected, in a reservation with room for more: words 0, 1, 2... */
static cuconst_handle guarded;

static void fill_words(void)
{
	int words[WORDS];
	for (int i = 0; i < WORDS; i++)
		words[i] = i;
	CHECK(cuMemcpyHtoD(w, words, sizeof words));
	CHECK(cuCtxSynchronize());
}

static int sum_of(int count, int store)
{
	void *params[] = {&w, &q, &count, &store};
	int sum;
	CHECK(cuLaunchKernel(kernel_of("read_or_store"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(params[0] == &w);
	CHECK(cuMemcpyDtoH(&sum, q, 4));
	return sum;
}

/* Often enough to be answered from memory. Nothing is compared, so the GPU guards it. */
static void read_often(void)
{
	w = reserve(4);
	map(w, 1);
	fill_words();
	guarded = protect(w, WORDS * 4, "w");
	for (int i = 0; i < OFTEN; i++)
		EXPECT(sum_of(100, 0) == 99 * 50);
	EXPECT(stats().verified == 0 && stats().stores == OFTEN && stats().checked >= OFTEN);
}

/* What comes now is the store. */
static void say_read(void)
{
	printf("all was read\n");
	fflush(stdout);
}

static void store(const char *argument)
{
	int count = 100, yes = 1;
	void *params[] = {&w, &q, &count, &yes};
	read_often();
	say_read();
	CHECK(cuLaunchKernel(kernel_of("read_or_store"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	cuStreamSynchronize(stream);
	_exit(7); /* not reached in strict */
}

/* The protection ended: the kernel may write, and gets the address that the program gave. */
static void ended(const char *argument)
{
	read_often();
	CHECK(cuconst_unprotect(guarded));
	EXPECT(sum_of(100, 1) == 99 * 50 && word_at(w) == 99 * 50);
}

/* So did it with the mapping; other memory is there. */
static void mapped_again(const char *argument)
{
	read_often();
	CHECK(cuMemUnmap(w, GRAIN));
	map(w, 1);
	fill_words();
	EXPECT(sum_of(100, 1) == 99 * 50 && word_at(w) == 99 * 50);
}

/* The memory has no twin any more: the bytes are compared. */
static void twin_lost(const char *argument)
{
	read_often();
	CUmemGenericAllocationHandle handle = create(1);
	CHECK(cuMemMap(w + GRAIN, GRAIN, 0, handle, 0));
	CHECK(cuMemRelease(handle));
	fail_next("cuMemMap", CUDA_ERROR_OUT_OF_MEMORY);
	let_write(w + GRAIN, 1);
	EXPECT(sum_of(100, 0) == 99 * 50 && stats().verified > 0);
}

/* One that also stores into a range without a twin is compared each time. */
static void half(const char *argument)
{
	read_often();
	protect(q, 4, "q");
	for (unsigned i = 1; i <= OFTEN; i++) {
		EXPECT(sum_of(100, 0) == 99 * 50); /* the number that is there already */
		EXPECT(stats().verified >= i);
	}
}

/* A second range around the address, whose owner is the program: its launch is not kept from writing there. */
static void owned(const char *argument)
{
	const struct cuconst_protect_info info = {.size = sizeof info, .owner = "again"};
	cuconst_handle handle;
	read_often();
	CHECK(cuconst_unprotect(guarded));
	CHECK(cuconst_protect(w, WORDS * 4, "mine", 0, &info, &handle));
	for (int i = 0; i < OFTEN; i++)
		EXPECT(sum_of(10, 0) == 45);
	EXPECT(sum_of(10, 1) == 45 && word_at(w) == 45);
}

/* A range of a library that launches after others have, often enough, with the same arguments. */
static void owned_by_library(const char *argument)
{
	const struct cuconst_protect_info info = {.size = sizeof info, .owner = "libagain_owner*"};
	cuconst_handle handle;
	int count = 10, yes = 1;
	void *params[] = {&w, &q, &count, &yes};
	read_often();
	CHECK(cuconst_unprotect(guarded));
	unsigned long long verified = stats().verified;
	CHECK(cuconst_protect(w, WORDS * 4, "theirs", 0, &info, &handle));
	for (int i = 0; i < OFTEN; i++)
		EXPECT(sum_of(10, 0) == 45);
	EXPECT(stats().verified == verified);
	CHECK(launch_as_owner(kernel_of("read_or_store"), stream, params));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(word_at(w) == 45);
}

/* What that library does is suppressed: it must not meet a twin that others were given. */
static void suppressed(const char *argument)
{
	int count = 100, yes = 1;
	void *params[] = {&w, &q, &count, &yes};
	read_often();
	CHECK(launch_as_owner(kernel_of("read_or_store"), stream, params));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(word_at(w) == 99 * 50);
}

static void captured(const char *argument)
{
	int count = 100, no = 0;
	void *params[] = {&w, &q, &count, &no};
	CUgraph graph;
	CUgraphNode node;
	CUDA_KERNEL_NODE_PARAMS kernel;
	size_t one = 1;
	read_often();
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(cuLaunchKernel(kernel_of("read_or_store"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphGetNodes(graph, &node, &one));
	CHECK(cuGraphKernelNodeGetParams(node, &kernel));
	EXPECT(*(CUdeviceptr *)kernel.kernelParams[0] == w);
}

/* One that may begin before the last one has ended is verified, also when it was given a twin before. */
static void overlapping(const char *argument)
{
	int count = 100, no = 0;
	void *params[] = {&w, &q, &count, &no};
	CUlaunchAttribute serial = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
	CUlaunchConfig config = one_thread(stream, &serial);
	read_often();
	for (int i = 0; i < OFTEN; i++)
		CHECK(cuLaunchKernelEx(&config, kernel_of("read_or_store"), params, NULL));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(stats().verified == 0);
	serial.value.programmaticStreamSerializationAllowed = 1;
	CHECK(cuLaunchKernelEx(&config, kernel_of("read_or_store"), params, NULL));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(stats().verified > 0);
}

/* The pointer in a struct is replaced, the number beside it that looks the same is not. */
static void boxed(const char *argument)
{
	struct {
		int count, pad;
		CUdeviceptr data;
		unsigned long long key;
	} box = {.count = 10};
	int yes = 0;
	void *params[] = {&box, &q, &yes};
	read_often();
	box.data = box.key = w;
	for (int i = 0; i < OFTEN; i++) {
		unsigned long long out;
		CHECK(cuLaunchKernel(kernel_of("boxed"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
		CHECK(cuStreamSynchronize(stream));
		CHECK(cuMemcpyDtoH(&out, q, 8));
		EXPECT(out == (w ^ 9) && box.data == w && box.key == w);
	}
	say_read();
	yes = 1;
	CHECK(cuLaunchKernel(kernel_of("boxed"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	cuStreamSynchronize(stream);
	_exit(7);
}

typedef CUresult (*launch_fn)(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared, CUstream in, void **params, void **extra);
typedef CUresult (*launch_ex_fn)(const CUlaunchConfig *config, CUfunction f, void **params, void **extra);

static const char *entry; /* by which it is launched */

static CUresult launch_by_entry(CUstream in, void **params)
{
	CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {1, 1, 1}};
	CUlaunchConfig config = one_thread(in, &cluster);
	void *found = dlsym(RTLD_DEFAULT, entry);
	CUfunction function = kernel_of("read_or_store");
	return strstr(entry, "Ex") ? ((launch_ex_fn)found)(&config, function, params, NULL)
	                           : ((launch_fn)found)(function, 1, 1, 1, 1, 1, 1, 0, in, params, NULL);
}

/* Into the default stream, by each entry point. The list has an end of the program's own, and what is beside the address is as it was. */
static void by_entry(const char *argument)
{
	int count = 100, flag = 0;
	void *params[] = {&w, &q, &count, &flag, (void *)1};
	entry = argument;
	read_often();
	for (int i = 0; i < OFTEN; i++) {
		unsigned long long serial = stats().stores;
		CHECK(launch_by_entry(NULL, params));
		EXPECT(stats().stores == serial + 1 && stats().verified == 0 && params[0] == &w && params[4] == (void *)1);
	}
	CHECK(cuCtxSynchronize());
	EXPECT(word_at(q) == 99 * 50);
	say_read();
	flag = 1;
	CHECK(launch_by_entry(NULL, params));
	cuCtxSynchronize();
	_exit(7);
}

/* What the driver refuses is the program's error, and no launch to be blamed. */
static void driver_refuses(const char *argument)
{
	int count = 100, yes = 1;
	void *params[] = {&w, &q, &count, &yes};
	read_often();
	for (int i = 0; i < OFTEN; i++)
		EXPECT(cuLaunchKernel(kernel_of("read_or_store"), 1, 1, 1, 4096, 1, 1, 0, stream, params, NULL) ==
		       CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernelEx(NULL, kernel_of("read_or_store"), params, NULL) == CUDA_ERROR_INVALID_VALUE);
	fail_next("cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	EXPECT(cuLaunchKernel(kernel_of("read_or_store"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL) ==
	       CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	EXPECT(sum_of(10, 0) == 45 && word_at(w) == 0 && stats().verified == 0);
}

#define BYTES_MAX 32000
#define TEXT_MAX (1 << 17)

/* A kernel that stores through its last 8 bytes of parameters, if its z index is more than its first 4 say: `count` parameters of 8 bytes, or one of `bytes`. */
static CUfunction make_wide(unsigned count, unsigned bytes)
{
	static char text[TEXT_MAX];
	int at = snprintf(text, TEXT_MAX, ".version 8.1\n.target sm_75\n.address_size 64\n.visible .entry wide(\n");
	for (unsigned i = 0; i < count; i++)
		at += snprintf(text + at, TEXT_MAX - (size_t)at, ".param .align 8 .b8 p%u[%u]%s\n", i, bytes,
		               i + 1 < count ? "," : ")");
	snprintf(text + at, TEXT_MAX - (size_t)at,
	         "{\n.reg .pred %%p<2>;\n.reg .b32 %%r<3>;\n.reg .b64 %%rd<2>;\n"
	         "ld.param.u32 %%r1, [p0];\nmov.u32 %%r2, %%tid.z;\nsetp.ge.u32 %%p1, %%r2, %%r1;\n"
	         "ld.param.u64 %%rd1, [p%u+%u];\n@%%p1 st.global.u32 [%%rd1], %%r1;\nret;\n}\n",
	         count - 1, bytes - 8);
	CUmodule loaded;
	CUfunction function;
	CHECK(cuModuleLoadData(&loaded, text));
	CHECK(cuModuleGetFunction(&function, loaded, "wide"));
	return function;
}

/* As many parameters, and as large ones, as fit into what is kept of a launch, and more: "count*bytes". */
static void wide(const char *argument)
{
	static unsigned char blocks[BYTES_MAX], before[BYTES_MAX];
	static void *params[BYTES_MAX / 8];
	unsigned count = 0, bytes = 0;
	EXPECT(sscanf(argument, "%u*%u", &count, &bytes) == 2 && count * bytes <= BYTES_MAX);
	CUfunction function = make_wide(count, bytes);
	read_often();
	memset(blocks, 0x11, sizeof blocks);
	for (unsigned i = 0; i < count; i++)
		params[i] = blocks + i * bytes;
	for (int round = 0; round <= OFTEN; round++) {
		*(unsigned *)(void *)blocks = round < OFTEN;
		for (unsigned part = 1; part <= bytes / 8 && part <= 4; part++)
			memcpy(blocks + count * bytes - 8 * part, &w, 8);
		memcpy(before, blocks, sizeof blocks);
		if (round == OFTEN)
			say_read();
		CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
		CUresult result = cuStreamSynchronize(stream);
		EXPECT(round == OFTEN || (result == CUDA_SUCCESS && !memcmp(before, blocks, sizeof blocks) &&
		                          stats().verified == 0 && params[count - 1] == blocks + (count - 1) * bytes));
	}
	_exit(7);
}

/* Two ways to one launch, on stacks that are alike but for a return address. */
__attribute__((visibility("default"))) void again_one_way(void **params);
__attribute__((visibility("default"))) void again_other_way(void **params);

static __attribute__((noinline)) void launch_here(void **params)
{
	CHECK(cuLaunchKernel(kernel_of("read_or_store"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

__attribute__((noinline)) void again_one_way(void **params)
{
	launch_here(params);
	__asm__ volatile("");
}

__attribute__((noinline)) void again_other_way(void **params)
{
	launch_here(params);
	__asm__ volatile("");
}

/* In turns, often enough to be known; then one of them stores. */
static void two_ways(const char *argument)
{
	int count = 100, no = 0, yes = 1;
	void *params[] = {&w, &q, &count, &no}, *storing[] = {&w, &q, &count, &yes};
	read_often();
	for (int i = 0; i < 2 * OFTEN; i++) {
		(i % 2 ? again_other_way : again_one_way)(params);
		CHECK(cuStreamSynchronize(stream));
	}
	say_read();
	(strcmp(argument, "other") ? again_one_way : again_other_way)(storing);
	cuStreamSynchronize(stream);
	_exit(7);
}

static const struct scene scenes[] = {
	{"store", store},
	{"ended", ended},
	{"mapped_again", mapped_again},
	{"twin_lost", twin_lost},
	{"owned", owned},
	{"owned_by_library", owned_by_library},
	{"suppressed", suppressed},
	{"half", half},
	{"captured", captured},
	{"overlapping", overlapping},
	{"boxed", boxed},
	{"two_ways", two_ways},
	{"by_entry", by_entry},
	{"wide", wide},
	{"driver_refuses", driver_refuses},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	start();
	return scene_main(argc, argv, scenes);
}
