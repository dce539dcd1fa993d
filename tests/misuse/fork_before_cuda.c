/*
 * A child forked before CUDA was used is guarded like any process, with a log of its own.
 *
 * expect log exit 0 "cuconst: violation: cuMemsetD8_v2 wrote 16 bytes of read-only 'p'"
 */
#include "misuse.h"

#include <sys/wait.h>

int main(void)
{
	pid_t child = fork();
	if (child) {
		int status;
		EXPECT(waitpid(child, &status, 0) == child && status == 0);
		return 0;
	}
	start();
	protect(p, SIZE, "p");
	CHECK(cuMemsetD8(p, 9, 16));
	return 0;
}
