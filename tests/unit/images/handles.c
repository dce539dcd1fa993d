/*
 * Handles come again for other code, and libraries have modules that nobody loaded: an answer is always that of the code behind the handle now.
 *
 *     handles CODE_FOLDER
 */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/kernels/function.h"
#include "shim/kernels/image.h"
#include "shim/kernels/images_internal.h"
#include "tests/unit/images/check.h"
#include "tests/unit/images/fake.h"

static void load_module(unsigned n, unsigned slot)
{
	size_t bytes;
	images_module_loaded(MODULE(n), which_cubin(slot, &bytes));
}

static void load_library(unsigned n, unsigned slot)
{
	size_t bytes;
	images_library_loaded(LIBRARY(n), which_cubin(slot, &bytes));
}

#define FUNCTION_SLOT(n) stored_slot(images_paths(FUNCTION(n)))
#define KERNEL_SLOT(n) stored_slot(images_paths((CUfunction)KERNEL(n)))

static void same_name_in_two(void)
{
	load_module(0, 0);
	load_module(1, 1);
	load_library(2, 2);
	load_library(3, 3);
	for (int i = 0; i < 2; i++)
		EXPECT(FUNCTION_SLOT(0) == 0 && FUNCTION_SLOT(1) == 1 && KERNEL_SLOT(2) == 2 && KERNEL_SLOT(3) == 3);
}

static void never_seen(void)
{
	const struct kernel_paths *paths = images_paths(FUNCTION(9));
	EXPECT(paths && paths->reason == PATHS_UNSEEN && !paths->slot_count);
	paths = images_paths((CUfunction)KERNEL(9));
	EXPECT(paths && paths->reason == PATHS_UNSEEN);
	/* Asked about too early. */
	load_module(9, 1);
	load_library(9, 2);
	EXPECT(FUNCTION_SLOT(9) == 1 && KERNEL_SLOT(9) == 2);
	/* Neither a function nor a kernel. */
	paths = images_paths((CUfunction)(uintptr_t)64);
	EXPECT(paths && paths->reason == PATHS_UNSEEN);
}

/* The same name and parameters, at the same handle: an edited kernel, loaded again. */
static void reused(void)
{
	load_module(10, 0);
	EXPECT(FUNCTION_SLOT(10) == 0);
	fake_unload_module(10);
	load_module(10, 1);
	EXPECT(FUNCTION_SLOT(10) == 1);
	/* Not asked about in between. */
	fake_unload_module(10);
	load_module(10, 2);
	fake_unload_module(10);
	load_module(10, 3);
	EXPECT(FUNCTION_SLOT(10) == 3);
	fake_unload_module(10);
	EXPECT(images_paths(FUNCTION(10))->reason == PATHS_UNSEEN);
	load_library(10, 0);
	EXPECT(KERNEL_SLOT(10) == 0);
	fake_unload_library(10);
	load_library(10, 1);
	EXPECT(KERNEL_SLOT(10) == 1);
	fake_unload_library(10);
	EXPECT(images_paths((CUfunction)KERNEL(10))->reason == PATHS_UNSEEN);
}

/* The handle went to another thread's load before the driver returned from the unload. */
static void reused_before_the_unload_returned(void)
{
	load_module(11, 0);
	EXPECT(FUNCTION_SLOT(11) == 0);
	function_forget();
	uint64_t ending = images_ending(MODULE(11));
	load_module(11, 1);
	images_ended(MODULE(11), ending);
	EXPECT(FUNCTION_SLOT(11) == 1);
	fake_unload_module(11);
}

/* Asked about while the unload was on its way. */
static void asked_at_the_end(void)
{
	load_module(25, 0);
	function_forget();
	uint64_t ending = images_ending(MODULE(25));
	EXPECT(FUNCTION_SLOT(25) == 0);
	images_ended(MODULE(25), ending);
	load_module(25, 1);
	EXPECT(FUNCTION_SLOT(25) == 1);
	fake_unload_module(25);
}

/* A search that found a library, and said so when it was gone. */
static void late_module_of_a_library(void)
{
	struct load load, found;
	load_library(26, 2);
	EXPECT(images_find(LIBRARY(26), &load));
	fake_unload_library(26);
	images_add_module(MODULE(26), LIBRARY(26), &load);
	EXPECT(!images_find(MODULE(26), &found));
	/* Nor of the next library with its handle. */
	load_library(26, 3);
	images_add_module(MODULE(26), LIBRARY(26), &load);
	EXPECT(!images_find(MODULE(26), &found));
	EXPECT(FUNCTION_SLOT(26) == 3);
	image_put(load.image);
	fake_unload_library(26);
}

