/*
 * A kernel of a library: a CUkernel passed as CUfunction.
 *
 * expect log exit 0 "cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect deny exit 0 "cuconst: denied: kernel fill (cuLaunchKernel, argument 0) would write read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only 'p'"
 * expect twins exit 86 "cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) would write read-only 'p', which the GPU refused: CUDA error 700 from cuStreamSynchronize"
 */
#include "misuse.h"

int main(void)
{
	start();
	static char text[1 << 16];
	CUlibrary library;
	CUkernel fill_kernel;
	int value = 7, count = COUNT;
	void *params[] = {&p, &value, &count};
	FILE *file = fopen(getenv("MISUSE_PTX"), "r");
	EXPECT(file && fread(text, 1, sizeof text - 1, file) > 0);
	CHECK(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryGetKernel(&fill_kernel, library, "fill"));
	protect(p, SIZE, "p");
	EXPECT(refused(cuLaunchKernel((CUfunction)fill_kernel, COUNT / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL)));
	expect_unharmed(p, 1);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
