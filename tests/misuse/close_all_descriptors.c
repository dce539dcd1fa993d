/*
 * The program closes every descriptor, then violates: the record is on disk all the same. In `log` the driver must take
 * the call, and a real one may not without its files, so the answer is not looked at.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 86 ""
 */
#include "misuse.h"

int main(void)
{
	start();
	protect(p, SIZE, "p");
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	close(1);
	close(2);
	cuMemsetD8(p, 9, 16);
	return 0;
}
