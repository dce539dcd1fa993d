#include "shim/report/peek.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE ((uintptr_t)4096)

/* Can a byte be read there? The kernel reads the eight around it before it finds `how` to be wrong. */
static bool readable(uintptr_t at)
{
	return syscall(SYS_rt_sigprocmask, ~0, at & ~7ul, NULL, 8) && errno == EINVAL;
}

/*
 * For sandboxes that forbid process_vm_readv. Between question and copy the memory may go: nothing better is left
 * there.
 */
static bool peek_asking(uintptr_t at, void *out, size_t size)
{
	for (uintptr_t page = at; page < at + size; page = (page | (PAGE - 1)) + 1)
		if (!readable(page))
			return false;
	memcpy(out, (const void *)at, size);
	return true;
}

bool peek(uintptr_t at, void *out, size_t size)
{
	struct iovec local = {out, size};
	struct iovec remote = {(void *)at, size};
	int saved = errno;
	if (!size)
		return true;
	if (size > UINTPTR_MAX - at)
		return false;
	ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	bool copied = got == (ssize_t)size;
	if (got < 0 && (errno == EPERM || errno == ENOSYS))
		copied = peek_asking(at, out, size);
	errno = saved;
	return copied;
}
