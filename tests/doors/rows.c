/*
 * rows WAY: every row of the table, by one way of asking: the hook where there is one, the driver's own function where
 * there is none.
 */
#include "check.h"

static void *driver;
static const struct fake *fake;

static void check_row(const char *symbol, bool hooked, void *address)
{
	if (!address || is_hook(address) != hooked || (!hooked && address != fake->address(symbol))) {
		fprintf(stderr, "%s: %p in %s, expected %s\n", symbol, address, object_of(address),
		        hooked ? "the hook" : "the driver's own");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	CHECK_EQUAL(argc, 2);
	const char *way = argv[1];
	driver = dlopen("libcuda.so.1", RTLD_NOW | (strcmp(way, "default") && strcmp(way, "next") ? 0 : RTLD_GLOBAL));
	CHECK(driver);
	fake = fake_of(driver);
	int rows = 0;
	if (!strcmp(way, "getproc")) {
		int (*resolve)(const char *, void **, int, uint64_t, int *);
		*(void **)&resolve = dlsym(driver, "cuGetProcAddress_v2");
		CHECK(resolve);
		static const struct {
			const char *symbol;
			bool hooked;
		} table[] = {
#define ROW(symbol, hooked, counter, version, era) {#symbol, hooked},
#include "rows.inc"
#undef ROW
		};
#define ANSWER(symbol_, name, version, flag)                                                                           \
	if (version) {                                                                                                 \
		void *address = NULL;                                                                                  \
		int status = -1;                                                                                       \
		CHECK_EQUAL(resolve(#name, &address, version, flag, &status), 0);                                      \
		CHECK_EQUAL(status, 0);                                                                                \
		for (size_t i = 0; i < sizeof table / sizeof *table; i++)                                              \
			if (!strcmp(table[i].symbol, #symbol_)) {                                                      \
				check_row(#symbol_, table[i].hooked, address);                                         \
				rows++;                                                                                \
			}                                                                                              \
	}
#include "rows.inc"
#undef ANSWER
	} else {
#define ROW(symbol, hooked, counter, version, era)                                                                     \
	check_row(#symbol, hooked,                                                                                     \
	          !strcmp(way, "default") ? dlsym(RTLD_DEFAULT, #symbol)                                               \
	          : !strcmp(way, "next")  ? dlsym(RTLD_NEXT, #symbol)                                                  \
	                                  : dlsym(driver, #symbol));                                                    \
	rows++;
#include "rows.inc"
#undef ROW
		CHECK(!dlerror());
	}
	CHECK(rows > 600);
	return 0;
}
