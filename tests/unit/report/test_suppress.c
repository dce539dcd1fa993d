#include "shim/verdict/suppress.h"
#include "tests/unit/report/capture.h"
#include "tests/unit/report/events.h"

static char said[8192];

static void collect(const char *message, void *data)
{
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", message);
}

static void load(const char *text)
{
	char *path = in_folder(scratch(), "s");
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	cr_assert_eq(suppress_load(path, collect, NULL), 0);
	/* Messages begin with the path: tests compare what follows. */
	for (char *at = said; (at = strstr(at, path));)
		memmove(at, at + strlen(path) + 1, strlen(at + strlen(path)));
}

Test(suppress, glob)
{
	static const struct {
		const char *glob, *text;
		bool match;
	} cases[] = {
		{"", "", true},          {"", "a", false},          {"*", "", true},
		{"*", "abc", true},      {"a*c", "abbc", true},     {"a*c", "abcd", false},
		{"a?c", "abc", true},    {"a?c", "ac", false},      {"*b*b*", "abcb", true},
		{"*b*b*", "abc", false}, {"[a-c]x", "bx", true},    {"[a-c]x", "dx", false},
		{"[!a-c]x", "dx", true}, {"[!a-c]x", "ax", false},  {"[]]", "]", true},
		{"[a-]", "-", true},     {"[abc", "a", false},      {"\\*", "*", true},
		{"\\*", "a", false},     {"a\\", "a\\", true},      {"**a", "bca", true},
		{"a", "A", false},       {"f*<*>", "f<int>", true}, {"\xc3?", "\xc3\xb6", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		cr_assert_eq(suppress_glob(cases[i].glob, cases[i].text), cases[i].match, "%s on %s", cases[i].glob,
		             cases[i].text);
}

Test(suppress, glob_is_not_exponential, .timeout = 5)
{
	static char text[20001];

	memset(text, 'a', sizeof(text) - 1);
	cr_assert(!suppress_glob("*a*a*a*a*a*a*a*a*a*a*b", text));
}

Test(suppress, nothing_loaded_matches_nothing)
{
	struct report_event event = sample_launch();

	cr_assert(!suppress_match(&event));
	cr_assert_eq(suppress_count(), 0);
}

static void expect(const char *line, bool match)
{
	struct report_event event = sample_launch();

	load(line);
	cr_assert_str_eq(said, "");
	cr_assert_eq(suppress_test(&event), match, "%s", line);
	cr_assert_eq(suppress_count(), 0, "a test does not count");
	cr_assert_eq(suppress_match(&event), match);
	cr_assert_eq(suppress_count(), match);
}

Test(suppress, kernel)
{
	expect("kernel:fill*\n", true);
}
Test(suppress, kernel_other)
{
	expect("kernel:copy*\n", false);
}
Test(suppress, api)
{
	expect("api:cuLaunch*", true);
}
Test(suppress, api_other)
{
	expect("api:cuMemcpy*", false);
}
Test(suppress, label)
{
	expect("label:x", true);
}
Test(suppress, label_is_whole)
{
	expect("label:y", false);
}
Test(suppress, python_base_name)
{
	expect("python:train.py:step", true);
}
Test(suppress, python_outer_frame)
{
	expect("python:*.py:<module>", true);
}
Test(suppress, python_library_frame_by_path)
{
	expect("python:*/site-packages/*:*", true);
}
Test(suppress, python_other_function)
{
	expect("python:train.py:main", false);
}
Test(suppress, library_without_native_frames)
{
	expect("library:libfoo*", false);
}
Test(suppress, spaces_and_comments)
{
	expect("# kernel:*\r\n\n   kernel :  fill5 \t\r\n", true);
}
Test(suppress, only_comments)
{
	expect("#kernel:*\n", false);
}
Test(suppress, kinds_do_not_mix)
{
	expect("label:fill5\nlibrary:fill5\napi:fill5\n", false);
}

Test(suppress, outer_api)
{
	struct report_event event = sample_copy();

	event.outer_api = "cufftExecC2C";
	load("api:cufftExec*\n");
	cr_assert(suppress_match(&event));
}

Test(suppress, demangled_kernel)
{
	struct report_kernel kernel = {.name = "_ZN2at6native4fillEPf", .argument = -1};
	struct report_event event = sample_launch();

	event.kernel = &kernel;
	load("kernel:at::native::*\n");
	cr_assert(suppress_match(&event));
}

Test(suppress, library)
{
	struct report_event event = sample_copy();
	struct site site = {.native_count = 0};

	site_prepare();
	site_capture(&site, NULL);
	event.site = &site;
	load("library:libcriterion.so*\n"); /* the test itself stands for the shim, whose frames do not count */
	cr_assert(suppress_match(&event), "found %s", site_library(&site));
}

Test(suppress, errors_name_line_and_reason_and_the_rest_counts)
{
	struct report_event event = sample_launch();

	load("kernel\nkernle:x\napi:\nlabel:[abc\npython:main\n0x7f00:x\nkernel:fill5\n");
	cr_assert_str_eq(said, "1: needs kind:glob, not \"kernel\"\n"
	                       "2: kinds are kernel, library, api, label and python, not \"kernle\"\n"
	                       "3: the glob is missing\n"
	                       "4: a ']' is missing in \"[abc\"\n"
	                       "5: python needs file.py:function, not \"main\"\n"
	                       "6: kinds are kernel, library, api, label and python, not \"0x7f00\"\n");
	cr_assert(suppress_match(&event));
}

Test(suppress, files_that_cannot_be_read)
{
	struct report_event event = sample_launch();
	char *fifo = in_folder(scratch(), "fifo");

	cr_assert_eq(mkfifo(fifo, 0600), 0);
	cr_assert_eq(suppress_load("/nonexistent/s", NULL, NULL), -ENOENT);
	cr_assert_eq(suppress_load("/tmp", NULL, NULL), -EISDIR);
	cr_assert_eq(suppress_load(fifo, NULL, NULL), -EINVAL);
	cr_assert_eq(suppress_load("/proc/self/mem", NULL, NULL), 0, "an empty regular file as far as stat says");
	cr_assert(!suppress_match(&event));
}

Test(suppress, many_lines)
{
	static char text[400000];
	struct report_event event = sample_launch();
	size_t at = 0;

	for (int i = 0; i < 20000; i++)
		at += (size_t)sprintf(text + at, "kernel:k%d*\n", i);
	strcpy(text + at, "kernel:fill5");
	load(text);
	cr_assert(suppress_match(&event));
}
