/*
 * Many threads ask about kernels while their modules and libraries come and go, and the libraries that hold images are closed. An answer is that of a load that
 * the handle had, and when nothing changes any more, that of the last one.
 *
 *     race CODE_FOLDER HOLDER
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "shim/kernels/function.h"
#include "tests/unit/images/check.h"
#include "tests/unit/images/fake.h"

#define ASKERS 4
#define ROUNDS 300

static pthread_barrier_t barrier;
static _Atomic bool stop;
static const char *holder_path;
static const struct kernel_paths *first[ASKERS];

static void *ask_first(void *asker)
{
	pthread_barrier_wait(&barrier);
	*(const struct kernel_paths **)asker = images_paths(FUNCTION(0));
	return NULL;
}

/* The first question, by all at once. */
static void first_question(void)
{
	pthread_t threads[ASKERS];
	size_t bytes;
	for (int round = 0; round < 50; round++) {
		images_module_loaded(MODULE(0), which_cubin((unsigned)round % 4, &bytes));
		pthread_barrier_init(&barrier, NULL, ASKERS);
		for (int i = 0; i < ASKERS; i++)
			EXPECT(!pthread_create(&threads[i], NULL, ask_first, &first[i]));
		for (int i = 0; i < ASKERS; i++)
			pthread_join(threads[i], NULL);
		pthread_barrier_destroy(&barrier);
		for (int i = 0; i < ASKERS; i++)
			EXPECT(first[i] == first[0] && stored_slot(first[i]) == round % 4);
		fake_unload_module(0);
	}
}

/* Of the handles that come and go: something that is right for some load, or that none was there. */
static void *ask_on(void *unused)
{
	while (!atomic_load(&stop)) {
		const struct kernel_paths *paths[] = {images_paths(FUNCTION(1)), images_paths((CUfunction)KERNEL(2)),
		                                      images_paths(FUNCTION(2)), images_paths((CUfunction)KERNEL(3))};
		for (size_t i = 0; i < 4; i++)
			EXPECT(paths[i] && (stored_slot(paths[i]) >= 0 || paths[i]->reason == PATHS_UNSEEN ||
			                    paths[i]->reason == PATHS_NO_CODE));
		/* Nobody unloads these. */
		EXPECT(stored_slot(images_paths(FUNCTION(4))) == 1 &&
		       stored_slot(images_paths((CUfunction)KERNEL(5))) == 2);
	}
	return NULL;
}

static void *close_and_open(void *unused)
{
	while (!atomic_load(&stop)) {
		void *library = dlopen(holder_path, RTLD_NOW | RTLD_LOCAL);
		EXPECT(library);
		images_library_loaded(LIBRARY(3), dlsym(library, "held"));
		/* In the wrong order, as a program may. */
		dlclose(library);
		fake_unload_library(3);
	}
	return NULL;
}

static void come_and_go(void)
{
	pthread_t threads[ASKERS + 1];
	size_t bytes;
	images_module_loaded(MODULE(4), which_cubin(1, &bytes));
	images_library_loaded(LIBRARY(5), which_cubin(2, &bytes));
	for (int i = 0; i < ASKERS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, ask_on, NULL));
	EXPECT(!pthread_create(&threads[ASKERS], NULL, close_and_open, NULL));
	for (int round = 0; round < ROUNDS; round++) {
		images_module_loaded(MODULE(1), which_cubin((unsigned)round % 4, &bytes));
		images_library_loaded(LIBRARY(2), which_cubin((unsigned)(round + 1) % 4, &bytes));
		EXPECT(stored_slot(images_paths(FUNCTION(1))) == round % 4);
		EXPECT(stored_slot(images_paths((CUfunction)KERNEL(2))) == (round + 1) % 4);
		/* Not of a library that was given back, and then its handle. */
		EXPECT(stored_slot(images_paths(FUNCTION(2))) == (round + 1) % 4);
		fake_unload_module(1);
		fake_unload_library(2);
	}
	atomic_store(&stop, true);
	for (int i = 0; i <= ASKERS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	EXPECT(argc == 3);
	code_folder = argv[1];
	holder_path = argv[2];
	fake_start((unsigned[]){90}, 1);
	for (unsigned slot = 0; slot < 4; slot++) {
		size_t bytes;
		which_cubin(slot, &bytes);
	}
	first_question();
	come_and_go();
	return 0;
}
