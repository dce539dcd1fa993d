/*
 * Without a baseline calls are judged and kernels are not.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

int main(void)
{
	start();
	cuconst_handle handle;
	CHECK(cuconst_protect(p, SIZE, "p", CUCONST_NO_BASELINE, NULL, &handle));
	fill(p, 7, COUNT);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
