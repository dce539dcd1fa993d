/*
 * One code for two layouts, told apart by a parameter: where it stores through its output, that is the only base, and
 * deny refuses.
 *
 * expect log exit 0 "cuconst: violation: kernel batched (cuLaunchKernel, argument 1) wrote 4 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: kernel batched (cuLaunchKernel, argument 1) would write read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel batched (cuLaunchKernel, argument 1) wrote 4 bytes of read-only 'p'"
 * expect twins exit 86 "cuconst: stopped: kernel batched (cuLaunchKernel, argument 1) would write read-only 'p', which the GPU refused: CUDA error 700 from cuStreamSynchronize"
 */
#include "batched.h"

int main(void)
{
	int mode = 0;
	start();
	CUfunction function = batched();
	CUdeviceptr table = table_of(q);
	void *params[] = {&q, &p, &table, &mode};
	protect(p, SIZE, "p");
	EXPECT(refused(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL)));
	CHECK(cuStreamSynchronize(stream));
	expect_unharmed(p, 1);
	return 0;
}
