/*
 * Barriers in shared memory, bulk copies and clusters: nvcc's kernels against results worked out here, and what goes
 * wrong with them.
 */
#include "tests/softgpu/tests/check.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define KERNEL(body)                                                                                                              \
	HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"                        \
	     ".shared .align 16 .b8 tile[256];\n.shared .align 8 .b64 bar;\nld.param.u64 %rd1, [p];\nmov.u32 %r7, %tid.x;\n" body \
	     "\nret;\n}\n"

static CUmodule module;

static void launch(const char *name, unsigned blocks, unsigned threads, void **parameters)
{
	CUfunction function = NULL;

	OK(cuModuleGetFunction(&function, module, name));
	OK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL));
	OK(cuCtxSynchronize());
}

static void begin_with(const char *variable)
{
	const char *path = getenv(variable);

	enter(0);
	CHECK(path != NULL);
	OK(cuModuleLoad(&module, path != NULL ? path : "none"));
}

static void begin(void)
{
	begin_with("SOFTGPU_ASYNC_PTX");
}

static CUdeviceptr upload(const void *host, size_t bytes)
{
	CUdeviceptr device = 0;

	OK(cuMemAlloc(&device, bytes));
	if (host != NULL)
		OK(cuMemcpyHtoD(device, host, bytes));
	else
		OK(cuMemsetD8(device, 0, bytes));
	return device;
}

static unsigned numbers[4096];

static void fill(void)
{
	for (unsigned i = 0; i < 4096; i++)
		numbers[i] = i * 2654435761u ^ i >> 3;
}

static void bulk_tiles(void)
{
	static unsigned back[7 * 256];
	unsigned sum = 0, got = 0;
	int tiles = 7;

	begin();
	fill();
	CUdeviceptr in = upload(numbers, sizeof(back)), out = upload(NULL, sizeof(back)), total = upload(NULL, 4);
	void *parameters[] = {&in, &out, &total, &tiles};
	softgpu_log_writes(true);
	launch("bulk_tiles", 3, 96, parameters);
	/* The write log holds what a bulk copy wrote. */
	CHECK(softgpu_wrote(out, sizeof(back)) && softgpu_wrote(out + sizeof(back) - 1, 1) &&
	      !softgpu_wrote(in, sizeof(back)));
	softgpu_log_writes(false);
	OK(cuMemcpyDtoH(back, out, sizeof(back)));
	OK(cuMemcpyDtoH(&got, total, 4));
	for (int i = 0; i < 7 * 256; i++) {
		sum += numbers[i];
		CHECK(back[i] == numbers[i] * 2);
	}
	CHECK(sum == got);
	leave(0);
}

static void two_stages(void)
{
	unsigned back[2][32];
	int steps = 11;

	begin();
	fill();
	CUdeviceptr in = upload(numbers, 11 * 32 * 4), out = upload(NULL, sizeof(back));
	void *parameters[] = {&in, &out, &steps};
	launch("two_stages", 2, 64, parameters);
	OK(cuMemcpyDtoH(back, out, sizeof(back)));
	for (unsigned block = 0; block < 2; block++)
		for (unsigned lane = 0; lane < 32; lane++) {
			unsigned sum = 0;
			for (int i = 0; i < steps; i++)
				sum = sum * 3 + numbers[i * 32 + 31 - (int)lane];
			CHECK(back[block][lane] == sum + block);
		}
	leave(0);
}

static void dropping_and_alone(void)
{
	unsigned back[64];

	begin();
	fill();
	CUdeviceptr in = upload(numbers, 1024), out = upload(NULL, 256);
	void *parameters[] = {&in, &out};
	launch("dropping", 1, 64, parameters);
	OK(cuMemcpyDtoH(back, out, sizeof(back)));
	for (unsigned i = 0; i < 64; i++) {
		unsigned other = ((i + 2) % 64) & ~1u;
		CHECK(back[i] == (i & 1 ? numbers[(i + 1) % 64 * 4 + 1] : numbers[(other + 1) % 64 * 4 + 1] + 1));
	}
	parameters[0] = &out;
	launch("alone", 1, 64, parameters);
	OK(cuMemcpyDtoH(back, out, sizeof(back)));
	for (unsigned i = 0; i < 64; i++)
		CHECK(back[i] == (63 - i) * 7 + 1);
	leave(0);
}

