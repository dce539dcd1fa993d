#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "shim/report/native.h"
#include "shim/report/site.h"

Test(site, interned_text_is_shared)
{
	char text[] = "some text";
	const char *kept = site_intern(text);

	cr_assert_neq(kept, text);
	cr_assert_str_eq(kept, "some text");
	text[0] = 'S';
	cr_assert_str_eq(kept, "some text");
	cr_assert_eq(site_intern("some text"), kept);
	cr_assert_neq(site_intern(text), kept);
	cr_assert_null(site_intern(NULL));
	cr_assert_str_eq(site_intern(""), "");
}

Test(site, very_long_text_is_not_kept)
{
	static char text[20000];

	memset(text, 'x', sizeof(text) - 1);
	cr_assert_str_eq(site_intern(text), "(name not kept)");
}

static void *intern_many(void *data)
{
	const char **kept = data;
	char text[32];

	for (int i = 0; i < 20000; i++) {
		snprintf(text, sizeof(text), "name %d", i);
		kept[i] = site_intern(text);
	}
	return NULL;
}

Test(site, interning_from_many_threads, .timeout = 30)
{
	static const char *kept[4][20000];
	pthread_t threads[4];
	char text[32];

	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, intern_many, kept[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int n = 0; n < 20000; n++) {
		snprintf(text, sizeof(text), "name %d", n);
		cr_assert_str_eq(kept[0][n], text);
		for (int i = 1; i < 4; i++)
			cr_assert_eq(kept[i][n], kept[0][n]);
	}
}

Test(site, interning_has_an_end)
{
	static char text[10000];
	const char *last = NULL;
	int kept = 0;

	memset(text, 'x', sizeof(text) - 1);
	for (int i = 0; i < 10000; i++) {
		snprintf(text, 12, "%011d", i);
		text[11] = 'x';
		last = site_intern(text);
		kept += last[0] == '0';
	}
	cr_assert_str_eq(last, "(name not kept)");
	cr_assert(kept > 5000 && kept < 6800, "%d", kept);
}

