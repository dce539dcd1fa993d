/*
 * Texts and kernels that mean harm, by the driver's doors: each must be refused or end with the code that a real driver
 * gives, with a log for what was refused, in little time. The interpreter's own tests (ptx_text_test.c,
 * ptx_faults_test.c) look closer; here is what an application sees.
 */
#include <unistd.h>

#include "tests/softgpu/tests/check.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define KERNEL(body)                                                                                                   \
	HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n" body "\n}\n"

static char *grown;

/* before, then a piece so often, then after. */
static const char *repeated(const char *before, const char *piece, size_t times, const char *after)
{
	size_t each = strlen(piece), at = strlen(before);

	free(grown);
	grown = malloc(at + each * times + strlen(after) + 1);
	if (grown == NULL)
		abort();
	memcpy(grown, before, at);
	for (size_t n = 0; n < times; n++, at += each)
		memcpy(grown + at, piece, each);
	strcpy(grown + at, after);
	return grown;
}

/* Refused with this code; where the text is malformed, the log says where. */
static void refuses(CUresult wanted, const char *text)
{
	char log[256] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
	CUmodule module = (CUmodule)&module;

	STATUS(wanted, cuModuleLoadDataEx(&module, text, 2, options, values));
	CHECK(module == (CUmodule)&module);
	CHECK(strstr(log, "line ") != NULL && memchr(log, 0, sizeof(log)) != NULL);
	STATUS(wanted, cuModuleLoadData(&module, text));
}

static void malformed(void)
{
	enter(0);
	refuses(CUDA_ERROR_INVALID_PTX, HEAD ".visible .entry k(.param .u64 p)\n{\n");
	refuses(CUDA_ERROR_INVALID_PTX, HEAD "/* and so on");
	refuses(CUDA_ERROR_INVALID_PTX, KERNEL("mov.u32 %r1, %r99;"));
	refuses(CUDA_ERROR_INVALID_PTX, KERNEL("bra nowhere;"));
	refuses(CUDA_ERROR_INVALID_PTX, KERNEL("again: again: ret;"));
	refuses(CUDA_ERROR_INVALID_PTX, KERNEL("add.u32 %r1, %r2;"));
	refuses(CUDA_ERROR_INVALID_PTX, KERNEL("add.u32 %r1, %rd1, 1;"));
	refuses(CUDA_ERROR_INVALID_PTX, KERNEL("call nobody;"));
	refuses(CUDA_ERROR_INVALID_PTX, KERNEL("mov.u64 %rd1, 99999999999999999999999999;"));
	refuses(CUDA_ERROR_INVALID_PTX, KERNEL("mov.u64 %rd1, 0x1ffffffffffffffff;"));
	refuses(CUDA_ERROR_INVALID_PTX, HEAD ".global .b8 much[18446744073709551615];\n");
	refuses(CUDA_ERROR_NOT_SUPPORTED, HEAD ".visible .entry k()\n{\n.reg .b32 %r<4294967295>;\nret;\n}\n");
	refuses(CUDA_ERROR_INVALID_PTX, HEAD ".visible .entry k()\n{\n.shared .b8 much[1000000];\nret;\n}\n");
	refuses(CUDA_ERROR_INVALID_PTX, HEAD ".visible .entry k()\n{\n.local .b8 much[100000000];\nret;\n}\n");
	refuses(CUDA_ERROR_INVALID_PTX, HEAD ".visible .entry k(.param .b8 p[1000000])\n{\nret;\n}\n");
	refuses(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, ".version 10.0\n.target sm_90\n.address_size 64\n");
	refuses(CUDA_ERROR_INVALID_PTX, ".version 8.0\n.target sm_1000\n.address_size 64\n");
	refuses(CUDA_ERROR_INVALID_PTX, KERNEL("ld.global.u32 %r1, [%rd1, {%r2}];"));
	refuses(CUDA_ERROR_INVALID_PTX, KERNEL("tex.2d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5}];"));
	refuses(CUDA_ERROR_INVALID_PTX, KERNEL("tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%r1, {%r5}];"));
	refuses(CUDA_ERROR_NOT_SUPPORTED, KERNEL("tex.a1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6}];"));
	refuses(CUDA_ERROR_NOT_SUPPORTED, KERNEL("wgmma.fence.sync.aligned;"));
	leave(0);
}

