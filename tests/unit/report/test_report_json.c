/* report_emit() from end to end: the log's lines, stderr, counters. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "shim/report/json.h"
#include "shim/verdict/status.h"
#include "shim/verdict/suppress.h"
#include "tests/unit/report/capture.h"
#include "tests/unit/report/events.h"
#include "tests/unit/report/json_check.h"

static char *folder, *log_path, *text_path;

/* A log and stderr in files; more options behind. */
static void set_up(const char *options)
{
	char *value;

	folder = strdup(scratch());
	log_path = in_folder(folder, "log.jsonl");
	text_path = in_folder(folder, "text");
	cr_assert_gt(asprintf(&value, "log=%s%s%s", log_path, *options ? ":" : "", options), 0);
	setenv("CUCONST_OPTIONS", value, 1);
	setenv("RANK", "3", 1);
	stderr_to(text_path);
}

/* The whole log, each line checked. */
static const char *log_text(size_t lines)
{
	const char *text = slurp(log_path), *at = text;
	size_t found = 0;

	for (; *at; found++)
		cr_assert(json_line(at, &at), "not JSON: %.300s", at);
	cr_assert_eq(found, lines, "%zu lines: %.2000s", found, text);
	return text;
}

static void has(const char *text, const char *part)
{
	cr_assert_not_null(strstr(text, part), "%s is not in %.3000s", part, text);
}

Test(report_json, every_field)
{
	struct report_event event = sample_launch();
	struct store_site stores[] = {{.offset = 112, .base = 2, .kind = "STG", .file = "fill.cu", .line = 8},
	                              {.offset = 48, .base = 1, .kind = "STG"},
	                              {.offset = 31, .base = 2, .kind = "red.global"}};
	struct kernel_paths paths = {.store_count = 3, .stores = stores};
	struct report_kernel kernel = {.name = "_Z5fill5Pii",
	                               .argument = 1,
	                               .offset = 8,
	                               .value = 0xdead0,
	                               .api = "cuLaunchKernelEx",
	                               .code = {.verdict = "stores", .paths = &paths, .slot = 2}};
	struct report_kernel candidate = {.name = NULL, .argument = -1, .site = sample_site};
	const char *text;
	char expected[256];

	set_up("mode=strict");
	event.kernel = &kernel;
	event.action = ACTION_STOPPED;
	event.outer_api = "cufftExecC2C";
	event.outer_note = "idata=odata";
	event.candidates = &candidate;
	event.candidate_count = 1;
	event.unverified_launches = 4;
	event.stream = 0x77;
	event.graph = 0x88;
	event.graph_node = "kernel";
	event.result = 800;
	event.device = 2;
	errno = 77;
	cr_assert(report_emit(&event));
	cr_assert_eq(errno, 77);
	text = log_text(1);
	cr_assert_eq(strncmp(text, "{\"schema\":1,\"seq\":1,\"time\":\"20", 29), 0);
	snprintf(expected, sizeof(expected),
	         "\"pid\":%d,\"tid\":%d,\"rank\":3,\"mode\":\"strict\",\"kind\":\"violation\"", getpid(), gettid());
	has(text, expected);
	has(text,
	    "\"evidence\":\"changed\",\"action\":\"stopped\",\"api\":\"cuLaunchKernel\",\"outer_api\":\"cufftExecC2C\",\"outer_note\":\"idata=odata\"");
	has(text, "\"kernel\":{\"name\":\"_Z5fill5Pii\",\"demangled\":\"fill5");
	has(text,
	    "\"argument\":1,\"offset\":8,\"value\":\"0xdead0\",\"api\":\"cuLaunchKernelEx\",\"verdict\":\"stores\",\"reason\":null}");
	has(text, "\"stores\":[{\"kind\":\"STG\",\"offset\":112,\"ptx_line\":null,\"file\":\"fill.cu\",\"line\":8},"
	          "{\"kind\":\"red.global\",\"offset\":null,\"ptx_line\":31,\"file\":null,\"line\":null}]");
	has(text, "\"written\":{\"start\":\"0x7f0000000a00\",\"end\":\"0x7f0000001a00\",\"bytes\":4096,\"exact\":true}");
	has(text,
	    "\"range\":{\"label\":\"x\",\"start\":\"0x7f0000000a00\",\"end\":\"0x7f0000001a00\",\"bytes\":4096,\"device\":2,\"handle\":17,"
	    "\"site\":{\"file\":\"train.py\",\"function\":\"main\",\"line\":5}}");
	has(text,
	    "\"stream\":\"0x77\",\"graph\":\"0x88\",\"graph_node\":\"kernel\",\"library\":\"?\",\"unverified_launches\":4,\"earlier_launches\":null,\"result\":800");
	has(text, "\"python\":[{\"file\":\"/opt/lib/python3.11/site-packages/lib.py\",\"function\":\"inner\",\"line\":3},"
	          "{\"file\":\"train.py\",\"function\":\"step\",\"line\":12},");
	has(text,
	    "\"native\":[],\"candidates\":[{\"name\":null,\"demangled\":null,\"argument\":null,\"offset\":0,\"value\":\"0x0\",\"api\":null,"
	    "\"verdict\":null,\"reason\":null,\"site\":{\"file\":\"train.py\",\"function\":\"step\",\"line\":12}}],\"cut\":false}\n");
}