Test(site, plumbing)
{
	static const char *const yes[] = {
		"libcuda.so.1",       "libcuda.so.580.65", "libcudart.so.13", "libcudart-d0da41ae.so.11.0",
		"libcufft.so.12",     "libcufftw.so.12",   "libcublas.so.13", "libcublasLt.so.13",
		"libcudnn.so.9",      "libcudnn_ops.so.9", "libnccl.so.2",    "libnvrtc.so.13",
		"libnvJitLink.so.13", "libcuconst.so",     "libcurand.so.10", "libcusolver.so.12",
		"libcusparse.so.12",  "libc.so.6",         "libffi.so.8"};
	static const char *const no[] = {
		"libcuda_mine.so", "libcudamine.so", "libtorch_cuda.so",  "libcufft_wrapper.so",
		"python3.11",      "train",          "libcuda",           "_core.cpython-311-x86_64-linux-gnu.so",
		"libcudf.so",      "libcurl.so.4",   "libcaffe2_nvrtc.so"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		cr_assert(native_is_plumbing(yes[i]), "%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
		cr_assert(!native_is_plumbing(no[i]), "%s", no[i]);
}

Test(site, user_frame)
{
	struct site site = {.python_count = 0};
	static const char *const library[] = {"/usr/lib/python3.11/threading.py",
	                                      "/x/.venv/lib/python3.12/site-packages/cupy/core.py",
	                                      "/usr/lib/python3/dist-packages/numpy/a.py",
	                                      "<frozen importlib._bootstrap>",
	                                      "/opt/lib/python311.zip/ast.py",
	                                      "/opt/lib/python3.13t/ast.py",
	                                      "/src/tools/python/cuconst/__init__.py"};
	static const char *const user[] = {"train.py",
	                                   "<string>",
	                                   "<stdin>",
	                                   "<ipython-input-1-abc>",
	                                   "/home/me/lib/python3x/a.py",
	                                   "/home/lib/pythonic/a.py"};

	cr_assert_null(site_user_frame(&site));
	for (size_t i = 0; i < sizeof(user) / sizeof(*user); i++) {
		site.python_count = 0;
		for (size_t n = 0; n < 7; n++)
			site.python[site.python_count++] = (struct site_frame){library[n], "f", 1};
		cr_assert_eq(site_user_frame(&site), &site.python[0], "all are libraries': the innermost");
		site.python[site.python_count++] = (struct site_frame){user[i], "f", 1};
		cr_assert_eq(site_user_frame(&site), &site.python[7], "%s", user[i]);
	}
}

__attribute__((noinline)) static void hook(struct site *site)
{
	site_capture(site, __builtin_return_address(0));
	__asm__ volatile("");
}

__attribute__((noinline, visibility("default"))) void site_test_caller(struct site *site);
void site_test_caller(struct site *site)
{
	hook(site);
	__asm__ volatile("");
}

Test(site, native_frames_start_at_the_caller)
{
	struct native_frame frame;
	struct site site;

	site_prepare();
	errno = 77;
	site_test_caller(&site);
	cr_assert_eq(errno, 77);
	cr_assert_gt(site.native_count, 1);
	cr_assert(native_resolve(site.native[0], true, &frame));
	cr_assert_str_eq(frame.symbol, "site_test_caller");
	cr_assert_str_eq(native_base_name(frame.path), "test_site_native");
	cr_assert_eq(site.python_count, 0);
	cr_assert(!site.python_cut);
}

Test(site, a_caller_that_is_not_on_the_stack_is_kept)
{
	struct site site;

	site_prepare();
	site_capture(&site, (void *)0x1234);
	cr_assert_eq(site.native[0], (void *)0x1234);
	cr_assert_str_eq(native_base_name(site_library(&site)), "libcriterion.so.3",
	                 "this program stands for the shim: its frames do not count");
}

Test(site, before_prepare)
{
	struct site site;

	site_test_caller(&site);
	cr_assert_gt(site.native_count, 1);
	cr_assert_str_eq(site_library(&site), "test_site_native");
}

Test(site, unknown_addresses)
{
	struct site site = {.native = {(void *)1, (void *)0x1234, NULL}, .native_count = 3};
	struct native_frame frame;

	site_prepare();
	cr_assert(!native_resolve(NULL, true, &frame));
	cr_assert(!native_resolve((void *)0x1234, true, &frame));
	cr_assert_str_eq(site_library(&site), "?");
}

__attribute__((noinline)) static int recurse(int depth, struct site *site)
{
	int result;

	if (depth == 0) {
		hook(site);
		return 0;
	}
	result = recurse(depth - 1, site) + 1;
	__asm__ volatile("");
	return result;
}

Test(site, deep_native_recursion_is_cut)
{
	struct site site;

	site_prepare();
	cr_assert_eq(recurse(1000, &site), 1000);
	cr_assert_eq(site.native_count, SITE_NATIVE_FRAMES);
}

/* Three ways to the same hook: a direct one, a longer one, and one whose frame has no fixed size. */
__attribute__((noinline)) static void way_inner(struct site *site, struct site *fresh)
{
	hook(site);
	fresh->native_count = backtrace(fresh->native, SITE_NATIVE_FRAMES);
	__asm__ volatile("");
}

__attribute__((noinline)) static void way_one(struct site *site, struct site *fresh)
{
	way_inner(site, fresh);
	__asm__ volatile("nop");
}

__attribute__((noinline)) static void way_two(struct site *site, struct site *fresh)
{
	way_inner(site, fresh);
	__asm__ volatile("nop; nop");
}

__attribute__((noinline)) static void way_growing(struct site *site, struct site *fresh, size_t bytes)
{
	volatile char *room = __builtin_alloca(bytes);

	room[0] = room[bytes - 1] = 1;
	way_inner(site, fresh);
	__asm__ volatile("" ::"r"(room));
}

/* The frames of the hook's callers are those that backtrace() finds now, however often they were met before. */
static void check_fresh(const struct site *site, const struct site *fresh)
{
	int from = 0;

	/* way_inner() itself is at another address in each. */
	while (from < fresh->native_count && fresh->native[from] != site->native[1])
		from++;
	cr_assert_lt(from, fresh->native_count, "not this stack");
	for (int i = 1; i < site->native_count && from + i - 1 < fresh->native_count; i++)
		cr_assert_eq(site->native[i], fresh->native[from + i - 1], "frame %d", i);
	cr_assert_geq(site->native_count, fresh->native_count - from);
}

Test(site, a_stack_met_before_is_not_taken_for_another)
{
	struct site site, fresh;

	site_prepare();
	for (int turn = 0; turn < 50; turn++) {
		way_one(&site, &fresh);
		check_fresh(&site, &fresh);
		way_two(&site, &fresh);
		check_fresh(&site, &fresh);
		way_inner(&site, &fresh);
		check_fresh(&site, &fresh);
		way_growing(&site, &fresh, 16 + (size_t)turn % 5 * 48);
		check_fresh(&site, &fresh);
		cr_assert_eq(recurse(turn % 7, &site), turn % 7);
		for (int i = 1; i < turn % 7; i++)
			cr_assert_eq(site.native[i], site.native[1], "frame %d of a recursion of %d", i, turn % 7);
		cr_assert(turn % 7 == 0 || site.native[turn % 7 + 1] != site.native[1]);
	}
}

Test(site, symbols_are_found_once)
{
	struct native_frame first, second;
	struct site site;

	site_prepare();
	site_test_caller(&site);
	cr_assert(native_resolve(site.native[0], true, &first));
	cr_assert(native_resolve(site.native[0], true, &second));
	cr_assert_str_eq(first.symbol, "site_test_caller");
	cr_assert_eq(first.symbol, second.symbol);
	cr_assert(native_resolve((char *)site.native[0] + 1, true, &second));
	cr_assert_eq(second.offset, first.offset + 1);
	cr_assert_str_eq(second.symbol, "site_test_caller");
}

static void *no_python(const char *symbol)
{
	return NULL;
}

Test(site, a_process_without_python)
{
	struct site site;

	site_set_resolver(no_python);
	site_test_caller(&site);
	cr_assert_eq(site.python_count, 0);
}
