/*
 * The pointer is inside a by-value struct.
 *
 * expect log exit 0 "cuconst: violation: kernel fill_struct (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: kernel fill_struct (cuLaunchKernel, argument 0) would write read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel fill_struct (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect twins exit 86 "cuconst: stopped: kernel fill_struct (cuLaunchKernel, argument 0) would write read-only 'p', which the GPU refused: CUDA error 700 from cuStreamSynchronize"
 */
#include "misuse.h"

int main(void)
{
	start();
	struct {
		int count, pad;
		CUdeviceptr data;
	} two = {COUNT, 0, p};
	int value = 7;
	void *params[] = {&two, &value};
	protect(p, SIZE, "p");
	EXPECT(refused(try_launch("fill_struct", COUNT, stream, params)));
	expect_unharmed(p, 1);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
