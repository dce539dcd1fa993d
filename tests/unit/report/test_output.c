#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "shim/report/output.h"
#include "tests/unit/report/capture.h"

static char *log_path;
static const char *opened;

static void open_log(const char *name)
{
	log_path = in_folder(scratch(), name);
	cr_assert_eq(output_log_open(log_path, &opened), 0);
}

static bool put(const char *text)
{
	return output_log(text, strlen(text));
}

Test(output, appends_records)
{
	open_log("log");
	cr_assert(output_log_is_open());
	cr_assert(put("one\n"));
	errno = 77;
	cr_assert(put("two\n"));
	cr_assert_eq(errno, 77);
	cr_assert_str_eq(slurp(log_path), "one\ntwo\n");
}

Test(output, names)
{
	char expected[512];
	const char *folder = scratch();
	char *pattern = in_folder(folder, "%p-%r-%h-%%-%q");

	setenv("RANK", "", 1);
	setenv("OMPI_COMM_WORLD_RANK", "x1", 1);
	setenv("SLURM_PROCID", "7", 1);
	setenv("PMI_RANK", "9", 1);
	cr_assert_eq(output_rank(), 7);
	cr_assert_eq(output_log_open(pattern, &opened), 0);
	snprintf(expected, sizeof(expected), "%s/%d-7-%s-%%-%%q", folder, getpid(), output_host());
	cr_assert_str_eq(opened, expected);
	cr_assert_eq(access(expected, F_OK), 0);
}

Test(output, rank_is_a_number_or_nothing)
{
	unsetenv("OMPI_COMM_WORLD_RANK");
	unsetenv("SLURM_PROCID");
	unsetenv("PMI_RANK");
	setenv("RANK", "-1", 1);
	cr_assert_eq(output_rank(), -1);
	setenv("RANK", "99999999999999999999", 1);
	cr_assert_eq(output_rank(), -1);
	setenv("RANK", "0", 1);
	cr_assert_eq(output_rank(), 0);
}

Test(output, relative_names_stay_where_they_were)
{
	const char *folder = scratch();

	cr_assert_eq(chdir(folder), 0);
	cr_assert_eq(output_log_open("log.%p", &opened), 0);
	cr_assert(put("one\n"));
	cr_assert_eq(chdir("/"), 0);
	cr_assert_eq(output_log_open("log.%p", &opened), 0);
	cr_assert(put("two\n"));
	cr_assert_str_eq(slurp(opened), "one\ntwo\n");
	cr_assert(!strncmp(opened, folder, strlen(folder)));
}

Test(output, descriptor_is_high_and_not_inherited)
{
	char link[64], target[512];
	int found = -1;

	open_log("log");
	for (int fd = 3; fd < 200; fd++) {
		ssize_t got;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		got = readlink(link, target, sizeof(target) - 1);
		if (got > 0 && (target[got] = 0, !strcmp(target, log_path)))
			found = fd;
	}
	cr_assert_geq(found, 100);
	cr_assert(fcntl(found, F_GETFD) & FD_CLOEXEC);
}

Test(output, log_that_cannot_be_opened)
{
	char pattern[6000];

	cr_assert_eq(output_log_open("/nonexistent/folder/log", &opened), -ENOENT);
	cr_assert_eq(output_log_open("/tmp", &opened), -EISDIR);
	memset(pattern, 'x', sizeof(pattern));
	pattern[sizeof(pattern) - 1] = '\0';
	cr_assert_eq(output_log_open(pattern, &opened), -ENAMETOOLONG);
	cr_assert(!output_log_is_open());
	cr_assert(!put("lost\n"));
	cr_assert_eq(output_trouble().log_lost, 1);
}

Test(output, fifo_without_a_reader_does_not_block, .timeout = 10)
{
	char *path = in_folder(scratch(), "fifo");

	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(output_log_open(path, &opened), -ENXIO);
}

