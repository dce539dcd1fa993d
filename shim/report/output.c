#include "shim/report/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "registry/lock.h"
#include "shim/report/buffer.h"

/* Programs that close "all" descriptors or count on low numbers stay below this. */
#define FIRST_FD 100
#define HOST_SIZE 256

static struct {
	struct lock lock; /* guards the rest; nothing but system calls is made under it */
	int fd;           /* -1: closed */
	dev_t dev;
	ino_t ino;
	bool torn; /* the last write was cut: the next record starts on a line of its own */
	bool rooted;
	char root[PATH_MAX]; /* the folder at the first call: the program may change it before a fork or a reopening */
	char path[PATH_MAX];
} log_file = {.lock = LOCK_INITIALIZER(LOCK_OUTPUT), .fd = -1};

static _Atomic uint64_t log_lost, text_lost;
static _Atomic int log_errno, text_errno;

/* The socket that fd 2 was when we first wrote, if it was one. */
static _Atomic uint64_t stderr_socket;

static pthread_once_t host_once = PTHREAD_ONCE_INIT;
static char host_name[HOST_SIZE];

static void host_read(void)
{
	if (gethostname(host_name, sizeof(host_name) - 1) || !host_name[0])
		strcpy(host_name, "?");
}

const char *output_host(void)
{
	pthread_once(&host_once, host_read);
	return host_name;
}

int output_rank(void)
{
	static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *text = secure_getenv(names[i]);
		char *end;
		long rank;

		if (!text || *text < '0' || *text > '9')
			continue;
		errno = 0;
		rank = strtol(text, &end, 10);
		if (!*end && !errno && rank <= INT_MAX)
			return (int)rank;
	}
	return -1;
}

struct guard {
	sigset_t old;
	bool pipe_pending, size_pending;
	int cancel, saved_errno;
};

/*
 * A write may raise SIGPIPE (a closed pipe) or SIGXFSZ (a file size limit); both are sent to the writing thread and end
 * the process by default. They are blocked, and taken back afterwards if they were not pending before. write() is a
 * cancellation point as well: a thread that was cancelled here would leave our lock held.
 */
static void guard_enter(struct guard *guard)
{
	sigset_t set, pending;

	guard->saved_errno = errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard->cancel);
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &set, &guard->old);
	sigemptyset(&pending);
	sigpending(&pending);
	guard->pipe_pending = sigismember(&pending, SIGPIPE) == 1;
	guard->size_pending = sigismember(&pending, SIGXFSZ) == 1;
}

static void take_back(int signal)
{
	static const struct timespec now = {0};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	while (sigtimedwait(&set, NULL, &now) == -1 && errno == EINTR)
		;
}

static void guard_leave(const struct guard *guard)
{
	sigset_t pending;

	sigemptyset(&pending);
	sigpending(&pending);
	if (!guard->pipe_pending && sigismember(&pending, SIGPIPE) == 1)
		take_back(SIGPIPE);
	if (!guard->size_pending && sigismember(&pending, SIGXFSZ) == 1)
		take_back(SIGXFSZ);
	pthread_sigmask(SIG_SETMASK, &guard->old, NULL);
	pthread_setcancelstate(guard->cancel, NULL);
	errno = guard->saved_errno;
}

/* One write(2), repeated only when a signal came before the first byte. Bytes written, or negative errno. */
static ssize_t write_once(int fd, const char *text, size_t length)
{
	ssize_t done;

	do
		done = write(fd, text, length);
	while (done < 0 && errno == EINTR);
	return done < 0 ? -errno : done;
}

/* Expands the pattern into log_file.path, absolute. 0 or -ENAMETOOLONG. */
static int expand(const char *pattern)
{
	struct buffer buf = buffer_over(log_file.path, sizeof(log_file.path) - 1);
	int rank = output_rank();

	if (*pattern != '/') {
		buffer_string(&buf, log_file.root);
		buffer_string(&buf, "/");
	}
	for (const char *at = pattern; *at; at++) {
		if (*at != '%' || !at[1] || !strchr("hprt%", at[1])) {
			buffer_bytes(&buf, at, 1);
			continue;
		}
		switch (*++at) {
		case 'h':
			buffer_string(&buf, output_host());
			break;
		case 'p':
			buffer_signed(&buf, getpid());
			break;
		case 'r':
			buffer_unsigned(&buf, rank < 0 ? 0 : (uint64_t)rank);
			break;
		case 't':
			buffer_signed(&buf, time(NULL));
			break;
		default:
			buffer_string(&buf, "%");
		}
	}
	if (buf.full)
		return -ENAMETOOLONG;
	log_file.path[buf.length] = '\0';
	return 0;
}

