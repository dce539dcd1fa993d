/* cuconst run: preloads the shim into a program nobody changed, and tells afterwards what came of it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/launch.h"
#include "tools/locate.h"
#include "tools/page.h"
#include "tools/settings.h"
#include "tools/target.h"
#include "tools/tool.h"
#include "tools/watch.h"

struct run {
	struct settings settings;
	struct page page;
	bool cuda_seen; /* libcuda was mapped by the program when it was looked at */
};

static int set_preload(const char *library)
{
	char *list;

	/* The loader splits LD_PRELOAD at both and knows no quoting. */
	if (strpbrk(library, ": ")) {
		tool_say("%s: cannot be preloaded, because its path holds a colon or a space; use a link to it without",
		         library);
		return TOOL_NO_LIBRARY;
	}
	list = settings_prepend(library, getenv("LD_PRELOAD"));
	setenv("LD_PRELOAD", list, 1);
	free(list);
	return 0;
}

/*
 * The module's folder comes last, so that a program's own one wins; the start-up folder first, because Python takes the
 * first sitecustomize it finds.
 */
static int set_python(const struct run *run)
{
	char *folder = locate_python(run->settings.exports ? stderr : NULL);
	char *list;

	if (!folder)
		return run->settings.exports ? TOOL_NO_LIBRARY : 0;
	if (strchr(folder, ':')) {
		tool_say("%s: cannot be added to PYTHONPATH, because it holds a colon", folder);
		free(folder);
		return run->settings.exports ? TOOL_NO_LIBRARY : 0;
	}
	list = settings_append(getenv("PYTHONPATH"), folder);
	if (run->settings.exports) {
		char *startup = tool_format("%s/cuconst/startup", folder);
		char *both = settings_prepend(startup, list);

		setenv("CUCONST_PROTECT", "exports", 1);
		free(startup);
		free(list);
		list = both;
	}
	setenv("PYTHONPATH", list, 1);
	free(list);
	free(folder);
	return 0;
}

static void make_page(struct run *run)
{
	int code = page_create(&run->page);

	if (code < 0) {
		unsetenv("CUCONST_STATUS");
		tool_say("no private folder could be made in $TMPDIR or /tmp (%s): violations will be recorded, but not counted for the exit code",
		         strerror(-code));
		return;
	}
	setenv("CUCONST_STATUS", run->page.status, 1);
	setenv("CUCONST_NOTES", run->page.notes, 1);
}

static void check_target(const char *program)
{
	char *path = locate_program(program);
	const char *reason = path ? target_reason(target_check(path)) : NULL;

	if (reason)
		tool_say("warning: %s is %s. It runs unguarded", path, reason);
	free(path);
}

static void watch(pid_t child, void *data)
{
	struct run *run = data;

	if (run->cuda_seen || !run->page.shared || run->page.shared->processes > 0)
		return;
	run->cuda_seen = watch_maps_cuda(child);
}

/* What went wrong with guarding; nothing when all is well. */
static void warn(const struct run *run)
{
	const struct status_page *page = run->page.shared;

	if (page->disabled > 0)
		tool_say("warning: the guard could not start in %" PRIu64
		         " process%s, which ran unguarded and said why on stderr",
		         page->disabled, page->disabled == 1 ? "" : "es");
	if (page->processes == 0 && page->disabled == 0 && run->cuda_seen)
		tool_say("warning: no hook was reached, although %s loaded libcuda: nothing was guarded in this run",
		         run->settings.program[0]);
	if (run->settings.exports && page->processes > 0 && page_notes(&run->page, PAGE_NOTE_STARTED) == 0)
		tool_say("warning: --protect=exports: no Python process loaded the start-up module (was it started with -I, -E or -S?)");
}

/* --verbose: what was seen. */
static void tell(const struct run *run)
{
	const struct status_page *page = run->page.shared;

	if (page->processes == 0 && !run->cuda_seen)
		tool_say("%s did not use CUDA", run->settings.program[0]);
	else
		tool_say("%" PRIu32 " process%s used CUDA, %" PRIu64 " launches, %" PRIu64 " violations, %" PRIu64
		         " denied, %" PRIu64 " inconclusive",
		         page->processes, page->processes == 1 ? "" : "es", page->launches, page->violations,
		         page->denied, page->inconclusive);
	if (run->settings.exports) {
		uint64_t objects = page_notes(&run->page, PAGE_NOTE_EXPORTED);
		uint64_t processes = page_notes(&run->page, PAGE_NOTE_STARTED);

		tool_say("%" PRIu64 " exported object%s protected, in %" PRIu64 " Python process%s", objects,
		         objects == 1 ? " was" : "s were", processes, processes == 1 ? "" : "es");
	}
}

static int cannot_run(const char *program, int error)
{
	bool path = strchr(program, '/');

	if (error != ENOENT)
		tool_say("%s: %s", program, strerror(error));
	else if (!path && access(program, F_OK) == 0)
		tool_say("%s: not found in PATH: for the file in this folder say ./%s", program, program);
	else
		tool_say("%s: not found%s", program, path ? " (or its interpreter is not there)" : " in PATH");
	return error == ENOENT ? TOOL_NOT_FOUND : TOOL_CANNOT_RUN;
}

/* Returns the exit code, or ends the process as the program ended. */
static int run_program(struct run *run)
{
	struct launch_end end;
	uint64_t violations;
	int code;

	check_target(run->settings.program[0]);
	make_page(run);
	code = launch_wait(run->settings.program, watch, run, &end);
	if (code < 0) {
		tool_say("no process could be made: %s", strerror(-code));
		page_destroy(&run->page);
		return TOOL_OS_ERROR;
	}
	if (end.started == 0 && run->page.shared) {
		warn(run);
		if (run->settings.verbose)
			tell(run);
	}
	violations = run->page.shared ? run->page.shared->violations : 0;
	page_destroy(&run->page);
	if (end.started != 0)
		return cannot_run(run->settings.program[0], end.started);
	if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0 && violations > 0)
		return run->settings.exitcode;
	launch_end_alike(end.status);
}

int run_command(int argc, char **argv)
{
	struct run run = {0};
	char *library;
	int code;

	switch (settings_read(argc, argv, &run.settings)) {
	case SETTINGS_DONE:
		return TOOL_OK;
	case SETTINGS_WRONG:
		return TOOL_USAGE;
	case SETTINGS_RUN:
		break;
	}
	library = locate_library(run.settings.library, stderr);
	code = library ? set_preload(library) : TOOL_NO_LIBRARY;
	if (code == 0)
		code = set_python(&run);
	if (code == 0) {
		if (run.settings.verbose)
			tool_say("preloads %s", library);
		if (*run.settings.options)
			setenv("CUCONST_OPTIONS", run.settings.options, 1);
		code = run_program(&run);
	}
	free(run.settings.options);
	free(library);
	return code;
}
