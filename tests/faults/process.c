/* Scenes of processes that fork, spawn and exec around the library. */
#include "tests/faults/scene.h"

#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

extern char **environ;
static _Atomic int stop;

static void ended_well(pid_t child)
{
	int status;
	EXPECT(child > 0 && waitpid(child, &status, 0) == child);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/*
 * Held by busy() but between its rounds. ASan's allocator stays locked in a child that was made while a thread was in
 * it, so there a child that will allocate is made between rounds.
 */
static pthread_rwlock_t rounds = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

#ifdef __SANITIZE_ADDRESS__
#define FORK_SAFE_MALLOC false
#else
#define FORK_SAFE_MALLOC true
#endif

/* Launches, protects and is found guilty, over and over, while the main thread forks. */
static void *busy(void *unused)
{
	CUdeviceptr at;
	CUstream own;
	int value = 0, count = COUNT;
	void *params[] = {&at, &value, &count};
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuMemAlloc(&at, SIZE));
	CHECK(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
	CUfunction fill_kernel = kernel("fill");
	while (!atomic_load(&stop)) {
		CHECK(pthread_rwlock_rdlock(&rounds));
		cuconst_handle handle = protect(at, SIZE, "busy");
		value++;
		CHECK(cuLaunchKernel(fill_kernel, COUNT / 256, 1, 1, 256, 1, 1, 0, own, params, NULL));
		CHECK(cuMemsetD8Async(at, 1, 16, own));
		CHECK(cuStreamSynchronize(own));
		cuconst_unprotect(handle);
		CHECK(pthread_rwlock_unlock(&rounds));
	}
	return NULL;
}

/* A fork child of a process that used CUDA has memory, locks and answers, but no device. */
static void be_child(void)
{
	cuconst_handle handle = 0;
	struct cuconst_stats now = {.size = sizeof now};
	size_t count;
	EXPECT(cuconst_protect(p, SIZE, "child", 0, NULL, &handle) == CUCONST_ERROR_NOT_ACTIVE);
	EXPECT(cuconst_query(p, SIZE, NULL, 0, &count) == CUCONST_ERROR_NOT_ACTIVE);
	EXPECT(cuconst_stats(&now) == CUCONST_ERROR_NOT_ACTIVE);
	EXPECT(cuMemsetD8(p, 9, 16) != CUDA_SUCCESS);
}

static void play_fork_busy(const char *argument)
{
	pthread_t threads[2];
	start();
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, busy, NULL));
	for (int i = 0; i < 60; i++) {
		bool exits = i % 2, waits = exits && !FORK_SAFE_MALLOC;
		if (waits)
			CHECK(pthread_rwlock_wrlock(&rounds));
		pid_t child = fork();
		if (child == 0) {
			be_child();
			if (exits)
				exit(0);
			_exit(0);
		}
		if (waits)
			CHECK(pthread_rwlock_unlock(&rounds));
		ended_well(child);
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL));
	EXPECT(stats().ranges == 0);
}

static _Atomic int inside;

static int stay(struct dl_phdr_info *info, size_t size, void *data)
{
	atomic_store(&inside, 1);
	while (!atomic_load(&stop))
		usleep(1000);
	return 1;
}

static void *stay_in_loader(void *unused)
{
	dl_iterate_phdr(stay, NULL);
	return NULL;
}

/* A child that is made while another thread holds the loader's lock, and ends by exit(). */
static void play_fork_in_loader(const char *argument)
{
	pthread_t thread;
	start();
	protect_calls();
	violate(1);
	CHECK(pthread_create(&thread, NULL, stay_in_loader, NULL));
	while (!atomic_load(&inside))
		usleep(1000);
	pid_t child = fork();
	if (child == 0) {
		be_child();
		alarm(20);
		exit(0);
	}
	ended_well(child);
	atomic_store(&stop, 1);
	CHECK(pthread_join(thread, NULL));
}

/* argument: before or after the first CUDA call */
static char *const nothing[] = {"/bin/true", NULL};

/* On its own: what a function holds in registers is not sure after vfork(). */
static __attribute__((noinline)) pid_t run_by_vfork(void)
{
	pid_t child = vfork();
	if (child == 0) {
		execve(nothing[0], nothing, environ);
		_exit(1);
	}
	return child;
}

static void play_spawn(const char *argument)
{
	bool after = !strcmp(argument, "after");
	pid_t child;
	if (after) {
		start();
		protect(p, SIZE, "p");
	}
	for (int i = 0; i < 5; i++) {
		CHECK(posix_spawn(&child, nothing[0], NULL, NULL, nothing, environ));
		ended_well(child);
		ended_well(run_by_vfork());
		child = fork();
		if (child == 0) {
			execve(nothing[0], nothing, environ);
			_exit(1);
		}
		ended_well(child);
		EXPECT(system("/bin/true") == 0);
	}
	if (!after)
		return;
	CHECK(cuMemsetD8(p, 9, 16)); /* the parent goes on */
	EXPECT(stats().violations == 1);
}

/* A grandchild is as disabled as its parent; and the parent of all still judges. */
static void play_grandchild(const char *argument)
{
	start();
	protect(p, SIZE, "p");
	pid_t child = fork();
	if (child == 0) {
		be_child();
		pid_t grandchild = fork();
		if (grandchild == 0) {
			be_child();
			_exit(0);
		}
		ended_well(grandchild);
		_exit(0);
	}
	ended_well(child);
	CHECK(cuMemsetD8(p, 9, 16));
	EXPECT(stats().violations == 1);
}

static void *launch_on(void *unused)
{
	CUdeviceptr at;
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuMemAlloc(&at, SIZE));
	protect(at, SIZE, "at");
	for (unsigned char i = 0;; i++) {
		CUresult result = cuMemsetD8(at, i, 16);
		if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_PERMITTED)
			return NULL; /* the driver goes down at exit */
	}
}

/* The main thread returns from main while others are in the middle of calls. */
static void play_exit_busy(const char *argument)
{
	pthread_t thread;
	start();
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&thread, NULL, launch_on, NULL));
	while (stats().violations < 1000)
		usleep(1000);
}

int main(int argc, char **argv)
{
	static const struct scene scenes[] = {
		{"fork_busy", play_fork_busy},   {"fork_in_loader", play_fork_in_loader}, {"spawn", play_spawn},
		{"grandchild", play_grandchild}, {"exit_busy", play_exit_busy},           {NULL, NULL},
	};
	return scene_main(argc, argv, scenes);
}