Test(report_json, what_does_not_apply_is_null)
{
	struct report_event event = {.kind = REPORT_ENDED, .action = ACTION_NONE, .device = -1};
	const char *text;

	set_up("");
	unsetenv("RANK");
	cr_assert(report_emit(&event));
	text = log_text(1);
	has(text,
	    "\"rank\":null,\"mode\":\"log\",\"kind\":\"ended\",\"evidence\":null,\"action\":\"none\",\"api\":null,\"outer_api\":null,\"outer_note\":null,"
	    "\"kernel\":null,\"written\":null,\"range\":null,\"stream\":\"0x0\",\"graph\":null,\"graph_node\":null,\"library\":null,"
	    "\"unverified_launches\":0,\"earlier_launches\":null,\"result\":0,\"fault\":null,\"python\":[],\"stores\":[],\"native\":[],\"candidates\":[],\"cut\":false}\n");
}

/* The time is checked against the C library's calendar. */
Test(report_json, time_is_utc)
{
	struct report_event event = sample_copy();
	char stamp[32];
	struct tm tm = {0};
	const char *found;
	time_t before = time(NULL), then;

	set_up("");
	report_emit(&event);
	found = strstr(log_text(1), "\"time\":\"");
	cr_assert_not_null(found);
	snprintf(stamp, sizeof(stamp), "%.27s", found + 8);
	cr_assert_str_eq(strptime(stamp, "%Y-%m-%dT%H:%M:%S", &tm) + 7, "Z");
	then = timegm(&tm);
	cr_assert(then >= before && then <= time(NULL), "%s", stamp);
}

Test(report_json, hostile_text)
{
	struct report_event event = sample_launch();
	struct report_kernel kernel = {.name = "k\xff\"\\\n", .api = "a"};
	struct range range = sample_range;
	struct site site = {.python = {{"fil\xc3", "f\x01", 1}}, .python_count = 1};

	set_up("");
	range.label = "\xed\xa0\x80\"},{\"\033";
	range.site.file = "\"";
	event.kernel = &kernel;
	event.range = &range;
	event.site = &site;
	report_emit(&event);
	has(log_text(1), "\"label\":\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\\\"},{\\\"\\u001b\"");
}