static void deep(void)
{
	enter(0);
	refuses(CUDA_ERROR_INVALID_PTX, repeated(HEAD ".visible .entry k()\n", "{", 1000000, ""));
	refuses(CUDA_ERROR_INVALID_PTX, repeated(HEAD ".global .u32 x = ", "(", 1000000, ""));
	refuses(CUDA_ERROR_INVALID_PTX, repeated(HEAD ".global .u32 x = ", "-", 1000000, ";"));
	refuses(CUDA_ERROR_INVALID_PTX, repeated(HEAD ".global .u32 x = ", "1?", 1000000, ""));
	refuses(CUDA_ERROR_INVALID_PTX, repeated(HEAD ".global .u32 x[2] = ", "{", 1000000, ""));
	refuses(CUDA_ERROR_NOT_SUPPORTED, repeated(HEAD ".global .u32 x", "[1]", 1000000, "; nonsense"));
	refuses(CUDA_ERROR_INVALID_PTX, repeated(HEAD ".visible .entry ", "k", 1000000, "() { oops; }"));
	refuses(CUDA_ERROR_INVALID_PTX, repeated(HEAD, "\n", 1000000, "nonsense"));
	leave(0);
}

/* What the kernel's end says. The context is gone then, as on a real GPU. */
static void ends(CUresult wanted, const char *text, unsigned block)
{
	CUdeviceptr data;
	CUfunction function;
	CUmodule module;

	OK(cuMemAlloc(&data, 64));
	OK(cuModuleLoadData(&module, text));
	OK(cuModuleGetFunction(&function, module, "k"));
	void *parameters[] = {&data};
	OK(cuLaunchKernel(function, 1, 1, 1, block, 1, 1, 0, NULL, parameters, NULL));
	STATUS(wanted, cuCtxSynchronize());
	STATUS(wanted, cuMemAlloc(&data, 64));
	renew(0);
	OK(cuCtxSynchronize());
}

static void harmful(void)
{
	enter(0);
	ends(CUDA_ERROR_LAUNCH_TIMEOUT, KERNEL("again: bra again;"), 64);
	ends(CUDA_ERROR_LAUNCH_TIMEOUT,
	     KERNEL("ld.param.u64 %rd1, [p];\nagain: ld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra again;\nret;"),
	     1);
	ends(CUDA_ERROR_LAUNCH_TIMEOUT,
	     KERNEL("ld.param.u64 %rd1, [p];\nagain: st.global.u32 [%rd1], %r1;\nbra again;"), 1024);
	ends(CUDA_ERROR_LAUNCH_TIMEOUT,
	     HEAD ".func f(.param .b32 a)\n{\n.param .b32 b;\ncall f, (b);\nret;\n}\n"
	          ".visible .entry k(.param .u64 p)\n{\n.param .b32 b;\ncall f, (b);\nret;\n}\n",
	     32);
	ends(CUDA_ERROR_LAUNCH_FAILED, KERNEL("trap;"), 1);
	ends(CUDA_ERROR_ILLEGAL_ADDRESS, KERNEL("mov.u64 %rd1, 0xdeadbeef00000000;\nld.global.u32 %r1, [%rd1];\nret;"),
	     1);
	ends(CUDA_ERROR_ILLEGAL_ADDRESS,
	     KERNEL("mov.u64 %rd1, 0xfffffffffffffffc;\nst.global.v4.u32 [%rd1-12], {%r1, %r1, %r1, %r1};\nret;"), 1);
	ends(CUDA_ERROR_ILLEGAL_ADDRESS, KERNEL("mov.u64 %rd1, 0;\natom.add.u32 %r1, [%rd1], 1;\nret;"), 33);
	ends(CUDA_ERROR_MISALIGNED_ADDRESS, KERNEL("ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1+2];\nret;"), 1);
	/* Two warps at two barriers: a real GPU would hang. */
	ends(CUDA_ERROR_LAUNCH_FAILED,
	     KERNEL("mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 32;\n@%p1 bra one;\nbar.sync 1;\nret;\none: bar.sync 2;\nret;"),
	     64);
	leave(0);
}

