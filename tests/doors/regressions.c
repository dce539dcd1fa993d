/*
 * regressions NAME: what broke in other interposers, one function for each, named after their issue. Runs under the
 * preload.
 */
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void *function(void *handle, const char *name)
{
	void *address = dlsym(handle, name);
	CHECK(address);
	return address;
}

/* A five-argument hook entered for a four-argument call wrote through a register nobody had set. */
static void hami_core_36_four_argument_getprocaddress(void)
{
	void *driver = open_driver(), *found = NULL, *self4 = NULL, *self5 = NULL;
	int (*resolve4)(const char *, void **, int, uint64_t);
	int (*resolve5)(const char *, void **, int, uint64_t, int *);
	*(void **)&resolve4 = function(driver, "cuGetProcAddress");
	*(void **)&resolve5 = function(driver, "cuGetProcAddress_v2");
	CHECK((void *)resolve4 != (void *)resolve5);
	/* The fifth argument register holds an address that must not be written to. */
	static const int untouchable = 77;
	int (*with_junk)(const char *, void **, int, uint64_t, const int *);
	*(void **)&with_junk = (void *)resolve4;
	CHECK_EQUAL(with_junk("cuMemFree", &found, 4000, 0, &untouchable), 0);
	CHECK_EQUAL(untouchable, 77);
	CHECK(is_hook(found));
	CHECK_EQUAL(resolve4("cuGetProcAddress", &self4, 11030, 0), 0);
	CHECK_EQUAL(resolve5("cuGetProcAddress", &self5, 12000, 0, NULL), 0);
	CHECK(self4 == (void *)resolve4 && self5 == (void *)resolve5);
	CHECK_EQUAL(fake_of(driver)->calls("cuGetProcAddress"), 2);
	CHECK_EQUAL(fake_of(driver)->calls("cuGetProcAddress_v2"), 1);
}

/* The wrapper for the version asked, not always the newest: another struct layout. */
static void hami_core_233_the_version_that_was_asked_for(void)
{
	void *driver = open_driver(), *v1 = NULL, *v2 = NULL, *threads = NULL, *none = &v1;
	int status = -1, (*resolve)(const char *, void **, int, uint64_t, int *);
	*(void **)&resolve = function(driver, "cuGetProcAddress_v2");
	CHECK_EQUAL(resolve("cuMemcpyBatchAsync", &v1, 12080, 0, NULL), 0);
	CHECK_EQUAL(resolve("cuMemcpyBatchAsync", &v2, 13000, 0, NULL), 0);
	CHECK_EQUAL(resolve("cuMemcpyBatchAsync", &threads, 13000, 2, NULL), 0);
	CHECK(v1 == dlsym(driver, "cuMemcpyBatchAsync") && v2 == dlsym(driver, "cuMemcpyBatchAsync_v2") &&
	      threads == dlsym(driver, "cuMemcpyBatchAsync_v2_ptsz"));
	/*
	 * Too old a version, and a name that does not exist: the driver's own status and error, the output as the
	 * driver left it.
	 */
	CHECK_EQUAL(resolve("cuMemcpyBatchAsync", &none, 12000, 0, &status), 0);
	CHECK_EQUAL(status, 2);
	CHECK(!none);
	CHECK_EQUAL(resolve("cuNoSuchThing", &none, 13000, 0, &status), 0);
	CHECK_EQUAL(status, 1);
	CHECK_EQUAL(resolve("cuNoSuchThing", &none, 13000, 0, NULL), 500);
}

/* A prefix match on "cu" caught other libraries' names, and fell back to a global look-up that came back for ever. */
static void hami_core_215_other_names_that_begin_with_cu(void)
{
	static const char *const names[] = {
		"cudnnCreate",     "curl_easy_init", "cublasCreate_v2", "cu",          "c", "", "cu1", "cuserid2",
		"cudaNoSuchThing", "__cxa_nothing",  "__cudaNothing",   "cuFrobnicate"};
	void *driver = open_driver();
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		CHECK(!dlsym(RTLD_DEFAULT, names[i]));
		CHECK(dlerror());
		CHECK(!dlsym(RTLD_NEXT, names[i]));
		CHECK(dlerror());
		CHECK(!dlsym(driver, names[i]));
		CHECK(strstr(dlerror(), names[i]));
	}
	void *self = dlopen(NULL, RTLD_NOW);
	CHECK(dlsym(self, "main") || dlerror());
	CHECK(dlsym(RTLD_DEFAULT, "printf") == (void *)printf);
	/* Real functions of the same look are libc's. */
	CHECK(dlsym(RTLD_DEFAULT, "cuserid") && !is_hook(dlsym(RTLD_DEFAULT, "cuserid")));
	CHECK(!is_hook(dlsym(RTLD_DEFAULT, "__cxa_atexit")));
}

