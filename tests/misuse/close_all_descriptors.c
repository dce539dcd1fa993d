/*
 * The program closes every descriptor, then violates: the record is on disk all the same.
 *
 * expect log exit 0 ""
 * expect strict exit 86 ""
 */
#include "misuse.h"

int main(void)
{
	start();
	CHECK(cuMemsetD8(p, 1, 16)); /* a real driver needs its files to load what this uses */
	protect(p, SIZE, "p");
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	close(1);
	close(2);
	CHECK(cuMemsetD8(p, 9, 16));
	return 0;
}
