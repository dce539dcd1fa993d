/*
 * With nothing protected a hook is a jump: the driver returns to the program and not to the hook. Every counted row,
 * and tracked ones that are idle then.
 */
#include "check.h"

static const struct fake *fake;

/* What a program calls at every launch, or nearly so, and these are more than their counts. */
static const char *const idle[] = {
	"cuPointerGetAttribute", "cuPointerGetAttributes", "cuMemGetAddressRange_v2", "cuMemGetInfo_v2",
	"cuMemGetAccess",        "cuStreamSynchronize",    "cuStreamQuery",           "cuEventSynchronize",
	"cuCtxSynchronize",      "cuMemFree_v2",           "cuMemFreeAsync",
};

static void check_jump(void *driver, const char *symbol)
{
	int (*call)(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *);
	Dl_info info;
	*(void **)&call = dlsym(driver, symbol);
	CHECK(is_hook(*(void **)&call));
	/* The first call finds the driver, and a place for this thread's counts. */
	for (int i = 0; i < 2; i++)
		CHECK_EQUAL(call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), 0);
	CHECK_EQUAL(fake->calls(symbol), 2);
	if (dladdr(fake->returns_to(symbol), &info) && strstr(info.dli_fname, "libcuconst")) {
		fprintf(stderr, "%s: the driver was called from a frame of the hook\n", symbol);
		exit(1);
	}
}

int main(void)
{
	static const struct {
		const char *symbol;
		bool hooked;
		enum fake_counter counter;
	} rows[] = {
#define ROW(symbol, hooked, counter, version, era) {#symbol, hooked, counter},
#include "rows.inc"
#undef ROW
	};
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	size_t checked = 0;
	CHECK(driver);
	fake = fake_of(driver);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].hooked && rows[i].counter != NONE) {
			check_jump(driver, rows[i].symbol);
			checked++;
		}
	CHECK(checked > 100);
	for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
		check_jump(driver, idle[i]);
	return 0;
}
