/* elf LIBRARY...: elf_read.c finds what dlsym finds, by either kind of hash table, and nothing else. */
#include "check.h"

#include "shim/doors/elf_read.h"

static int compared;

static struct elf_object object_of_handle(void *handle)
{
	struct link_map *map;
	CHECK(!dlinfo(handle, RTLD_DI_LINKMAP, &map));
	return elf_of_map(map);
}

static void compare(void *handle, const char *name)
{
	struct elf_object object = object_of_handle(handle);
	CHECK(elf_symbol(&object, name) == dlsym(handle, name));
	compared++;
}

int main(int argc, char **argv)
{
	static const char *const none[] = {"",         "cu",         "cuNoSuchThing", "cuMemcpyHtoD_v3",
	                                   "\x80\xff", "fake_drive", "fake_driver_"};
	CHECK(argc > 1);
	for (int i = 1; i < argc; i++) {
		void *handle = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		CHECK(handle);
#define ROW(symbol, hooked, counter, version, era) compare(handle, #symbol);
#include "rows.inc"
		compare(handle, "fake_driver");
		struct elf_object object = object_of_handle(handle);
		for (size_t k = 0; k < sizeof none / sizeof *none; k++)
			CHECK(!elf_symbol(&object, none[k]));
		CHECK(!strcmp(elf_soname(&object), "libcuda.so.1"));
		/* Imported, so it is there without being offered. */
		CHECK(!elf_symbol(&object, "strcmp") && elf_import(&object, "strcmp"));
		CHECK(!elf_import(&object, "cuNoSuchThing"));
	}
	CHECK(compared > 600 * (argc - 1));
	struct elf_object nothing = {0};
	CHECK(!elf_symbol(&nothing, "strcmp") && !*elf_soname(&nothing) && !elf_import(&nothing, "strcmp"));
	struct elf_object program = object_of_handle(dlopen(NULL, RTLD_NOW));
	CHECK(!*elf_soname(&program));
	void *const *bound = elf_import(&program, "dlopen");
	CHECK(bound && *bound);
	return 0;
}