/* Every text at its longest and all escapes: the record is whole JSON, and says that lists were cut. */
Test(report_json, longest_record)
{
	static char bad[9000];
	static struct report_kernel candidates[64];
	struct report_event event = sample_launch();
	struct report_kernel kernel = {.name = bad, .api = bad, .argument = 1};
	struct range range = {
		.start = 1, .end = UINT64_MAX, .handle = UINT64_MAX, .label = bad, .site = {bad, bad, INT32_MAX}};
	struct site site = {.python_count = SITE_PYTHON_FRAMES, .python_cut = true};

	memset(bad, 1, sizeof(bad) - 1);
	for (int i = 0; i < SITE_PYTHON_FRAMES; i++)
		site.python[i] = (struct site_frame){bad, bad, i};
	kernel.site = site;
	for (int i = 0; i < 64; i++)
		candidates[i] = kernel;
	event.kernel = &kernel;
	event.range = &range;
	event.site = &site;
	event.api = event.outer_api = event.outer_note = event.graph_node = bad;
	event.candidates = candidates;
	event.candidate_count = 64;
	set_up("");
	report_emit(&event);
	has(log_text(1), "\"cut\":true}\n");
	cr_assert_leq(strlen(slurp(log_path)), JSON_SIZE);
}

Test(report_json, long_lists_are_cut)
{
	static struct report_kernel candidates[1000];
	struct report_event event = sample_launch();

	for (int i = 0; i < 1000; i++)
		candidates[i] = sample_kernel;
	event.candidates = candidates;
	event.candidate_count = 1000;
	set_up("");
	report_emit(&event);
	has(log_text(1), "\"cut\":true}\n");
	cr_assert_gt(count_text(slurp(log_path), "\"name\":\"fill5\""), 50);
}

Test(report_json, native_frames)
{
	struct report_event event = sample_copy();
	struct site site;

	site_prepare();
	site_capture(&site, NULL);
	cr_assert_gt(site.native_count, 1);
	event.site = &site;
	set_up("");
	report_emit(&event);
	/* This program stands for the shim, whose own frames are left out. */
	has(log_text(1), "\"native\":[{\"library\":\"/");
	has(slurp(log_path), "/libcriterion.so.3\",\"offset\":\"0x");
	has(slurp(log_path), "\"library\":\"libcriterion.so.3\"");
	has(slurp(text_path), "\n  at   libcriterion.so.3+0x");
}

Test(report_json, a_loop_of_violations_is_bounded_and_fast, .timeout = 60)
{
	struct report_event event = sample_launch();
	struct report_summary summary = {.violations = 100000};
	struct timespec start, end;
	double each;

	set_up("");
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < 100000; i++)
		cr_assert(report_emit(&event));
	clock_gettime(CLOCK_MONOTONIC, &end);
	each = ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / 1e5;
	report_close(&summary);
	cr_log_info("%.0f ns for each", each);
	cr_assert_lt(each, 20000, "%.0f ns for each", each);
	log_text(15);
	cr_assert_eq(count_text(slurp(log_path), "\"kind\":\"violation\""), 10);
	cr_assert_eq(count_text(slurp(log_path), "\"kind\":\"folded\""), 4);
	has(slurp(log_path), "\"count\":100000,\"folded\":99990}\n");
	has(slurp(log_path), "\"violations\":100000,");
	has(slurp(log_path), "\"folded\":99990,\"log_lost\":0,\"log_error\":null,");
	cr_assert_eq(count_text(slurp(text_path), "cuconst: violation: "), 10);
	cr_assert_eq(count_text(slurp(text_path), "cuconst: folded: "), 4);
	cr_assert_eq(status_page()->violations, 100000);
}

Test(report_json, what_was_folded_since_the_last_mention_comes_at_the_end)
{
	struct report_event event = sample_copy();
	struct report_summary summary = {.violations = 15, .blind = "a \"library\""};

	set_up("");
	for (int i = 0; i < 15; i++)
		report_emit(&event);
	report_close(&summary);
	report_close(&summary);
	log_text(12);
	has(slurp(log_path),
	    "\"kind\":\"folded\",\"of\":\"violation\",\"action\":\"logged\",\"api\":\"cuMemcpyDtoD_v2\",\"outer_api\":null,\"kernel\":null,"
	    "\"label\":\"x\",\"handle\":17,\"site\":{\"file\":\"train.py\",\"function\":\"step\",\"line\":12},\"count\":15,\"folded\":5}\n");
	has(slurp(log_path), "\"not_seen\":\"a \\\"library\\\"\"}\n");
	cr_assert_eq(count_text(slurp(text_path), "cuconst: summary: "), 1);
}

