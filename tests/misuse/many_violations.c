/*
 * A hundred thousand violations from one place: ten full records, the rest is folded and counted.
 *
 * expect log exit 0 "cuconst: violation: cuMemsetD8_v2 wrote 16 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	struct cuconst_stats stats = {.size = sizeof stats};
	cuconst_handle handle;
	CHECK(cuconst_protect(p, SIZE, "p", CUCONST_NO_BASELINE, NULL, &handle)); /* the records are what is tried here */
	for (int i = 0; i < 100000; i++)
		CHECK(cuMemsetD8(p, (unsigned char)i, 16));
	CHECK(cuconst_stats(&stats));
	EXPECT(stats.violations == 100000);
	return 0;
}