/* A table of earlier RTLD_NEXT look-ups took the second one for recursion and answered NULL. */
static void hami_core_279_rtld_next_twice(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	void *first = dlsym(RTLD_NEXT, "cuMemFree_v2"), *other = dlsym(RTLD_NEXT, "cuMemsetD8_v2");
	CHECK(driver && first && other);
	for (int i = 0; i < 3; i++) {
		CHECK(dlsym(RTLD_NEXT, "cuMemFree_v2") == first);
		CHECK(dlsym(RTLD_NEXT, "cuMemsetD8_v2") == other);
		CHECK(dlsym(RTLD_NEXT, "malloc"));
	}
	CHECK(is_hook(first) && is_hook(other));
}

/*
 * A wrapper in C is itself the caller: RTLD_NEXT looked behind the wrapper, and OpenMP's look-up of its own next found
 * itself again.
 */
static void hami_core_315_rtld_next_from_the_real_caller(void)
{
	/* One is preloaded before us, the other behind. */
	void *first = dlopen(getenv("NEXT_FIRST"), RTLD_NOW | RTLD_NOLOAD);
	void *second = dlopen(getenv("NEXT_SECOND"), RTLD_NOW | RTLD_NOLOAD);
	CHECK(first && second);
	void *(*next_first)(const char *), *(*next_second)(const char *), *(*default_first)(const char *);
	*(void **)&next_first = function(first, "next_of");
	*(void **)&next_second = function(second, "next_of");
	*(void **)&default_first = function(first, "default_of");
	CHECK(next_first("next_marker") == function(second, "next_marker"));
	CHECK(!next_second("next_marker"));
	CHECK(default_first("next_marker") == function(first, "next_marker"));
	CHECK(next_first("malloc") == function(RTLD_DEFAULT, "malloc"));
	/* One that is loaded RTLD_LOCAL sees its own names by RTLD_DEFAULT; the program does not. */
	void *local = dlopen(getenv("NEXT_LOCAL"), RTLD_NOW | RTLD_LOCAL);
	CHECK(local);
	void *(*default_local)(const char *);
	*(void **)&default_local = function(local, "default_of");
	CHECK(default_local("local_only") == function(local, "local_only"));
	CHECK(!dlsym(RTLD_DEFAULT, "local_only"));
}

/* The driver looks itself up while it is being loaded: it must meet itself. */
static void hami_core_326_the_driver_asks_for_itself(void)
{
	CHECK(getenv("FAKE_INNER"));
	void *driver = open_driver();
	CHECK_EQUAL(fake_of(driver)->inner(), 1);
	CHECK(is_hook(dlsym(driver, "cuMemFree_v2")));
}

/* NULL outputs and a NULL status are passed on; outputs are not read unless the call succeeded. */
static void hami_core_333_null_and_unset_outputs(void)
{
	void *driver = open_driver();
	int (*resolve4)(const char *, void **, int, uint64_t);
	int (*resolve5)(const char *, void **, int, uint64_t, int *);
	*(void **)&resolve4 = function(driver, "cuGetProcAddress");
	*(void **)&resolve5 = function(driver, "cuGetProcAddress_v2");
	CHECK_EQUAL(resolve4("cuMemFree", NULL, 12000, 0), 1);
	CHECK_EQUAL(resolve4(NULL, NULL, 12000, 0), 1);
	CHECK_EQUAL(resolve5("cuMemFree", NULL, 12000, 0, NULL), 0);
	CHECK_EQUAL(resolve5(NULL, NULL, 12000, 0, NULL), 1);
	static int marker;
	void *untouched = &marker;
	CHECK_EQUAL(resolve5(NULL, &untouched, 12000, 0, NULL), 1);
	CHECK(untouched == &marker);
	CHECK_EQUAL(call_zero(function(driver, "cuMemcpyHtoD_v2")), 0);
}

/* cuInit from inside the driver's own start, through a hook, on a thread that is being set up already. */
static void nvshare_27_reentrant_start(void)
{
	CHECK(getenv("FAKE_INNER"));
	void *early = dlopen(getenv("CONSTRUCTOR_LIBRARY"), RTLD_NOW);
	CHECK(early);
	const int *constructed = function(early, "caller_constructed");
	CHECK(*constructed > 0);
	CHECK_EQUAL(check_counts(fake_of(open_driver())), *constructed);
}

