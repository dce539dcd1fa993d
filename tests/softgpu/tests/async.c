/* Barriers in shared memory and bulk copies: nvcc's kernels against results worked out here, and what goes wrong with them. */
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

static void begin(void)
{
	const char *path = getenv("SOFTGPU_ASYNC_PTX");

	enter(0);
	CHECK(path != NULL);
	OK(cuModuleLoad(&module, path != NULL ? path : "none"));
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

MAIN(T(bulk_tiles), T(two_stages), T(dropping_and_alone), T(ending_well), T(ending_badly), T(read_only))
