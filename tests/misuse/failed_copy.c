/*
 * A copy that the driver refuses is no violation.
 *
 * expect log exit 0 ""
 * expect deny exit 0 "cuconst: denied: cuMemcpyDtoD_v2 would write 64 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	protect(p, SIZE, "p");
	EXPECT(cuMemcpyDtoD(p, 0, 64) != CUDA_SUCCESS);
	return 0;
}