/* A runtime that asks cuGetProcAddress_v2 for all was not seen at all. */
static void nvshare_11_everything_by_getprocaddress_v2(void)
{
	void *driver = open_driver(), *address = NULL;
	int (*resolve)(const char *, void **, int, uint64_t, int *);
	*(void **)&resolve = function(driver, "cuGetProcAddress_v2");
	CHECK(is_hook((void *)resolve));
	CHECK_EQUAL(resolve("cuMemcpyHtoD", &address, 12000, 0, NULL), 0);
	CHECK(is_hook(address));
	call_zero(address);
	CHECK_EQUAL(check_counts(fake_of(driver)), 1);
}

static void vcuda_31_getprocaddress_finds_itself(void)
{
	void *driver = open_driver(), *first = NULL, *second = NULL;
	int (*resolve)(const char *, void **, int, uint64_t, int *);
	*(void **)&resolve = function(driver, "cuGetProcAddress_v2");
	CHECK_EQUAL(resolve("cuGetProcAddress", &first, 12000, 0, NULL), 0);
	CHECK(first == (void *)resolve);
	*(void **)&resolve = first;
	CHECK_EQUAL(resolve("cuGetProcAddress", &second, 11030, 2, NULL), 0);
	CHECK(is_hook(second) && second != first);
}

/* A driver of CUDA 11.5 has the four-argument form only; what it lacks stays missing. */
static void alnair_114_old_driver_without_v2(void)
{
	void *driver = open_driver(), *found = NULL;
	int (*resolve)(const char *, void **, int, uint64_t);
	CHECK(!dlsym(driver, "cuGetProcAddress_v2"));
	CHECK(strstr(dlerror(), "cuGetProcAddress_v2"));
	CHECK(!dlsym(driver, "cuMemcpyBatchAsync_v2"));
	*(void **)&resolve = function(driver, "cuGetProcAddress");
	CHECK(is_hook((void *)resolve));
	CHECK_EQUAL(resolve("cuMemcpyHtoD", &found, 11050, 0), 0);
	CHECK(is_hook(found));
	CHECK_EQUAL(resolve("cuMemcpyBatchAsync", &found, 12080, 0), 500);
	/* Linked against a newer driver's name: an error, no crash. */
	CHECK_EQUAL(call_zero(dlsym(RTLD_DEFAULT, "cuMemcpyBatchAsync_v2")), 500);
}

/*
 * A failing look-up of the wrapper's own overwrote the error that the program was about to read, or made one where
 * there was none.
 */
static void mangohud_1701_dlerror_as_without(void)
{
	void *driver = open_driver();
	dlerror();
	CHECK(dlsym(driver, "cuMemFree_v2"));
	CHECK(!dlerror());
	CHECK(dlsym(driver, "cuDeviceGetCount"));
	CHECK(!dlerror());
	CHECK(!dlsym(driver, "cuNoSuchThing"));
	const char *said = dlerror();
	CHECK(said && strstr(said, "libcuda.so.1") && strstr(said, "undefined symbol: cuNoSuchThing"));
	CHECK(!dlerror());
	errno = 4711;
	CHECK(dlsym(driver, "cuMemsetD8_v2"));
	CHECK_EQUAL(errno, 4711);
}

/*
 * Two libraries that wrap the same function met each other in a circle; and a wrapper in front of ours must reach the
 * driver through us.
 */
static void gotcha_104_another_wrapper_in_front(void)
{
	int *frees = dlsym(RTLD_DEFAULT, "preloaded_frees"), *early = dlsym(RTLD_DEFAULT, "preloaded_early");
	CHECK(frees && early);
	CHECK_EQUAL(*early, 1);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	void *wrapper = dlsym(RTLD_DEFAULT, "cuMemFree_v2");
	CHECK(!is_hook(wrapper) && !is_driver(wrapper));
	CHECK_EQUAL(call_zero(wrapper), 0);
	CHECK_EQUAL(*frees, 1);
	CHECK_EQUAL(fake_of(driver)->calls("cuMemFree_v2"), 1);
	/* By handle the program asked for the driver's: our hook, and not the wrapper. */
	CHECK(is_hook(dlsym(driver, "cuMemFree_v2")));
	CHECK_EQUAL(call_zero(dlsym(driver, "cuMemFree_v2")), 0);
	CHECK_EQUAL(*frees, 1);
	CHECK_EQUAL(fake_of(driver)->calls("cuMemFree_v2"), 2);
	check_counts(fake_of(driver));
}

