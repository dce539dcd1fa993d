#include "tools/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Passed on when somebody sends them to the launcher. SIGKILL and SIGSTOP cannot be. */
static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGALRM};

/*
 * The watch is called after these milliseconds, then each time after a quarter more: what lasts a fifth of the run so
 * far is seen.
 */
#define WATCH_FIRST 20
#define WATCH_LAST 30000

static void signals_of_interest(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		sigaddset(set, passed_on[i]);
}

static void child_exec(char *const *argv, const sigset_t *mask, int failure)
{
	int error;

	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	error = errno;
	if (write(failure, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

/* The errno of the child's execve(), 0 when it worked: the pipe closes by itself then. */
static int exec_result(int fd)
{
	int error = 0;
	ssize_t got;

	do
		got = read(fd, &error, sizeof(error));
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(error) ? error : 0;
}

/*
 * A signal for the launcher. The terminal sends to the whole foreground group, so the child has it already; so it has
 * what it sent itself with kill(0, ...).
 */
static void pass_on(pid_t child, const siginfo_t *info)
{
	if (info->si_code == SI_KERNEL || info->si_pid == child)
		return;
	kill(child, info->si_signo);
}

/* The child was stopped by job control: stop as well, so that the shell has its job back; later wake the child. */
static void stop_alike(pid_t child)
{
	kill(getpid(), SIGSTOP);
	kill(child, SIGCONT);
}

/* True when the child has ended. */
static bool reap(pid_t child, int *status)
{
	while (true) {
		pid_t got = waitpid(child, status, WNOHANG | WUNTRACED);

		if (got != child)
			return got < 0 && errno == ECHILD;
		if (!WIFSTOPPED(*status))
			return true;
		if (WSTOPSIG(*status) == SIGTSTP || WSTOPSIG(*status) == SIGTTIN || WSTOPSIG(*status) == SIGTTOU)
			stop_alike(child);
	}
}

static int attend(pid_t child, const sigset_t *set, launch_watch watch, void *data)
{
	long step = WATCH_FIRST;
	int status = 0;

	while (!reap(child, &status)) {
		struct timespec wait = {step / 1000, step % 1000 * 1000000};
		siginfo_t info;
		int number = sigtimedwait(set, &info, &wait);

		if (number > 0 && number != SIGCHLD)
			pass_on(child, &info);
		if (number < 0 && errno == EAGAIN) {
			watch(child, data);
			step = step < WATCH_LAST ? step * 5 / 4 : WATCH_LAST;
		}
	}
	return status;
}

int launch_wait(char *const *argv, launch_watch watch, void *data, struct launch_end *ret_end)
{
	sigset_t set, before;
	struct launch_end end = {0};
	int ends[2], code = 0;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	signals_of_interest(&set);
	/*
	 * A launcher that inherited SIGCHLD as ignored would have its child reaped by the kernel. The child keeps what
	 * we inherited.
	 */
	struct sigaction normal = {.sa_handler = SIG_DFL}, inherited;
	sigaction(SIGCHLD, &normal, &inherited);
	sigprocmask(SIG_BLOCK, &set, &before);
	child = fork();
	if (child == 0) {
		sigaction(SIGCHLD, &inherited, NULL);
		close(ends[0]);
		child_exec(argv, &before, ends[1]);
	}
	if (child < 0)
		code = -errno;
	close(ends[1]);
	if (child > 0) {
		end.started = exec_result(ends[0]);
		end.status = attend(child, &set, watch, data);
		*ret_end = end;
	}
	close(ends[0]);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return code;
}

void launch_end_alike(int status)
{
	if (WIFSIGNALED(status)) {
		int number = WTERMSIG(status);
		struct rlimit none = {0, 0};
		struct sigaction normal = {.sa_handler = SIG_DFL};
		sigset_t set;

		setrlimit(RLIMIT_CORE, &none);
		sigaction(number, &normal, NULL);
		sigemptyset(&set);
		sigaddset(&set, number);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		raise(number);
		exit(128 + number);
	}
	exit(WEXITSTATUS(status));
}
