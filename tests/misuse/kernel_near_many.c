/*
 * A pool: a thousand launches beside ranges of the same allocation, all of them right. Few are checked, and nothing is
 * said.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

int main(void)
{
	struct cuconst_stats stats = {.size = sizeof stats};
	start();
	for (int i = 0; i < 32; i++)
		protect(p + (CUdeviceptr)i * 128, 64, "tensor");
	for (int i = 0; i < 1000; i++)
		fill(p + (CUdeviceptr)(i % 32) * 128 + 64, i, 16);
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuconst_stats(&stats));
	EXPECT(stats.near == 1000 && stats.stores + stats.clean + stats.unknown == 0);
	EXPECT(stats.verified < 500);
	CHECK(cuconst_check(0));
	return 0;
}
