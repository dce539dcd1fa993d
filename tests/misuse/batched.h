/*
 * A kernel in the manner of a library's matrix product: copies a word from `in` to `out`, or, where `mode` is not 0, to
 * where the table says. Only in that mode its code stores through an address that it loads.
 */
#ifndef MISUSE_BATCHED_H
#define MISUSE_BATCHED_H

#include "misuse.h"

static CUfunction batched(void)
{
	static const char text[] =
		".version 7.0\n.target sm_60\n.address_size 64\n"
		".visible .entry batched(.param .u64 in, .param .u64 out, .param .u64 table, .param .u32 mode)\n{\n"
		"\t.reg .b64 %rd<6>;\n\t.reg .b32 %r<3>;\n\t.reg .pred %p<2>;\n"
		"\tld.param.u64 %rd1, [in];\n\tld.param.u64 %rd2, [out];\n\tld.param.u64 %rd3, [table];\n"
		"\tld.param.u32 %r1, [mode];\n\tsetp.eq.u32 %p1, %r1, 0;\n\tld.global.u32 %r2, [%rd1];\n"
		"\tmov.u64 %rd4, %rd2;\n\t@%p1 bra DONE;\n\tld.global.u64 %rd4, [%rd3];\n"
		"DONE:\n\tadd.u32 %r2, %r2, 1;\n\tst.global.u32 [%rd4], %r2;\n\tret;\n}\n";
	CUmodule loaded;
	CUfunction function;
	CHECK(cuModuleLoadData(&loaded, text));
	CHECK(cuModuleGetFunction(&function, loaded, "batched"));
	return function;
}

/* 8 bytes of device memory with an address in them. */
static CUdeviceptr table_of(CUdeviceptr address)
{
	CUdeviceptr table;
	CHECK(cuMemAlloc(&table, sizeof address));
	CHECK(cuMemcpyHtoD(table, &address, sizeof address));
	return table;
}

/* So many launches, or one more where a twin was made meanwhile, concerned a range so far and had to be judged; of these none was checked, since none stores through what it was given. */
__attribute__((unused)) static void expect_clean(uint64_t launches)
{
	struct cuconst_stats stats = {.size = sizeof stats};
	CHECK(cuconst_stats(&stats));
	EXPECT(stats.clean - launches <= 1 && stats.unknown == 0 && stats.stores == 0 && stats.verified == 0);
}

#endif