/* Opens log_file.path. O_NONBLOCK: a FIFO without a reader must not stop the program. */
static int open_path(void)
{
	struct stat st;
	int high;
	int fd = open(log_file.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);

	if (fd < 0)
		return -errno;
	high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	if (fstat(fd, &st)) {
		int error = errno;

		close(fd);
		return -error;
	}
	log_file.fd = fd;
	log_file.dev = st.st_dev;
	log_file.ino = st.st_ino;
	return 0;
}

int output_log_open(const char *pattern, const char **ret_path)
{
	struct guard guard;
	int error;

	guard_enter(&guard);
	lock_acquire(&log_file.lock);
	if (!log_file.rooted && !getcwd(log_file.root, sizeof(log_file.root)))
		strcpy(log_file.root, ".");
	log_file.rooted = true;
	error = expand(pattern);
	if (!error)
		error = open_path();
	lock_release(&log_file.lock);
	guard_leave(&guard);
	*ret_path = log_file.path;
	return error;
}

/*
 * Is the descriptor still our file? A program that closes everything closes it too, and the number may be a file of its
 * own by now: that one is neither written nor closed; ours is opened again by its name.
 */
static bool is_ours(void)
{
	struct stat st;

	return log_file.fd >= 0 && !fstat(log_file.fd, &st) && st.st_dev == log_file.dev && st.st_ino == log_file.ino;
}

static int check_open(void)
{
	if (log_file.fd < 0)
		return -EBADF;
	return is_ours() ? 0 : open_path();
}

bool output_log(const char *text, size_t length)
{
	struct guard guard;
	ssize_t done;

	guard_enter(&guard);
	lock_acquire(&log_file.lock);
	done = check_open();
	if (!done && log_file.torn && write_once(log_file.fd, "\n", 1) == 1)
		log_file.torn = false;
	if (!done)
		done = write_once(log_file.fd, text, length);
	if (done > 0 && (size_t)done < length) {
		log_file.torn = true;
		done = -ENOSPC;
	}
	lock_release(&log_file.lock);
	if (done < 0) {
		atomic_fetch_add(&log_lost, 1);
		atomic_store(&log_errno, (int)-done);
	}
	guard_leave(&guard);
	return done > 0;
}

bool output_log_is_open(void)
{
	bool open;

	lock_acquire(&log_file.lock);
	open = log_file.fd >= 0;
	lock_release(&log_file.lock);
	return open;
}

/*
 * fd 2 may be redirected by the program at any time, and the text follows. Only a socket must be the one that was there
 * at first: a program that closed fd 2 and then opened a connection must not find our text in its protocol.
 */
static bool stderr_is_fit(void)
{
	struct stat st;
	uint64_t seen = 0;

	if (fstat(STDERR_FILENO, &st))
		return false;
	if (!S_ISSOCK(st.st_mode)) {
		atomic_compare_exchange_strong(&stderr_socket, &seen, UINT64_MAX);
		return true;
	}
	return atomic_compare_exchange_strong(&stderr_socket, &seen, (uint64_t)st.st_ino) || seen == (uint64_t)st.st_ino;
}

bool output_stderr(const char *text, size_t length)
{
	struct guard guard;
	ssize_t done = -EBADF;

	guard_enter(&guard);
	if (stderr_is_fit())
		done = write_once(STDERR_FILENO, text, length);
	if (done < 0) {
		atomic_fetch_add(&text_lost, 1);
		atomic_store(&text_errno, (int)-done);
	}
	guard_leave(&guard);
	return done >= 0;
}

struct output_trouble output_trouble(void)
{
	return (struct output_trouble){
		.log_lost = atomic_load(&log_lost),
		.log_errno = atomic_load(&log_errno),
		.text_lost = atomic_load(&text_lost),
		.text_errno = atomic_load(&text_errno),
	};
}

void output_postfork_child(void)
{
	/*
	 * The lock may have been held by a thread that the child does not have. Our copy of the descriptor belongs to
	 * the child.
	 */
	log_file.lock = (struct lock)LOCK_INITIALIZER(LOCK_OUTPUT);
	if (is_ours())
		close(log_file.fd);
	log_file.fd = -1;
	log_file.torn = false;
	atomic_store(&log_lost, 0);
	atomic_store(&text_lost, 0);
}
