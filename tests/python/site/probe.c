/* A library that Python calls through ctypes: it captures the site of its call as a hook does, and answers in text. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "shim/report/native.h"
#include "shim/report/site.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC void probe_start(void);
PUBLIC const char *probe(void);
PUBLIC const char *probe_in_thread(void);
PUBLIC void probe_to_stderr(void);
PUBLIC void probe_call(void (*callback)(void));
PUBLIC double probe_cost(int times);
PUBLIC const char *probe_user(void);
PUBLIC const char *probe_library(void);
PUBLIC const char *probe_native(void);

static void *lookup(const char *symbol)
{
	return dlsym(RTLD_DEFAULT, symbol);
}

void probe_start(void)
{
	site_prepare();
	site_set_resolver(lookup);
}

/* One frame a line, fields apart by the unit separator; "cut" at the end when there were more. */
static const char *describe(const struct site *site)
{
	static _Thread_local char text[65536];
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < site->python_count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\037%s\037%d\n", site->python[i].file,
		                         site->python[i].function, site->python[i].line);
	snprintf(text + used, sizeof(text) - used, "%s", site->python_cut ? "cut\n" : "");
	return text;
}

const char *probe(void)
{
	struct site site;

	errno = 77;
	site_capture(&site, __builtin_return_address(0));
	return errno == 77 ? describe(&site) : "errno was changed\n";
}

const char *probe_user(void)
{
	static _Thread_local char text[4096];
	struct site site;
	const struct site_frame *frame;

	site_capture_python(&site);
	frame = site_user_frame(&site);
	snprintf(text, sizeof(text), "%s\037%s\037%d", frame ? frame->file : "", frame ? frame->function : "",
	         frame ? frame->line : 0);
	return text;
}

const char *probe_library(void)
{
	struct site site;

	site_capture(&site, __builtin_return_address(0));
	return site_library(&site);
}

/* File names of the native frames' libraries, innermost first. */
const char *probe_native(void)
{
	static _Thread_local char text[8192];
	struct native_frame frame;
	struct site site;
	size_t used = 0;

	site_capture(&site, __builtin_return_address(0));
	for (int i = 0; i < site.native_count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s ",
		                         native_resolve(site.native[i], false, &frame) ? native_base_name(frame.path)
		                                                                       : "?");
	return text;
}

static void *run(void *data)
{
	struct site site;

	site_capture(&site, NULL);
	*(int *)data = site.python_count;
	return NULL;
}

/* From a thread that Python does not know. */
const char *probe_in_thread(void)
{
	static char text[32];
	pthread_t thread;
	int count = -1;

	if (pthread_create(&thread, NULL, run, &count))
		return "no thread";
	pthread_join(thread, NULL);
	snprintf(text, sizeof(text), "%d", count);
	return text;
}

/* For moments when Python cannot take an answer any more. */
void probe_to_stderr(void)
{
	fputs(probe(), stderr);
	fflush(stderr);
}

void probe_call(void (*callback)(void))
{
	callback();
}

/* Nanoseconds for one capture of the Python frames. */
double probe_cost(int times)
{
	struct timespec start, end;
	struct site site;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < times; i++)
		site_capture_python(&site);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / times;
}