Test(report_json, nothing_protected_says_nothing)
{
	struct report_summary summary = {.launches = 5};

	set_up("");
	report_open();
	report_close(&summary);
	has(log_text(1), "\"kind\":\"summary\",\"ranges_ever\":0,");
	cr_assert_str_eq(slurp(text_path), "");
}

Test(report_json, counters)
{
	struct report_event event = sample_copy();

	set_up("");
	report_emit(&event);
	event.action = ACTION_DENIED;
	report_emit(&event);
	event.kind = REPORT_INCONCLUSIVE;
	event.action = ACTION_LOGGED;
	report_emit(&event);
	event.kind = REPORT_FREED;
	report_emit(&event);
	cr_assert_eq(status_page()->violations, 2);
	cr_assert_eq(status_page()->denied, 1);
	cr_assert_eq(status_page()->inconclusive, 1);
	cr_assert_eq(status_page()->logs, 1);
	log_text(4);
}

Test(report_json, suppressed)
{
	struct report_event event = sample_copy();
	char *options, *path = in_folder("/tmp", "cuconst-report-suppressions");
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	cr_assert_eq(write(fd, "label:x\nnonsense\n", 17), 17);
	close(fd);
	cr_assert_gt(asprintf(&options, "suppressions=%s", path), 0);
	set_up(options);
	cr_assert(report_suppressed(&event));
	cr_assert_eq(suppress_count(), 0);
	cr_assert(!report_emit(&event));
	cr_assert_eq(suppress_count(), 1);
	cr_assert_eq(status_page()->violations, 0);
	log_text(0);
	cr_assert_str_eq(slurp(text_path),
	                 "cuconst: suppressions: /tmp/cuconst-report-suppressions:2: needs kind:glob, not \"nonsense\"\n");
	unlink(path);
}

Test(report_json, missing_suppressions_are_said)
{
	struct report_event event = sample_copy();

	set_up("suppressions=/nonexistent/s:text=0");
	cr_assert(report_emit(&event));
	cr_assert_str_eq(
		slurp(text_path),
		"cuconst: suppressions /nonexistent/s cannot be read (No such file or directory): nothing is suppressed\n");
}

Test(report_json, missing_folder_goes_on_on_stderr)
{
	struct report_event event = sample_copy();

	set_up("log=/nonexistent/a.jsonl:text=0");
	cr_assert(report_emit(&event));
	cr_assert(report_emit(&event));
	cr_assert_eq(strncmp(slurp(text_path),
	                     "cuconst: log /nonexistent/a.jsonl cannot be opened (No such file or directory): records go to stderr only\n"
	                     "cuconst: violation: ",
	                     123),
	             0);
	cr_assert_eq(count_text(slurp(text_path), "cannot be opened"), 1);
	cr_assert_eq(count_text(slurp(text_path), "cuconst: violation: "), 2);
}

Test(report_json, full_disk_is_said_at_the_end)
{
	struct report_event event = sample_copy();
	struct report_summary summary = {.violations = 2};

	set_up("log=/dev/full:text=0");
	cr_assert(report_emit(&event));
	cr_assert(report_emit(&event));
	report_close(&summary);
	cr_assert_not_null(strstr(slurp(text_path), "; 3 records lost by the log (No space left on device)\n"),
	                   "the summary is lost too: %s", slurp(text_path));
}

Test(report_json, no_text)
{
	struct report_event event = sample_copy();

	set_up("text=0");
	report_emit(&event);
	log_text(1);
	cr_assert_str_eq(slurp(text_path), "");
}

Test(report_json, no_log)
{
	struct report_event event = sample_copy();

	set_up("");
	setenv("CUCONST_OPTIONS", "", 1);
	report_emit(&event);
	cr_assert_eq(access(log_path, F_OK), -1);
	cr_assert_eq(count_lines(slurp(text_path)), 4);
}

