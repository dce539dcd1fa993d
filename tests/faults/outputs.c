/* Scenes about the log, stderr and the end of the process. */
#include "tests/faults/scene.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int number(const char *argument)
{
	return argument ? atoi(argument) : 1;
}

static void play_violate(const char *argument)
{
	start();
	protect_calls();
	violate(number(argument));
	EXPECT(stats().violations == (uint64_t)number(argument));
	puts("done");
}

/* What is suppressed passes in every mode. */
static void play_suppressed(const char *argument)
{
	start();
	protect_calls();
	violate(2);
	EXPECT(byte_at(p) == 1 && stats().violations == 0 && stats().suppressed == 2);
	puts("done");
}

static void play_suppressed_kernel(const char *argument)
{
	start();
	cuconst_handle handle = protect(p, SIZE, "p");
	fill(p, 7, COUNT);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(p) == 7);
	cuconst_unprotect(handle);
	EXPECT(stats().violations == 0 && stats().suppressed == 1);
	puts("done");
}

/* With FILE_LIMIT no file may be longer than that. */
static void play_refused_kernel(const char *argument)
{
	struct rlimit limit;
	start();
	protect(p, SIZE, "p");
	CHECK(getrlimit(RLIMIT_FSIZE, &limit));
	if (getenv("FILE_LIMIT"))
		limit.rlim_cur = (rlim_t)number(getenv("FILE_LIMIT"));
	CHECK(setrlimit(RLIMIT_FSIZE, &limit));
	EXPECT(try_fill(p, 7, COUNT) == CUDA_ERROR_NOT_PERMITTED);
	puts("done");
}

/* A program with nothing protected and nothing to say but its own. */
static void play_innocent(const char *argument)
{
	start();
	EXPECT(byte_at(p) == 1);
	puts("done");
}

static void play_unprivileged(const char *argument)
{
	EXPECT(geteuid() != 0 || (!setgid(65534) && !setuid(65534)));
	play_violate(argument);
}

static void play_limited(const char *argument)
{
	struct rlimit limit = {.rlim_cur = (rlim_t)number(argument), .rlim_max = (rlim_t)number(argument)};
	start();
	protect_calls();
	EXPECT(!setrlimit(RLIMIT_FSIZE, &limit));
	violate(20);
	EXPECT(stats().violations == 20);
	puts("done");
}

static void close_all(void)
{
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
}

static void play_closed_before(const char *argument)
{
	start();
	close_all();
	protect_calls();
	violate(3);
}

static void play_closed_after(const char *argument)
{
	start();
	protect_calls();
	violate(1);
	close_all();
	violate(2);
}

/* Every number that the library can have had becomes the program's own file. */
static void play_reused(const char *argument)
{
	struct stat own;
	start();
	protect_calls();
	violate(1);
	int file = open(argument, O_RDWR | O_CREAT | O_APPEND, 0600);
	EXPECT(file >= 0);
	for (int fd = 3; fd < 300; fd++)
		if (fd != file)
			EXPECT(dup2(file, fd) == fd);
	violate(2);
	EXPECT(!fstat(file, &own) && own.st_size == 0);
	for (int fd = 3; fd < 300; fd++)
		EXPECT(fcntl(fd, F_GETFD) >= 0); /* none was closed either */
	puts("done");
}

/* stderr becomes a connection of the program: not a byte of ours may be in it. */
static void play_stdio_reused(const char *argument)
{
	int ends[2];
	struct stat own;
	start();
	protect_calls();
	violate(1);
	close(STDOUT_FILENO);
	int file = open(argument, O_RDWR | O_CREAT, 0600);
	EXPECT(file == STDOUT_FILENO);
	EXPECT(!pipe(ends));
	close(ends[0]);
	dup2(ends[1], STDERR_FILENO); /* a pipe that nobody reads: SIGPIPE for whoever writes */
	violate(1);
	EXPECT(!fstat(file, &own) && own.st_size == 0);
}

static void play_quit(const char *argument)
{
	start();
	protect_calls();
	violate(3);
	_exit(3);
}

/* Until somebody kills it. */
static void play_forever(const char *argument)
{
	start();
	protect_calls();
	for (;;)
		violate(1000);
}

/* Two processes that share a log; each writes its records from two threads' worth of sites. */
static void play_family(const char *argument)
{
	pid_t child = fork();
	start();
	protect_calls();
	violate(number(argument));
	if (child) {
		int status;
		EXPECT(waitpid(child, &status, 0) == child && status == 0);
	}
}

static void CUDA_CB sleep_long(void *unused)
{
	sleep(30);
}

/* The only thread waits for the device, behind a violation: only the watcher can end the process. */
static void play_blocked(const char *argument)
{
	start();
	protect(p, SIZE, "p");
	fill(p, 7, COUNT);
	CHECK(cuLaunchHostFunc(stream, sleep_long, NULL));
	CHECK(cuStreamSynchronize(stream));
}

/* The signal handlers of the program stay its own, and errno is not ours to change. */
static void play_errno(const char *argument)
{
	start();
	protect_calls();
	errno = 4711;
	violate(1);
	EXPECT(errno == 4711);
	puts("done");
}

int main(int argc, char **argv)
{
	static const struct scene scenes[] = {
		{"violate", play_violate},
		{"innocent", play_innocent},
		{"limited", play_limited},
		{"unprivileged", play_unprivileged},
		{"reused", play_reused},
		{"closed_before", play_closed_before},
		{"quit", play_quit},
		{"closed_after", play_closed_after},
		{"forever", play_forever},
		{"stdio_reused", play_stdio_reused},
		{"family", play_family},
		{"blocked", play_blocked},
		{"errno", play_errno},
		{"suppressed", play_suppressed},
		{"suppressed_kernel", play_suppressed_kernel},
		{"refused_kernel", play_refused_kernel},
		{NULL, NULL},
	};
	return scene_main(argc, argv, scenes);
}
