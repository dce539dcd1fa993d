/*
 * Kernels that only read a range cost next to nothing: the first launch is judged, with served memory the second as well, and after that they are not looked at for what they read, however many there are.
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
	EXPECT(stats.launches == 100 && stats.clean && stats.clean <= 2 && stats.checked == stats.clean &&
	       stats.verified + stats.unverified == 0);
	CHECK(cuconst_check(0));
	return 0;
}