/* How the kernel ends with 16-byte-aligned memory of 256 bytes. */
static void ends(CUresult wanted, const char *text, unsigned threads)
{
	CUfunction function;

	enter(0);
	CUdeviceptr data = upload(NULL, 256);
	void *parameters[] = {&data};
	OK(cuModuleLoadData(&module, text));
	OK(cuModuleGetFunction(&function, module, "k"));
	OK(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL));
	STATUS(wanted, cuCtxSynchronize());
	leave(0);
}

#define INIT(count) "mbarrier.init.shared::cta.b64 [bar], " #count ";\n"
#define WAIT "again:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra again;\n"
#define LOAD(size)                                                                                                     \
	"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], " #size ", [bar];\n"

static void ending_well(void)
{
	ends(CUDA_SUCCESS,
	     KERNEL(INIT(1) "mbarrier.arrive.shared.b64 _, [bar];\n" WAIT "mbarrier.inval.shared.b64 [bar];"), 1);
	/* The bytes before they are expected, and the arrival last. */
	ends(CUDA_SUCCESS, KERNEL(INIT(1) LOAD(64) "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;\n" WAIT), 1);
	ends(CUDA_SUCCESS,
	     KERNEL(INIT(2) "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 32;\n"
	                    "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 32;\n"
	                    "mbarrier.arrive.noComplete.shared.b64 %rd2, [bar], 1;\nmbarrier.pending_count.b64 %r1, %rd2;\n"
	                    "setp.ne.u32 %p2, %r1, 2;\n@%p2 trap;\nmbarrier.arrive.shared.b64 %rd2, [bar];\n"
	                    "mbarrier.test_wait.shared.b64 %p1, [bar], %rd2;\n@!%p1 trap;\n" WAIT),
	     1);
	ends(CUDA_SUCCESS,
	     KERNEL("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 256;\ncp.async.bulk.commit_group;\n"
	            "cp.async.bulk.wait_group 0;"),
	     32);
	ends(CUDA_SUCCESS,
	     KERNEL("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\nmov.u32 %r1, tile;\n"
	            "mapa.shared::cluster.u32 %r2, %r1, 0;\nst.shared::cluster.u32 [%r2], %r1;\n"
	            "getctarank.shared::cluster.u32 %r3, %r2;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 trap;"),
	     96);
	/* All that the kernel declares, by generic addresses. */
	ends(CUDA_SUCCESS,
	     KERNEL("cvta.shared.u64 %rd3, bar;\nmbarrier.init.b64 [%rd3], 1;\nmbarrier.arrive.b64 %rd2, [%rd3];"), 1);
}

static void ending_badly(void)
{
	/* Never initialised, made invalid, too many arrivals, a barrier for nobody, one in global memory. */
	ends(CUDA_ERROR_LAUNCH_FAILED, KERNEL("mbarrier.arrive.shared.b64 _, [bar];"), 1);
	ends(CUDA_ERROR_LAUNCH_FAILED,
	     KERNEL(INIT(1) "mbarrier.inval.shared.b64 [bar];\nmbarrier.arrive.shared.b64 _, [bar];"), 1);
	ends(CUDA_ERROR_LAUNCH_FAILED, KERNEL(INIT(1) "mbarrier.arrive.shared.b64 _, [bar], 2;"), 1);
	ends(CUDA_ERROR_LAUNCH_FAILED, KERNEL(INIT(0)), 1);
	ends(CUDA_ERROR_LAUNCH_FAILED, KERNEL("mbarrier.init.b64 [%rd1], 1;"), 1);
	ends(CUDA_ERROR_LAUNCH_FAILED, KERNEL(INIT(1) "mbarrier.arrive.noComplete.shared.b64 %rd2, [bar], 1;"), 1);
	ends(CUDA_ERROR_LAUNCH_FAILED, KERNEL(INIT(1) "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 4000000;"),
	     1);
	ends(CUDA_ERROR_MISALIGNED_ADDRESS, KERNEL("mbarrier.init.shared.b64 [tile+4], 1;"), 1);
	ends(CUDA_ERROR_ILLEGAL_ADDRESS, KERNEL("mov.u32 %r1, 0xffff0;\nmbarrier.init.shared.b64 [%r1], 1;"), 1);
	/* A wait that nobody ends is no hang. */
	ends(CUDA_ERROR_LAUNCH_TIMEOUT, KERNEL(INIT(2) "mbarrier.arrive.shared.b64 _, [bar];\n" WAIT), 1);
	ends(CUDA_ERROR_LAUNCH_TIMEOUT, KERNEL(INIT(1) "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;\n" WAIT), 1);
	/* Copies: size and addresses in sixteens, live on both sides, writable where they go. */
	ends(CUDA_ERROR_MISALIGNED_ADDRESS, KERNEL(INIT(1) LOAD(24)), 1);
	ends(CUDA_ERROR_MISALIGNED_ADDRESS, KERNEL(INIT(1) "add.u64 %rd1, %rd1, 8;\n" LOAD(16)), 1);
	ends(CUDA_ERROR_ILLEGAL_ADDRESS, KERNEL(INIT(1) LOAD(512)), 1);
	ends(CUDA_ERROR_ILLEGAL_ADDRESS, KERNEL(INIT(1) "mov.u64 %rd1, 0x1000;\n" LOAD(16)), 1);
	ends(CUDA_ERROR_ILLEGAL_ADDRESS, KERNEL("cp.async.bulk.global.shared::cta.bulk_group [%rd1+16], [tile], 256;"),
	     1);
	ends(CUDA_ERROR_ILLEGAL_ADDRESS,
	     KERNEL("mov.u32 %r1, 0xfffffff0;\ncp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 32;"), 1);
	ends(CUDA_ERROR_LAUNCH_FAILED, KERNEL(LOAD(16)), 1);
	ends(CUDA_ERROR_ILLEGAL_ADDRESS, KERNEL("mov.u32 %r1, tile;\nmapa.shared::cluster.u32 %r2, %r1, 1;"), 1);
	/* Half of the block waits for the cluster, the rest for the block. */
	ends(CUDA_ERROR_LAUNCH_FAILED,
	     KERNEL("setp.lt.u32 %p1, %r7, 32;\n@%p1 bra low;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n"
	            "bra.uni end;\nlow:\nbar.sync 0;\nend:"),
	     64);
}

