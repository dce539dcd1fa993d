/*
 * Launches beside a range are checked the 1st, 2nd, 4th... time; the third runs over, and the fourth does not. The look before the fourth finds it: the fourth is not blamed.
 *
 * expect log exit 0 "cuconst: violation: an unknown writer wrote 2048 bytes of read-only 'behind', found before a launch"
 * expect strict exit 86 "cuconst: stopped: an unknown writer wrote 2048 bytes of read-only 'behind', found before a launch"
 */
#include "misuse.h"

int main(void)
{
	start();
	protect(p + 2048, 2048, "behind");
	fill(p, 7, COUNT / 2);
	fill(p, 8, COUNT / 2);
	fill(p, 9, COUNT);
	fill(p, 10, COUNT / 2);
	CHECK(cuStreamSynchronize(stream));
	return 0;
}
