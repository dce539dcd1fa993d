/*
 * A fork child of a process that used CUDA passes everything through; the parent goes on.
 *
 * expect log exit 0 "cuconst: violation: cuMemsetD8_v2 wrote 16 bytes of read-only 'p'"
 */
#include "misuse.h"
#include <sys/wait.h>

int main(void)
{
	start();
	protect(p, SIZE, "p");
	pid_t child = fork();
	if (child == 0) {
		cuconst_handle handle;
		EXPECT(cuconst_protect(p, SIZE, "child", 0, NULL, &handle) == CUCONST_ERROR_NOT_ACTIVE);
		EXPECT(cuMemsetD8(p, 9, 16) != CUDA_SUCCESS); /* the driver's own answer */
		_exit(0);
	}
	int status;
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	CHECK(cuMemsetD8(p, 9, 16));
	return 0;
}