static CUresult launch_cluster(const char *name, const unsigned grid[2], const unsigned size[2], unsigned threads,
                               unsigned shared, void **parameters)
{
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
	CUlaunchConfig config = {grid[0], grid[1], 1, threads, 1, 1, shared, NULL, &attribute, size != NULL};
	CUfunction function = NULL;

	if (size != NULL) {
		attribute.value.clusterDim.x = size[0];
		attribute.value.clusterDim.y = size[1];
		attribute.value.clusterDim.z = 1;
	}
	OK(cuModuleGetFunction(&function, module, name));
	CUresult status = cuLaunchKernelEx(&config, function, parameters, NULL);
	return status != CUDA_SUCCESS ? status : cuCtxSynchronize();
}

/* Bins spread over the blocks of a cluster, for clusters of one to eight blocks, and clusters that run in parallel. */
static void spread_bins(void)
{
	unsigned back[16 * 32];
	int n = 250;

	begin_with("SOFTGPU_CLUSTER_PTX");
	fill();
	CUdeviceptr in = upload(numbers, sizeof(numbers)), out = upload(NULL, sizeof(back));
	for (unsigned size = 1; size <= 8; size *= 2) {
		unsigned want[16 * 32] = {0}, shape[] = {size, 1}, grid[] = {16, 1}, all = 32 * size;
		void *parameters[] = {&in, &out, &n};
		OK(launch_cluster("spread", grid, shape, 48, 128, parameters));
		OK(cuMemcpyDtoH(back, out, sizeof(back)));
		for (unsigned cluster = 0; cluster < 16 / size; cluster++)
			for (int i = 0; i < n; i++)
				want[cluster * all + numbers[cluster * (unsigned)n + (unsigned)i] % all]++;
		CHECK(memcmp(want, back, sizeof(want)) == 0);
	}
	leave(0);
}