/* Without a driver the answer is NULL, as it would be without us: programs test for CUDA that way. */
static void no_driver_no_answer(void)
{
	void *self = dlopen(NULL, RTLD_NOW);
	CHECK(self);
	CHECK(!dlsym(RTLD_DEFAULT, "cuMemFree_v2"));
	CHECK(strstr(dlerror(), "undefined symbol: cuMemFree_v2"));
	CHECK(!dlsym(self, "cuMemFree_v2") && !dlsym(RTLD_NEXT, "cuMemFree_v2"));
	CHECK(!dlsym(RTLD_DEFAULT, "cudaMemcpy") && !dlsym(self, "cufftExecC2C") && !dlsym(RTLD_NEXT, "cudaMemcpy"));
	CHECK(dlerror());
	CHECK(!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
	CHECK_EQUAL(cuconst_version(), CUCONST_VERSION);
}

/* Two drivers: the one used first is hooked, the other one's functions stay its own. */
static void two_drivers_the_first_is_hooked(void)
{
	void *first = open_driver(), *second = dlopen(getenv("SECOND_DRIVER"), RTLD_NOW);
	CHECK(first && second && first != second);
	CHECK(is_hook(dlsym(first, "cuMemFree_v2")));
	void *theirs = dlsym(second, "cuMemFree_v2");
	CHECK(is_driver(theirs) && theirs == fake_of(second)->address("cuMemFree_v2"));
	CHECK_EQUAL(call_zero(theirs), 0);
	CHECK_EQUAL(fake_of(second)->calls("cuMemFree_v2"), 1);
	CHECK_EQUAL(fake_of(first)->calls("cuMemFree_v2"), 0);
	CHECK_EQUAL(call_zero(dlsym(first, "cuMemcpyHtoD_v2")), 0);
	CHECK_EQUAL(check_counts(fake_of(first)), 1);
}

/* dlvsym: libc's versions stay what they are, and a driver's function does not leak out by it. */
static void dlvsym_is_closed_too(void)
{
	void *driver = open_driver();
	void *old = dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.2.5"), *new = dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.14");
	CHECK(old && new &&old != new);
	CHECK(!dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_9"));
	CHECK(dlerror());
	void *found = dlvsym(driver, "cuMemFree_v2", "ANY");
	CHECK(!found || is_hook(found));
	found = dlvsym(RTLD_NEXT, "cuMemFree_v2", "ANY");
	CHECK(!found || is_hook(found));
}

static void *driver_for_threads;
static pthread_barrier_t barrier;

static void *race(void *data)
{
	pthread_barrier_wait(&barrier);
	void *address = dlsym(driver_for_threads, "cuMemcpyHtoD_v2");
	CHECK(is_hook(address));
	for (int i = 0; i < 100; i++)
		CHECK_EQUAL(call_zero(address), 0);
	return NULL;
}

/* Nobody waits, nobody is told "not found", nothing is lost, when many come first. */
static void threads_race_at_first_use(void)
{
	enum { THREADS = 16 };
	pthread_t threads[THREADS];
	driver_for_threads = open_driver();
	CHECK(!pthread_barrier_init(&barrier, NULL, THREADS));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, race, NULL));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK_EQUAL(check_counts(fake_of(driver_for_threads)), THREADS * 100);
}