#define OUTSIDE                                                                                                                    \
	HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"                                              \
	     ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);\n"            \
	     ".global .align 1 .b8 text[] = {37, 100, 32, 37, 53, 46, 49, 102, 37, 37, 32, 37, 108, 108, 120, 32, 37, 115, 37};\n" \
	     ".global .attribute(.managed) .align 4 .u32 managed = 5;\n"

/* Functions of the driver's: what a kernel prints, with a wild string among the arguments, and a failed assertion. */
static void outside(void)
{
	static const char body[] = OUTSIDE
		".visible .entry k(.param .u64 p)\n{\n.local .align 8 .b8 room[32]; .reg .b64 %rd<8>; .reg .b32 %r<4>;\n"
		"ld.param.u64 %rd6, [p]; mov.u64 %rd1, room; cvta.local.u64 %rd1, %rd1; ld.global.u32 %r2, [managed];\n"
		"st.local.u32 [room], -7; st.local.f64 [room+8], 0d3FF8000000000000; st.local.u64 [room+16], 0x123456789abc; st.local.u64 [room+24], 16;\n"
		"mov.u64 %rd2, text; cvta.global.u64 %rd2, %rd2;\n"
		"{\n.param .b64 a; .param .b64 b; .param .b32 c;\nst.param.b64 [a], %rd2; st.param.b64 [b], %rd1;\n"
		"call (c), vprintf, (a, b);\nld.param.b32 %r1, [c];\n}\n"
		"st.global.u32 [%rd6], %r1; st.global.u32 [%rd6+4], %r2;\nret;\n}\n";
	int ends_of_pipe[2], saved = dup(STDOUT_FILENO);
	char printed[64] = "";
	unsigned back[2];
	CUdeviceptr data;
	CUfunction function;
	CUmodule module;

	enter(0);
	OK(cuMemAlloc(&data, 64));
	OK(cuModuleLoadData(&module, body));
	OK(cuModuleGetFunction(&function, module, "k"));
	void *parameters[] = {&data};
	CHECK(pipe(ends_of_pipe) == 0);
	fflush(stdout);
	dup2(ends_of_pipe[1], STDOUT_FILENO);
	OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	OK(cuCtxSynchronize());
	dup2(saved, STDOUT_FILENO);
	close(ends_of_pipe[1]);
	CHECK(read(ends_of_pipe[0], printed, sizeof(printed) - 1) > 0);
	CHECK(strcmp(printed, "-7   1.5% 123456789abc %") == 0);
	OK(cuMemcpyDtoH(back, data, 8));
	CHECK(back[0] == strlen(printed) && back[1] == 5);
	close(ends_of_pipe[0]);
	close(saved);
	ends(CUDA_ERROR_ASSERT,
	     OUTSIDE
	     ".visible .entry k(.param .u64 p)\n{\n.param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;\n"
	     "st.param.b64 [a], text; call __assertfail, (a, b, c, d, e);\nret;\n}\n",
	     1);
	leave(0);
}

/* The last test, so that a leak checker finds nothing. */
static void done(void)
{
	free(grown);
	grown = NULL;
	CHECK(grown == NULL);
}

MAIN(T(malformed), T(deep), T(harmful), T(outside), T(done))
