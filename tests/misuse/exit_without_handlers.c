/*
 * _exit right after the violation: what was recorded is on disk.
 *
 * expect log exit 0 "cuconst: violation: cuMemsetD8_v2 wrote 16 bytes of read-only 'p'"
 */
#include "misuse.h"

int main(void)
{
	start();
	protect(p, SIZE, "p");
	CHECK(cuMemsetD8(p, 9, 16));
	_exit(0);
	return 0;
}
