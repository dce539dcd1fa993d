/*
 * Ranges nest: a write into the inner one is in the outer one too.
 *
 * expect log exit 0 "cuconst: violation: cuMemsetD8_v2 wrote 16 bytes of read-only 'outer'"
 * expect deny exit 0 "cuconst: denied: cuMemsetD8_v2 would write 16 bytes of read-only 'outer'"
 * expect strict exit 86 "cuconst: stopped: cuMemsetD8_v2 would write 16 bytes of read-only 'outer'"
 */
#include "misuse.h"

int main(void)
{
	start();
	struct cuconst_range_info info[2];
	size_t count;
	protect(p, SIZE, "outer");
	protect(p + 64, 16, "inner");
	EXPECT(refused(cuMemsetD8(p + 64, 9, 16)));
	CHECK(cuconst_query(p + 70, 1, info, 2, &count));
	EXPECT(count == 2 && info[0].violations == 1 && info[1].violations == 1);
	return 0;
}
