/*
 * A store that goes through one of two parameters, by what is in memory: none of them is its only base, so deny cannot
 * know and compares bytes.
 *
 * expect log exit 0 "cuconst: violation: kernel either (cuLaunchKernel, argument 0) wrote 4 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: violation: kernel either (cuLaunchKernel, argument 0) wrote 4 bytes of read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel either (cuLaunchKernel, argument 0) wrote 4 bytes of read-only 'p'"
 * expect twins exit 86 "cuconst: stopped: kernel either (cuLaunchKernel, argument 0) would write read-only 'p', which the GPU refused: CUDA error 700 from cuStreamSynchronize"
 */
#include "misuse.h"

int main(void)
{
	static const char text[] = ".version 7.0\n.target sm_60\n.address_size 64\n"
				   ".visible .entry either(.param .u64 a, .param .u64 b, .param .u64 which)\n{\n"
				   "\t.reg .b64 %rd<5>;\n\t.reg .b32 %r<2>;\n\t.reg .pred %p<2>;\n"
				   "\tld.param.u64 %rd1, [a];\n\tld.param.u64 %rd2, [b];\n\tld.param.u64 %rd4, [which];\n"
				   "\tld.global.u32 %r1, [%rd4];\n"
				   /* Turn by turn: of a choice a compiler makes two stores, each with one base. */
				   "TURN:\n\tsetp.eq.u32 %p1, %r1, 0;\n\t@%p1 bra DONE;\n"
				   "\tmov.u64 %rd3, %rd1;\n\tmov.u64 %rd1, %rd2;\n\tmov.u64 %rd2, %rd3;\n"
				   "\tsub.u32 %r1, %r1, 1;\n\tbra TURN;\n"
				   "DONE:\n\tst.global.u32 [%rd1], 9;\n\tret;\n}\n";
	CUmodule loaded;
	CUfunction function;
	CUdeviceptr choice;
	start();
	CHECK(cuMemAlloc(&choice, 4));
	CHECK(cuModuleLoadData(&loaded, text));
	CHECK(cuModuleGetFunction(&function, loaded, "either"));
	protect(p, SIZE, "p");
	for (int which = 1; which >= 0; which--) {
		void *params[] = {&p, &q, &choice};
		CHECK(cuMemsetD32(choice, (unsigned)which, 1));
		CHECK(cuCtxSynchronize()); /* a memset of device memory returns before it ran, and `stream` does not wait */
		CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
		CHECK(cuStreamSynchronize(stream));
		EXPECT(byte_at(p) == (which ? 1 : 9) && byte_at(q) == 9);
	}
	return 0;
}
