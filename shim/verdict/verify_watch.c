/*
 * The watcher: handles results when no thread of the program comes by. It reads pinned host memory and calls `finding`;
 * it never calls the driver, so it cannot deadlock with it, and nothing waits for it.
 */
#include "shim/verdict/verify_internal.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS 100000l        /* while results come */
#define POLL_MAX_NS 1600000l   /* a long kernel is running */
#define LINGER 20              /* polls with nothing in flight before it sleeps: spares a loop of launches the waking */
#define STACK_BYTES (1u << 20) /* records are made and written here */

static void nap(long ns)
{
	struct timespec time = {0, ns};
	nanosleep(&time, NULL);
}

/*
 * Sleeps until verify_watch_wake(). Either the waker sees `watcher_asleep`, or we see its op: both sides store before
 * they load.
 */
static void sleep_until_woken(void)
{
	atomic_store(&verify.watcher_asleep, 1);
	if (atomic_load(&hook_line.in_flight) == 0)
		syscall(SYS_futex, &verify.watcher_asleep, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
	atomic_store(&verify.watcher_asleep, 0);
}

static void *watch(void *unused)
{
	(void)unused;
	long pause = POLL_NS;
	unsigned idle = 0;
	for (;;) {
		if (verify_poll()) {
			pause = POLL_NS;
			idle = 0;
		} else if (atomic_load(&hook_line.in_flight)) {
			pause = pause * 2 < POLL_MAX_NS ? pause * 2 : POLL_MAX_NS;
			idle = 0;
		} else if (++idle > LINGER) {
			sleep_until_woken();
			pause = POLL_NS;
			idle = 0;
		}
		nap(pause);
	}
	return NULL;
}

void verify_watch_start(void)
{
	if (atomic_load(&verify.watching) || atomic_exchange(&verify.watching, true))
		return;
	pthread_attr_t attributes;
	if (pthread_attr_init(&attributes))
		return;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigset_t all, old;
	sigfillset(&all);
	/* Blocked before it exists: it inherits the mask, and no signal of the program ever runs on it. */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_t thread;
	if (pthread_create(&thread, &attributes, watch, NULL) == 0)
		pthread_setname_np(thread, "cuconst-watch");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
}

void verify_watch_wake(void)
{
	if (atomic_load(&verify.watcher_asleep) && atomic_exchange(&verify.watcher_asleep, 0))
		syscall(SYS_futex, &verify.watcher_asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
