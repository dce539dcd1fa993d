/*
 * Kernels that only read a range cost a look-up: nothing is checked, however many there are.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

int main(void)
{
	int count = COUNT;
	void *params[] = {&p, &q, &count};
	struct cuconst_stats stats = {.size = sizeof stats};
	start();
	protect(p, SIZE, "p");
	for (int i = 0; i < 100; i++)
		launch("copy", COUNT, stream, params);
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuconst_stats(&stats));
	EXPECT(stats.clean == 100 && stats.checked == 100 && stats.verified + stats.unverified == 0);
	CHECK(cuconst_check(0));
	return 0;
}