/* Mail to the next block of the cluster, whose shape the kernel says. */
static void ring(void)
{
	unsigned back[4][6][4], grid[] = {6, 4}, right[] = {2, 2}, wrong[] = {4, 1}, odd[] = {5, 4};
	CUfunction function;

	begin_with("SOFTGPU_CLUSTER_PTX");
	CUdeviceptr out = upload(NULL, sizeof(back));
	void *parameters[] = {&out};
	for (int explicitly = 0; explicitly < 2; explicitly++) {
		OK(cuMemsetD8(out, 0, sizeof(back)));
		OK(launch_cluster("ring", grid, explicitly ? right : NULL, 32, 0, parameters));
		OK(cuMemcpyDtoH(back, out, sizeof(back)));
		for (unsigned y = 0; y < 4; y++)
			for (unsigned x = 0; x < 6; x++) {
				unsigned rank = y % 2 * 2 + x % 2, from = (rank + 3) % 4;
				unsigned fx = x / 2 * 2 + from % 2, fy = y / 2 * 2 + from / 2;
				CHECK(back[y][x][0] == 100 * fy + 10 * fx + from + 1000 && back[y][x][1] == 1);
				CHECK(back[y][x][2] == x % 2 + 10 * (y % 2) && back[y][x][3] == 22);
			}
	}
	STATUS(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_cluster("ring", grid, wrong, 32, 0, parameters));
	STATUS(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch_cluster("ring", odd, NULL, 32, 0, parameters));
	/* A captured launch keeps its shape. */
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {4, 1, 1}};
	int n = 250;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CUlaunchConfig config = {4, 1, 1, 32, 1, 1, 128, stream, &attribute, 1};
	CUdeviceptr in = upload(numbers, sizeof(numbers)), bins = upload(NULL, 4 * 32 * 4);
	void *more[] = {&in, &bins, &n};
	OK(cuModuleGetFunction(&function, module, "spread"));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuLaunchKernelEx(&config, function, more, NULL));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	unsigned counts[128], sum = 0;
	OK(cuMemcpyDtoH(counts, bins, sizeof(counts)));
	for (int i = 0; i < 128; i++)
		sum += counts[i];
	CHECK(sum == 250);
	leave(0);
}

static CUresult cluster_of_two(const char *text)
{
	static const unsigned two[] = {2, 1};

	enter(0);
	CUdeviceptr data = upload(NULL, 256);
	void *parameters[] = {&data};
	OK(cuModuleLoadData(&module, text));
	CUresult status = launch_cluster("k", two, two, 32, 0, parameters);
	leave(0);
	return status;
}

static void bad_clusters(void)
{
	/*
	 * A block that does not exist, beyond another block's memory, a barrier that one block never reaches, and one
	 * that left.
	 */
	STATUS(CUDA_SUCCESS,
	       cluster_of_two(KERNEL(
		       "mov.u32 %r1, tile;\nmapa.shared::cluster.u32 %r2, %r1, 1;\nst.shared::cluster.u32 [%r2], %r1;\n"
		       "barrier.cluster.arrive;\nbarrier.cluster.wait;")));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS,
	       cluster_of_two(KERNEL("mov.u32 %r1, tile;\nmapa.shared::cluster.u32 %r2, %r1, 2;")));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS,
	       cluster_of_two(KERNEL("mov.u32 %r1, tile;\nmapa.shared::cluster.u32 %r2, %r1, 1;\n"
	                             "st.shared::cluster.u32 [%r2+4096], %r1;")));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS,
	       cluster_of_two(KERNEL("mov.u32 %r1, 0x7f000000;\nld.shared::cluster.u32 %r2, [%r1];")));
	STATUS(CUDA_ERROR_LAUNCH_FAILED,
	       cluster_of_two(KERNEL("mov.u32 %r1, %cluster_ctarank;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra other;\n"
	                             "barrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\nother: bar.sync 1, 64;")));
	STATUS(CUDA_SUCCESS, cluster_of_two(KERNEL("mov.u32 %r1, %cluster_ctarank;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 ret;\n"
	                                           "barrier.cluster.arrive;\nbarrier.cluster.wait;")));
	STATUS(CUDA_ERROR_LAUNCH_TIMEOUT,
	       cluster_of_two(KERNEL("mov.u32 %r1, %cluster_ctarank;\nsetp.eq.u32 %p1, %r1, 0;\nagain: @%p1 bra again;\n"
	                             "barrier.cluster.arrive;\nbarrier.cluster.wait;")));
}

/* A bulk copy through a read-only mapping faults like a store, and changes nothing. */
static void read_only(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr alias = 0;
	CUfunction function;

	enter(0);
	OK(cuMemCreate(&handle, 2 << 20, &prop, 0));
	OK(cuMemAddressReserve(&alias, 2 << 20, 0, 0, 0));
	OK(cuMemMap(alias, 2 << 20, 0, handle, 0));
	OK(cuMemSetAccess(alias, 2 << 20, &access, 1));
	OK(cuModuleLoadData(&module, KERNEL("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 16;")));
	OK(cuModuleGetFunction(&function, module, "k"));
	void *parameters[] = {&alias};
	OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	leave(0);
}

MAIN(T(bulk_tiles), T(two_stages), T(dropping_and_alone), T(ending_well), T(ending_badly), T(spread_bins), T(ring),
     T(bad_clusters), T(read_only))
