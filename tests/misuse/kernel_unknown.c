/*
 * A kernel that stores through pointers that it loads: what it writes cannot be known before, so deny compares bytes as
 * log does.
 *
 * expect log exit 0 "cuconst: violation: kernel fill_table (cuLaunchKernel, argument 0) wrote 4 bytes of read-only 'table'"
 * expect deny exit 0 "cuconst: violation: kernel fill_table (cuLaunchKernel, argument 0) wrote 4 bytes of read-only 'table'"
 * expect strict exit 86 "cuconst: stopped: kernel fill_table (cuLaunchKernel, argument 0) wrote 4 bytes of read-only 'table'"
 */
#include "misuse.h"

int main(void)
{
	int value = 7;
	void *params[] = {&p, &value};
	CUdeviceptr pointer;
	start();
	pointer = p + 64;
	CHECK(cuMemcpyHtoD(p, &pointer, sizeof pointer));
	protect(p, SIZE, "table");
	launch("fill_table", 1, stream, params);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