/* The end of the first was not seen: the handle alone tells. */
static void replaced(void)
{
	load_module(22, 0);
	EXPECT(FUNCTION_SLOT(22) == 0);
	load_module(22, 1);
	EXPECT(FUNCTION_SLOT(22) == 1);
	fake_unload_module(22);
}

/* The same code again gives the same answer, not a second copy of it. */
static void equal_answers_are_one(void)
{
	load_module(12, 2);
	const struct kernel_paths *first = images_paths(FUNCTION(12));
	for (int i = 0; i < 100; i++) {
		fake_unload_module(12);
		load_module(12, 2);
		EXPECT(images_paths(FUNCTION(12)) == first);
	}
	fake_unload_module(12);
}

static void unload_failed(void)
{
	load_library(13, 1);
	function_forget();
	uint64_t ending = images_ending(LIBRARY(13));
	images_stay(LIBRARY(13), ending);
	EXPECT(KERNEL_SLOT(13) == 1);
	/* It is searched again, too. */
	EXPECT(FUNCTION_SLOT(13) == 1);
	fake_unload_library(13);
}

/* Functions of modules that the driver made of a library. */
static void module_of_a_library(void)
{
	load_library(14, 0);
	load_library(15, 1);
	EXPECT(FUNCTION_SLOT(15) == 1 && FUNCTION_SLOT(14) == 0);
	/* Something else is unloaded, and everything is asked anew. */
	load_module(16, 0);
	fake_unload_module(16);
	EXPECT(FUNCTION_SLOT(15) == 1 && FUNCTION_SLOT(14) == 0);
	fake_unload_library(15);
	EXPECT(images_paths(FUNCTION(15))->reason == PATHS_UNSEEN);
	EXPECT(FUNCTION_SLOT(14) == 0);
	/* Its handles come again. */
	load_library(15, 3);
	EXPECT(FUNCTION_SLOT(15) == 3 && KERNEL_SLOT(15) == 3);
	/* A library that is about to go is asked no more. */
	images_ending(LIBRARY(14));
	function_forget();
	images_context_ended(CONTEXT);
	EXPECT(images_paths(FUNCTION(14))->reason == PATHS_UNSEEN);
	fake_unload_library(15);
	fake_unload_library(14);
}

/* The program says itself of which library they are: nothing is searched. */
static void told_by_the_program(void)
{
	__typeof__(drv.cuLibraryGetKernel) search = drv.cuLibraryGetKernel;
	drv.cuLibraryGetKernel = NULL;
	for (unsigned round = 0; round < 4; round++) {
		load_library(27, round);
		EXPECT(images_paths(FUNCTION(27))->reason == PATHS_UNSEEN);
		EXPECT(!images_kernel_is_told(FUNCTION(27)));
		for (int i = 0; i < 3; i++)
			images_kernel_function(FUNCTION(27), KERNEL(27));
		EXPECT(images_kernel_is_told(FUNCTION(27)) && !images_kernel_is_told(FUNCTION(28)));
		/* Though it was asked about too early. */
		EXPECT(FUNCTION_SLOT(27) == (int)round);
		load_library(28, 3 - round);
		images_library_module(MODULE(28), LIBRARY(28));
		EXPECT(FUNCTION_SLOT(28) == 3 - (int)round);
		/* Of libraries that nobody saw. */
		images_kernel_function(FUNCTION(29), KERNEL(29));
		images_library_module(MODULE(29), LIBRARY(29));
		EXPECT(images_paths(FUNCTION(29))->reason == PATHS_UNSEEN);
		fake_unload_library(27);
		fake_unload_library(28);
		EXPECT(images_paths(FUNCTION(27))->reason == PATHS_UNSEEN);
		EXPECT(images_paths(FUNCTION(28))->reason == PATHS_UNSEEN);
	}
	drv.cuLibraryGetKernel = search;
}

