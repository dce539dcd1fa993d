/*
 * A cooperative launch.
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchCooperativeKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: violation: kernel fill (cuLaunchCooperativeKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel fill (cuLaunchCooperativeKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	int value = 7, count = COUNT;
	void *params[] = {&p, &value, &count};
	protect(p, SIZE, "p");
	CHECK(cuLaunchCooperativeKernel(kernel("fill"), COUNT / 256, 1, 1, 256, 1, 1, 0, stream, params));
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
