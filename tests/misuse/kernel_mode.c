/*
 * One code for two layouts, told apart by a parameter: with an output it is clean and costs no check, with a table of
 * outputs it is checked, and found.
 *
 * expect log exit 0 "cuconst: violation: kernel batched (cuLaunchKernel, argument 0) wrote 1 byte of read-only 'p'"
 * expect deny exit 0 "cuconst: violation: kernel batched (cuLaunchKernel, argument 0) wrote 1 byte of read-only 'p'"
 * expect strict exit 86 "cuconst: stopped: kernel batched (cuLaunchKernel, argument 0) wrote 1 byte of read-only 'p'"
 */
#include "batched.h"

int main(void)
{
	int mode = 0;
	start();
	CUfunction function = batched();
	CUdeviceptr in = p, table = table_of(p + 64);
	void *params[] = {&in, &q, &table, &mode};
	protect(p, SIZE, "p");
	for (int i = 0; i < 20; i++)
		CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(q) == 2);
	expect_clean(1);
	/* The first variant does not hold for the second kind of values, and still does for the first. */
	mode = 1;
	CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	mode = 0;
	CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(p + 64) == 2);
	struct cuconst_stats stats = {.size = sizeof stats};
	CHECK(cuconst_stats(&stats));
	EXPECT(stats.clean - 1 <= 1 && stats.unknown == 1);
	return 0;
}
