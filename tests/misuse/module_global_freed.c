/*
 * A module takes its variables along: the protection of one ends when the module is unloaded.
 *
 * expect log exit 0 "cuconst: freed: cuModuleUnload freed read-only 'variable'"
 * expect deny exit 0 "cuconst: freed: cuModuleUnload freed read-only 'variable'"
 * expect strict exit 0 "cuconst: freed: cuModuleUnload freed read-only 'variable'"
 */
#include "misuse.h"

int main(void)
{
	CUmodule loaded;
	CUdeviceptr variable, reused;
	size_t bytes;
	start();
	CHECK(cuModuleLoadData(
		&loaded, ".version 7.0\n.target sm_60\n.address_size 64\n.visible .global .align 256 .b8 table[4096];\n"
			 ".visible .entry none()\n{\n\tret;\n}\n"));
	CHECK(cuModuleGetGlobal(&variable, &bytes, loaded, "table"));
	EXPECT(bytes == SIZE);
	CHECK(cuMemsetD8(variable, 1, SIZE));
	cuconst_handle handle = protect(variable, SIZE, "variable");
	protect(p, SIZE, "p");
	CHECK(cuModuleUnload(loaded));
	EXPECT(cuconst_unprotect(handle) == CUCONST_ERROR_STALE_HANDLE);
	CHECK(cuMemAlloc(&reused, SIZE));
	CHECK(cuMemsetD8(reused, 2, SIZE));
	return 0;
}
