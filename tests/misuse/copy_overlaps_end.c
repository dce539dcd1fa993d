/*
 * A copy that begins before the range and ends in it: only the overlap counts.
 *
 * expect log exit 0 "cuconst: violation: cuMemcpyDtoD_v2 wrote 24 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: cuMemcpyDtoD_v2 would write 24 bytes of read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: cuMemcpyDtoD_v2 would write 24 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	protect(p + 1000, 100, "p");
	EXPECT(refused(cuMemcpyDtoD(p + 960, q, 64)));
	return 0;
}
