/*
 * matrix LIBRARY HOW LOADED SEEN: loads a caller library as `LOADED` says (local, global, deepbind, newlm, linked),
 * lets it call the driver, compares. SEEN is what must be found: `seen`, or `unseen` for the two known holes, which
 * must pass unharmed.
 */
#include "check.h"

int main(int argc, char **argv)
{
	CHECK_EQUAL(argc, 5);
	const char *library = argv[1], *how = argv[2], *loaded = argv[3];
	bool seen = !strcmp(argv[4], "seen");
	void *handle = !strcmp(loaded, "newlm")
	                       ? dlmopen(LM_ID_NEWLM, library, RTLD_NOW)
	                       : dlopen(library, RTLD_LAZY | (!strcmp(loaded, "global")     ? RTLD_GLOBAL
	                                                      : !strcmp(loaded, "deepbind") ? RTLD_DEEPBIND
	                                                                                    : RTLD_LOCAL));
	if (!handle)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(handle);
	int (*run)(const char *);
	*(void **)&run = dlsym(handle, "caller_run");
	CHECK(run);
	/* A search of the global scope finds a driver only when there is one. */
	void *driver = !strcmp(how, "default") || !strcmp(how, "next") ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)
	                                                               : NULL;
	int calls = run(how);
	CHECK(calls > 0);
	if (!strcmp(loaded, "newlm")) {
		Lmid_t space;
		CHECK(!dlinfo(handle, RTLD_DI_LMID, &space));
		driver = dlmopen(space, "libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
		CHECK(driver);
	}
	const struct fake *fake = fake_of(driver ? driver : open_driver());
	CHECK_EQUAL(fake->counted(CALL) + fake->counted(LAUNCH) + fake->counted(GRAPH_LAUNCH), calls);
	if (seen)
		CHECK_EQUAL(check_counts(fake), calls);
	else {
		struct cuconst_stats stats = {.size = sizeof stats};
		cuconst_stats(&stats);
		CHECK_EQUAL(stats.calls + stats.launches + stats.graph_launches, 0);
	}
	return 0;
}