Test(report_json, notes_once_each)
{
	set_up("");
	for (int i = 0; i < 3; i++)
		report_note("trouble %d", i);
	report_note("other");
	cr_assert_str_eq(slurp(text_path), "cuconst: trouble 0\ncuconst: other\n");
}

Test(report_json, notes_are_at_most_32)
{
	static char formats[100][16];

	set_up("");
	for (int i = 0; i < 100; i++) {
		snprintf(formats[i], sizeof(formats[i]), "note %d", i);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
		report_note(formats[i]);
#pragma GCC diagnostic pop
	}
	cr_assert_eq(count_lines(slurp(text_path)), 32);
}

Test(report_json, long_note)
{
	static char word[5000];

	set_up("");
	memset(word, 'x', sizeof(word) - 1);
	report_note("%s", word);
	cr_assert_eq(count_lines(slurp(text_path)), 1);
	cr_assert_lt(strlen(slurp(text_path)), 1100);
}

Test(report_json, fork_child_starts_anew)
{
	struct report_event event = sample_copy();
	struct report_summary summary = {.violations = 1};
	int status;
	pid_t child;

	set_up("");
	for (int i = 0; i < 20; i++)
		report_emit(&event);
	child = fork();
	if (child == 0) {
		report_postfork_child();
		report_close(&summary); /* recorded nothing: writes nothing */
		report_emit(&event);
		report_close(&summary);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	log_text(12);
	cr_assert_eq(count_text(slurp(log_path), "\"seq\":1,"), 2);
	cr_assert_eq(count_text(slurp(log_path), "\"kind\":\"summary\""), 1);
}

Test(report_json, child_that_records_nothing_makes_no_file)
{
	struct report_summary summary = {0};
	char *name;
	int status;
	pid_t child;

	set_up("");
	setenv("CUCONST_OPTIONS", "", 1);
	cr_assert_gt(asprintf(&name, "log=%s.%%p", log_path), 0);
	setenv("CUCONST_OPTIONS", name, 1);
	report_open();
	child = fork();
	if (child == 0) {
		report_postfork_child();
		report_close(&summary);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_gt(asprintf(&name, "%s.%d", log_path, child), 0);
	cr_assert_eq(access(name, F_OK), -1);
}

Test(report_json, a_killed_process_leaves_what_it_recorded)
{
	struct report_event event = sample_copy();
	int status;
	pid_t child;

	set_up("");
	child = fork();
	if (child == 0) {
		report_emit(&event);
		kill(getpid(), SIGKILL);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status));
	log_text(1);
}

/* The program closes everything, stderr as well: the log goes on, and the end says what stderr lost. */
Test(report_json, all_descriptors_closed)
{
	struct report_event event = sample_copy();
	struct report_summary summary = {.violations = 2};
	int status;
	pid_t child;

	set_up("");
	child = fork();
	if (child == 0) {
		report_emit(&event);
		for (int fd = 0; fd < 1024; fd++)
			close(fd);
		report_emit(&event);
		report_close(&summary);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	has(log_text(3), "\"log_lost\":0,\"log_error\":null,\"text_lost\":1,\"text_error\":\"Bad file descriptor\"");
}

static void *emit_many(void *data)
{
	struct report_event event = sample_copy();
	struct range range = sample_range;
	char label[32];

	event.range = &range;
	range.label = label;
	for (int i = 0; i < 50; i++) {
		snprintf(label, sizeof(label), "%p-%d", data, i);
		report_emit(&event);
	}
	return NULL;
}

Test(report_json, threads, .timeout = 30)
{
	pthread_t threads[4];

	set_up("text=0");
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, emit_many, &log_path + i), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	log_text(200);
	for (int i = 1; i <= 200; i++) {
		char seq[32];

		snprintf(seq, sizeof(seq), "\"seq\":%d,", i);
		cr_assert_eq(count_text(slurp(log_path), seq), 1);
	}
}