Test(output, full_pipe_does_not_block, .timeout = 10)
{
	static char line[4096];
	char *path = in_folder(scratch(), "fifo");
	int reader;

	cr_assert_eq(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	cr_assert_geq(reader, 0);
	cr_assert_eq(output_log_open(path, &opened), 0);
	memset(line, 'x', sizeof(line));
	for (int i = 0; i < 100; i++)
		output_log(line, sizeof(line));
	cr_assert_gt(output_trouble().log_lost, 0);
	cr_assert_eq(output_trouble().log_errno, EAGAIN);
	close(reader);
	cr_assert(!put("nobody reads\n"), "and no SIGPIPE");
	cr_assert_eq(output_trouble().log_errno, EPIPE);
}

Test(output, full_disk_is_counted)
{
	cr_assert_eq(output_log_open("/dev/full", &opened), 0);
	cr_assert(!put("lost\n"));
	cr_assert(!put("lost\n"));
	cr_assert_eq(output_trouble().log_lost, 2);
	cr_assert_eq(output_trouble().log_errno, ENOSPC);
}

/*
 * A write that was cut leaves a torn line; the next record starts on a line of its own. SIGXFSZ must not end the
 * process.
 */
Test(output, file_size_limit)
{
	struct rlimit limit = {10, RLIM_INFINITY};

	open_log("log");
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_assert(put("1234\n"));
	cr_assert(!put("{\"cut\":1}\n"));
	cr_assert(!put("nothing\n"));
	cr_assert_eq(output_trouble().log_lost, 2);
	limit.rlim_cur = RLIM_INFINITY;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_assert(put("whole\n"));
	cr_assert_str_eq(slurp(log_path), "1234\n{\"cut\nwhole\n");
}

Test(output, all_descriptors_closed)
{
	int status;
	pid_t child;

	open_log("log");
	cr_assert(put("one\n"));
	child = fork(); /* Criterion's own descriptors are needed here */
	if (child == 0) {
		for (int fd = 0; fd < 1024; fd++)
			close(fd);
		_exit(put("two\n") && !output_stderr("x", 1) && put("three\n") ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	cr_assert_str_eq(slurp(log_path), "one\ntwo\nthree\n");
}

/*
 * The program closes our descriptor and gets its number for a file of its own: that file is left alone, and stays open.
 */
Test(output, descriptor_taken_by_the_program)
{
	char *mine = NULL;
	struct stat log_st, st;
	int ours = -1, fd;

	open_log("log");
	mine = in_folder("/tmp", "cuconst-report-taken");
	fd = open(mine, O_RDWR | O_CREAT | O_TRUNC, 0600);
	cr_assert_eq(stat(log_path, &log_st), 0);
	for (int i = 3; i < 1024; i++)
		if (!fstat(i, &st) && st.st_ino == log_st.st_ino && st.st_dev == log_st.st_dev)
			ours = i;
	cr_assert_geq(ours, 0);
	cr_assert_eq(dup2(fd, ours), ours);
	cr_assert(put("record\n"));
	cr_assert_str_eq(slurp(mine), "");
	cr_assert_eq(fcntl(ours, F_GETFD), 0, "the program's descriptor is still open");
	cr_assert_str_eq(slurp(log_path), "record\n");
	unlink(mine);
}

Test(output, low_descriptor_limit)
{
	struct rlimit limit = {64, 64};

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	open_log("log");
	cr_assert(put("one\n"));
	cr_assert_str_eq(slurp(log_path), "one\n");
}

static volatile sig_atomic_t pipes;

static void count_pipe(int signal)
{
	pipes++;
}

Test(output, closed_pipe_on_stderr_raises_nothing)
{
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	close(ends[0]);
	signal(SIGPIPE, count_pipe);
	cr_assert(!output_stderr("x", 1));
	cr_assert_eq(pipes, 0);
	cr_assert_eq(output_trouble().text_errno, EPIPE);
	signal(SIGPIPE, SIG_DFL);
	cr_assert(!output_stderr("x", 1), "and the process lives");
	cr_assert_eq(output_trouble().text_lost, 2);
}

Test(output, a_pending_sigpipe_of_the_program_stays_pending)
{
	int ends[2];
	sigset_t set;

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	close(ends[0]);
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	raise(SIGPIPE);
	cr_assert(!output_stderr("x", 1));
	sigemptyset(&set);
	sigpending(&set);
	cr_assert(sigismember(&set, SIGPIPE));
}

Test(output, closed_stderr)
{
	close(STDERR_FILENO);
	errno = 77;
	cr_assert(!output_stderr("x", 1));
	cr_assert_eq(errno, 77);
	cr_assert_eq(output_trouble().text_lost, 1);
	cr_assert_eq(output_trouble().text_errno, EBADF);
}

Test(output, stderr_number_reused_for_a_connection)
{
	int ends[2];
	char byte;

	stderr_to("/dev/null");
	cr_assert(output_stderr("x", 1));
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	cr_assert(!output_stderr("x", 1));
	cr_assert_eq(recv(ends[0], &byte, 1, MSG_DONTWAIT), -1);
}

Test(output, stderr_that_was_a_socket_from_the_start)
{
	int ends[2];
	char byte;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	cr_assert(output_stderr("x", 1));
	cr_assert_eq(recv(ends[0], &byte, 1, MSG_DONTWAIT), 1);
}

Test(output, fork_child_has_a_log_of_its_own)
{
	char *pattern = in_folder(scratch(), "log.%p"), *child_path;
	int status;
	pid_t child;

	cr_assert_eq(output_log_open(pattern, &opened), 0);
	log_path = strdup(opened);
	cr_assert(put("parent\n"));
	child = fork();
	if (child == 0) {
		output_postfork_child();
		if (output_log_is_open() || output_log_open(pattern, &opened) || !put("child\n"))
			_exit(1);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	cr_assert(put("parent\n"));
	cr_assert_str_eq(slurp(log_path), "parent\nparent\n");
	cr_assert_gt(asprintf(&child_path, "%.*s%d", (int)(strlen(pattern) - 2), pattern, child), 0);
	cr_assert_str_eq(slurp(child_path), "child\n");
}

static void *write_many(void *data)
{
	for (int i = 0; i < 500; i++)
		put("0123456789012345678901234567890123456789012345678901234567890123456789\n");
	return NULL;
}

Test(output, two_processes_and_two_threads_on_one_log, .timeout = 30)
{
	pthread_t thread;
	const char *text;
	int status;
	pid_t child;

	open_log("log");
	child = fork();
	if (child == 0) {
		output_postfork_child();
		if (output_log_open(log_path, &opened))
			_exit(1);
		write_many(NULL);
		_exit(0);
	}
	cr_assert_eq(pthread_create(&thread, NULL, write_many, NULL), 0);
	write_many(NULL);
	pthread_join(thread, NULL);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	text = slurp(log_path);
	cr_assert_eq(strlen(text), 1500 * 71);
	for (size_t i = 0; i < 1500; i++)
		cr_assert(text[i * 71] == '0' && text[i * 71 + 70] == '\n', "record %zu is torn", i);
}
