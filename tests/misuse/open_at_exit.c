/*
 * A change that no call tells, in memory that is still protected when the program ends: the last look finds it.
 *
 * expect log exit 0 "cuconst: violation: an unknown writer wrote 4 bytes of read-only 'p', found at exit"
 * expect deny exit 0 "cuconst: violation: an unknown writer wrote 4 bytes of read-only 'p', found at exit"
 * expect strict exit 86 "cuconst: stopped: an unknown writer wrote 4 bytes of read-only 'p', found at exit"
 */
#include "misuse.h"

int main(void)
{
	start();
	CUdeviceptr table;
	int value = 7;
	void *params[] = {&table, &value};
	CHECK(cuMemAlloc(&table, 8));
	CHECK(cuMemcpyHtoD(table, &p, 8));
	protect(p, SIZE, "p");
	launch("fill_table", 1, stream, params);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
