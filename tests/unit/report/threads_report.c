/*
 * Many threads record, intern, suppress and take sites at once, and fork in the middle. A plain program: Criterion does
 * not run under ThreadSanitizer, which this is built with where the compiler has it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/report/fold.h"
#include "shim/report/report.h"
#include "shim/verdict/status.h"
#include "shim/verdict/suppress.h"

#define THREADS 4
#define EVENTS 500

static struct range range = {.start = 4096, .end = 8192, .handle = 1, .label = "shared"};

static void *emit(void *data)
{
	char label[32], text[32];
	struct range own = range;
	struct site site;
	struct report_event event = {.kind = REPORT_VIOLATION,
	                             .action = ACTION_LOGGED,
	                             .api = "cuMemcpyDtoD_v2",
	                             .range = &range,
	                             .site = &site};

	own.label = label;
	for (int i = 0; i < EVENTS; i++) {
		site_capture(&site, __builtin_return_address(0));
		snprintf(text, sizeof(text), "file%d.py", i % 100);
		site.python[0] = (struct site_frame){site_intern(text), site_intern("f"), i};
		site.python_count = 1;
		snprintf(label, sizeof(label), "%s%d", i % 5 ? "label" : "quiet", i);
		event.range = i % 2 ? &own : &range;
		report_emit(&event);
		report_note("note %d", i);
	}
	return data;
}

static void run_all(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, emit, NULL))
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static size_t lines_in(const char *path)
{
	size_t lines = 0;
	FILE *file = fopen(path, "r");
	int c;

	while (file && (c = getc(file)) != EOF)
		lines += c == '\n';
	if (file)
		fclose(file);
	return lines;
}

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			dprintf(1, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                            \
			return 1;                                                                                      \
		}                                                                                                      \
	} while (0)

int main(void)
{
	char folder[] = "/tmp/cuconst-threads-XXXXXX", path[256], options[600], suppressions[256];
	const uint64_t quiet = THREADS * EVENTS / 10, all = THREADS * EVENTS;
	struct report_summary summary = {.ranges_ever = 1};
	int null = open("/dev/null", O_WRONLY), fd, status;
	pid_t child;

	CHECK(mkdtemp(folder) && null >= 0 && dup2(null, STDERR_FILENO) == STDERR_FILENO);
	snprintf(path, sizeof(path), "%s/log", folder);
	snprintf(suppressions, sizeof(suppressions), "%s/suppressions", folder);
	fd = open(suppressions, O_WRONLY | O_CREAT, 0600);
	CHECK(write(fd, "label:quiet*\n", 13) == 13);
	snprintf(options, sizeof(options), "log=%s:suppressions=%s:site_limit=3", path, suppressions);
	setenv("CUCONST_OPTIONS", options, 1);
	site_prepare();
	run_all();
	/* Every second event has a label of its own; those with i % 10 == 5 are "quiet" ones. */
	CHECK(suppress_count() == quiet);
	CHECK(status_page()->violations == all - quiet);
	CHECK(lines_in(path) > 100);
	CHECK(fold_total() > 0);
	child = fork();
	if (child == 0) {
		report_postfork_child();
		if (suppress_count() || fold_total())
			_exit(1);
		run_all();
		report_close(&summary);
		_exit(suppress_count() == quiet ? 0 : 2);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	report_close(&summary);
	return 0;
}