static int wait_for(pid_t child)
{
	int status = -1;
	CHECK(waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void fork_before_first_use(void)
{
	pid_t child = fork();
	CHECK(child >= 0);
	void *driver = open_driver();
	call_zero(function(driver, "cuMemcpyHtoD_v2"));
	CHECK_EQUAL(check_counts(fake_of(driver)), 1);
	if (!child)
		_exit(0);
	CHECK_EQUAL(wait_for(child), 0);
}

/* The child of a process that used CUDA: the hooks pass, nothing hangs. */
static void fork_after_first_use(void)
{
	void *driver = open_driver();
	call_zero(function(driver, "cuInit"));
	call_zero(function(driver, "cuMemcpyHtoD_v2"));
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		CHECK(is_hook(dlsym(driver, "cuMemcpyHtoD_v2")));
		CHECK_EQUAL(call_zero(function(driver, "cuMemcpyHtoD_v2")), 0);
		CHECK_EQUAL(call_zero(function(driver, "cuMemFree_v2")), 0);
		CHECK_EQUAL(fake_of(driver)->calls("cuMemcpyHtoD_v2"), 2);
		_exit(0);
	}
	CHECK_EQUAL(wait_for(child), 0);
	CHECK_EQUAL(check_counts(fake_of(driver)), 1);
}

/* A driver that is opened by another name, and whose file is called differently: known by its DT_SONAME. */
static void driver_by_another_file_name(void)
{
	void *driver = dlopen(getenv("RENAMED_DRIVER"), RTLD_NOW);
	CHECK(driver);
	CHECK(is_hook(dlsym(driver, "cuMemcpyHtoD_v2")));
	call_zero(function(driver, "cuMemcpyHtoD_v2"));
	CHECK_EQUAL(check_counts(fake_of(driver)), 1);
}

/* Most launches of newer libraries are by cuLaunchKernelEx. */
static void hami_core_143_launch_kernel_ex(void)
{
	void *driver = open_driver(), *found = NULL;
	int (*resolve)(const char *, void **, int, uint64_t, int *);
	*(void **)&resolve = function(driver, "cuGetProcAddress_v2");
	call_zero(function(driver, "cuLaunchKernelEx"));
	for (int flags = 0; flags <= 2; flags += 2) {
		CHECK_EQUAL(resolve("cuLaunchKernelEx", &found, 11060, (uint64_t)flags, NULL), 0);
		CHECK(is_hook(found));
		call_zero(found);
	}
	CHECK_EQUAL(shim_stats().launches, 3);
	check_counts(fake_of(driver));
}

/* An allocator that looks its next one up on its first call, long before any constructor of ours could have run. */
static void linuwux_31_dlsym_from_an_allocator(void)
{
	void *volatile memory = malloc(1);
	free(memory);
	const int *allocations = dlsym(RTLD_DEFAULT, "allocator_calls");
	CHECK(allocations && *allocations > 0);
	call_zero(function(open_driver(), "cuMemcpyHtoD_v2"));
	CHECK_EQUAL(check_counts(fake_of(open_driver())), 1);
}

/*
 * XLA's plugin defines the driver's names itself and loads libcuda when one is called. Ours come before them, so we
 * load it.
 */
static void xla_trampolines_without_a_driver(void)
{
	CHECK(!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
	void *plugin = dlopen(getenv("TRAMPOLINES"), RTLD_NOW);
	CHECK(plugin);
	int (*use)(void);
	*(void **)&use = function(plugin, "use_trampoline");
	CHECK_EQUAL(use(), 0);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	CHECK(driver);
	CHECK_EQUAL(fake_of(driver)->inner(), 1);
	CHECK_EQUAL(check_counts(fake_of(driver)), 1);
}

static void export_tables_untouched(void)
{
	void *driver = open_driver(), *found = NULL;
	CHECK(dlsym(driver, "cuGetExportTable") == fake_of(driver)->address("cuGetExportTable"));
	int (*resolve)(const char *, void **, int, uint64_t, int *);
	*(void **)&resolve = function(driver, "cuGetProcAddress_v2");
	CHECK_EQUAL(resolve("cuGetExportTable", &found, 12000, 0, NULL), 0);
	CHECK(found == fake_of(driver)->address("cuGetExportTable"));
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
/* clang-format off */
#define TEST(name) {#name, name}
	TEST(hami_core_36_four_argument_getprocaddress),
	TEST(hami_core_233_the_version_that_was_asked_for),
	TEST(hami_core_215_other_names_that_begin_with_cu),
	TEST(hami_core_279_rtld_next_twice),
	TEST(hami_core_315_rtld_next_from_the_real_caller),
	TEST(hami_core_326_the_driver_asks_for_itself),
	TEST(hami_core_333_null_and_unset_outputs),
	TEST(nvshare_27_reentrant_start),
	TEST(nvshare_11_everything_by_getprocaddress_v2),
	TEST(vcuda_31_getprocaddress_finds_itself),
	TEST(alnair_114_old_driver_without_v2),
	TEST(mangohud_1701_dlerror_as_without),
	TEST(gotcha_104_another_wrapper_in_front),
	TEST(no_driver_no_answer),
	TEST(two_drivers_the_first_is_hooked),
	TEST(dlvsym_is_closed_too),
	TEST(threads_race_at_first_use),
	TEST(fork_before_first_use),
	TEST(fork_after_first_use),
	TEST(driver_by_another_file_name),
	TEST(export_tables_untouched),
	TEST(hami_core_143_launch_kernel_ex),
	TEST(linuwux_31_dlsym_from_an_allocator),
	TEST(xla_trampolines_without_a_driver),
	/* clang-format on */
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof tests / sizeof *tests; i++)
		if (!strcmp(argv[1], tests[i].name)) {
			tests[i].run();
			return 0;
		}
	fprintf(stderr, "no test of that name\n");
	return 2;
}
