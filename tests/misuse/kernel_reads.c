/*
 * Reading is no violation.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

int main(void)
{
	start();
	int count = COUNT;
	void *params[] = {&p, &q, &count};
	protect(p, SIZE, "p");
	launch("copy", COUNT, stream, params);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(q) == 1);
	return 0;
}
