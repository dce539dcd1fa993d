/*
 * The legacy default stream.
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	int value = 7, count = COUNT;
	void *params[] = {&p, &value, &count};
	protect(p, SIZE, "p");
	launch("fill", COUNT, NULL, params);
	CHECK(cuCtxSynchronize());
	return 0;
}
