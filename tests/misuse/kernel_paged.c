/*
 * A paged cache: the first page is read-only, and its address is the base by which the kernel reaches the others.
 * Nothing read-only is written.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

int main(void)
{
	static const char text[] = ".version 7.0\n.target sm_60\n.address_size 64\n"
				   ".visible .entry page(.param .u64 pages, .param .u64 nth)\n{\n\t.reg .b64 %rd<4>;\n"
				   "\tld.param.u64 %rd1, [pages];\n\tld.param.u64 %rd2, [nth];\n"
				   "\tmad.lo.u64 %rd3, %rd2, 1024, %rd1;\n\tst.global.u32 [%rd3], 9;\n\tret;\n}\n";
	CUmodule loaded;
	CUfunction function;
	cuconst_handle handle;
	start();
	CHECK(cuModuleLoadData(&loaded, text));
	CHECK(cuModuleGetFunction(&function, loaded, "page"));
	CHECK(cuconst_protect(p, 1024, "first page", CUCONST_VERIFY_ONLY, NULL, &handle));
	for (uint64_t nth = 1; nth < 4; nth++) {
		void *params[] = {&p, &nth};
		CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	}
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(p + 1024) == 9);
	CHECK(cuconst_unprotect(handle));
	return 0;
}
