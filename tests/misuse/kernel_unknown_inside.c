/*
 * A kernel that stores through an address that it loads is launched five times with a table beside the range, and then,
 * for the first time, with one in it. That launch is checked, whatever the number of those before.
 *
 * expect log exit 0 "cuconst: violation: kernel fill_table (cuLaunchKernel, argument 0) wrote 4 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: violation: kernel fill_table (cuLaunchKernel, argument 0) wrote 4 bytes of read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel fill_table (cuLaunchKernel, argument 0) wrote 4 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	CUdeviceptr beside = q, inside = p + 64, at = p + SIZE / 2;
	int value = 7;
	void *params[] = {&at, &value};
	CHECK(cuMemcpyHtoD(p + SIZE / 2, &beside, sizeof beside));
	CHECK(cuMemcpyHtoD(p, &inside, sizeof inside));
	protect(p, SIZE / 2, "p");
	for (int i = 0; i < 5; i++)
		launch("fill_table", 1, stream, params);
	at = p;
	launch("fill_table", 1, stream, params);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