static void context_ended(void)
{
	load_module(17, 0);
	load_library(18, 1);
	EXPECT(FUNCTION_SLOT(17) == 0 && FUNCTION_SLOT(18) == 1 && KERNEL_SLOT(18) == 1);
	function_forget();
	images_context_ended(CONTEXT);
	EXPECT(images_paths(FUNCTION(17))->reason == PATHS_UNSEEN);
	/* Libraries belong to no context, and their modules are made anew in the next. */
	EXPECT(KERNEL_SLOT(18) == 1 && FUNCTION_SLOT(18) == 1);
	fake_unload_library(18);
	for (unsigned n = 100; n < 400; n++)
		load_module(n, n % 4);
	for (unsigned n = 100; n < 400; n++)
		EXPECT(FUNCTION_SLOT(n) == (int)(n % 4));
	function_forget();
	images_context_ended(CONTEXT);
	for (unsigned n = 100; n < 400; n++)
		EXPECT(images_paths(FUNCTION(n))->reason == PATHS_UNSEEN);
}

/* The answer of a question that took longer than the module lived is not kept. */
static void overtaken(void)
{
	load_module(19, 0);
	const struct function_info *info = function_info(FUNCTION(19));
	uint64_t epoch = function_epoch();
	const struct kernel_paths *old = images_paths(FUNCTION(19));
	fake_unload_module(19);
	load_module(19, 1);
	function_info(FUNCTION(19));
	function_set_paths(info, old, 1, epoch);
	EXPECT(FUNCTION_SLOT(19) == 1);
	fake_unload_module(19);
}

static int exchanged;

/* Another thread's load, between a search that found nothing and what becomes of that. */
static CUresult load_when_searched(CUstreamCaptureMode *mode)
{
	if (++exchanged == 2)
		load_library(30, 1);
	return CUDA_SUCCESS;
}

static void loaded_behind_the_search(void)
{
	__typeof__(drv.cuThreadExchangeStreamCaptureMode) exchange = drv.cuThreadExchangeStreamCaptureMode;
	drv.cuThreadExchangeStreamCaptureMode = load_when_searched;
	EXPECT(FUNCTION_SLOT(30) == 1);
	drv.cuThreadExchangeStreamCaptureMode = exchange;
	EXPECT(exchanged >= 2 && FUNCTION_SLOT(30) == 1);
	fake_unload_library(30);
}

/* Files that are not there, memory that is not: errno is the program's. */
static void errno_kept(void)
{
	errno = 1234;
	images_module_file_loaded(MODULE(23), "/nonexistent");
	images_library_file_loaded(LIBRARY(23), "/");
	images_module_loaded(MODULE(24), (const void *)8);
	EXPECT(images_paths(FUNCTION(23))->reason == PATHS_UNSEEN);
	EXPECT(images_paths((CUfunction)KERNEL(23))->reason == PATHS_UNSEEN);
	EXPECT(images_paths(FUNCTION(24))->reason == PATHS_DAMAGED);
	fake_unload_module(23);
	fake_unload_module(24);
	fake_unload_library(23);
	EXPECT(errno == 1234);
}

static bool recorded;

static void *load_when_cancelled(void *path)
{
	pthread_cancel(pthread_self());
	images_module_file_loaded(MODULE(25), path);
	recorded = true;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* sanitizers do not bear an end in the middle */
	return NULL;
}

/* A thread that somebody cancelled ends when the load is known, not in the middle of reading the file. */
static void cancelled(void)
{
	pthread_t thread;
	void *result = NULL;
	EXPECT(!pthread_create(&thread, NULL, load_when_cancelled, "/nonexistent") && !pthread_join(thread, &result));
	EXPECT(recorded && !result);
	EXPECT(images_paths(FUNCTION(25))->reason == PATHS_UNSEEN);
	fake_unload_module(25);
}

static void forked(void)
{
	load_module(20, 3);
	pid_t child = fork();
	EXPECT(child >= 0);
	if (!child) {
		images_reset();
		EXPECT(FUNCTION_SLOT(20) == 3);
		load_module(21, 2);
		EXPECT(FUNCTION_SLOT(21) == 2);
		_exit(0);
	}
	int status;
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	EXPECT(FUNCTION_SLOT(20) == 3);
	fake_unload_module(20);
}

int main(int argc, char **argv)
{
	EXPECT(argc == 2);
	code_folder = argv[1];
	fake_start((unsigned[]){90}, 1);
	EXPECT(!images_any());
	same_name_in_two();
	EXPECT(images_any());
	never_seen();
	reused();
	reused_before_the_unload_returned();
	asked_at_the_end();
	late_module_of_a_library();
	replaced();
	equal_answers_are_one();
	unload_failed();
	module_of_a_library();
	told_by_the_program();
	context_ended();
	overtaken();
	loaded_behind_the_search();
	errno_kept();
	cancelled();
	forked();
	return 0;
}
