/*
 * A kernel with a negative index: the range before its array is written.
 *
 * expect log exit 0 "cuconst: violation: kernel before (cuLaunchKernel, argument 0) wrote 4 bytes of read-only 'in front'"
 * expect strict exit 86 "cuconst: stopped: kernel before (cuLaunchKernel, argument 0) wrote 4 bytes of read-only 'in front'"
 */
#include "misuse.h"

int main(void)
{
	CUmodule loaded;
	CUfunction function;
	start();
	CHECK(cuModuleLoadData(&loaded, ".version 7.0\n.target sm_60\n.address_size 64\n"
	                                ".visible .entry before(.param .u64 data)\n{\n\t.reg .b64 %rd<2>;\n"
	                                "\tld.param.u64 %rd1, [data];\n\tst.global.u32 [%rd1+-4], 9;\n\tret;\n}\n"));
	CHECK(cuModuleGetFunction(&function, loaded, "before"));
	protect(p, 2048, "in front");
	CUdeviceptr data = p + 2048;
	void *params[] = {&data};
	CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
