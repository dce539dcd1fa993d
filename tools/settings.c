#include "tools/settings.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/locate.h"
#include "tools/tool.h"

static const char help[] =
	"usage: cuconst run [options] -- PROGRAM [argument ...]\n"
	"\n"
	"Starts PROGRAM, unchanged, with libcuconst.so preloaded. Exits as PROGRAM does; with 86 if PROGRAM\n"
	"returned 0 and something wrote into protected memory.\n"
	"\n"
	"  --mode log|deny|strict  log (default): record and let pass; deny: refuse what can be refused before\n"
	"                          it is done; strict: end the program at the first violation\n"
	"  --log FILE              write records to FILE as JSON lines; %h host, %p process, %r rank, %t start\n"
	"                          time, %% a percent sign. `cuconst report FILE` summarises it\n"
	"  --exitcode N            1 to 255, instead of 86\n"
	"  --suppressions FILE     one `kind:glob` a line: kernel, library, api, label, python\n"
	"  --protect=exports       protect what Python programs hand out read-only: JAX arrays that are exported,\n"
	"                          and every object whose __cuda_array_interface__ says read-only\n"
	"  --option NAME=VALUE     any other option of CUCONST_OPTIONS; may be repeated. help=1 lists them all when\n"
	"                          PROGRAM makes its first CUDA call\n"
	"  --library PATH          the libcuconst.so to preload\n"
	"  -v, --verbose           say on stderr what was preloaded and what was seen\n"
	"  -h, --help              this text\n"
	"\n"
	"Environment: CUCONST_OPTIONS is kept and comes before the command line, which wins. CUCONST_LIBRARY is\n"
	"used without --library, CUCONST_PYTHON is the folder of the Python module, TMPDIR holds a small private\n"
	"folder while the program runs. LD_PRELOAD and PYTHONPATH are kept and added to.\n"
	"\n"
	"Exit codes of its own: 64 wrong command line, 69 library not found, 71 no process could be made,\n"
	"126 PROGRAM cannot be executed, 127 PROGRAM was not found.\n";

enum { OPT_MODE = 256, OPT_LOG, OPT_EXITCODE, OPT_SUPPRESSIONS, OPT_PROTECT, OPT_OPTION, OPT_LIBRARY };

static const struct option long_options[] = {
	{"mode", required_argument, NULL, OPT_MODE},
	{"log", required_argument, NULL, OPT_LOG},
	{"exitcode", required_argument, NULL, OPT_EXITCODE},
	{"suppressions", required_argument, NULL, OPT_SUPPRESSIONS},
	{"protect", required_argument, NULL, OPT_PROTECT},
	{"option", required_argument, NULL, OPT_OPTION},
	{"library", required_argument, NULL, OPT_LIBRARY},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static bool list_holds(const char *list, const char *text)
{
	size_t length = strlen(text);

	for (const char *at = list;; at++) {
		size_t item = strcspn(at, ":");

		if (item == length && strncmp(at, text, length) == 0)
			return true;
		at += item;
		if (!*at)
			return false;
	}
}

char *settings_prepend(const char *text, const char *list)
{
	if (!list || !*list)
		return tool_format("%s", text);
	return list_holds(list, text) ? tool_format("%s", list) : tool_format("%s:%s", text, list);
}

char *settings_append(const char *list, const char *text)
{
	if (!list || !*list)
		return tool_format("%s", text);
	return list_holds(list, text) ? tool_format("%s", list) : tool_format("%s:%s", list, text);
}

/* A whole number in 1..255, or -1. */
static int exit_number(const char *text, size_t length)
{
	int value = 0;

	if (length == 0 || length > 3)
		return -1;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = value * 10 + (text[i] - '0');
	}
	return value >= 1 && value <= 255 ? value : -1;
}

int settings_number(const char *options, const char *name, int fallback)
{
	size_t length = strlen(name);

	for (const char *at = options; at && *at;) {
		size_t item = strcspn(at, ":");

		if (item > length && strncmp(at, name, length) == 0 && at[length] == '=') {
			int value = exit_number(at + length + 1, item - length - 1);

			if (value > 0)
				fallback = value;
		}
		at += item;
		at += *at == ':';
	}
	return fallback;
}

/* Options are joined by colons: unlike in LD_PRELOAD's list a later one of the same name wins, so all are kept. */
static void add_option(struct settings *settings, const char *name, const char *value)
{
	char *joined = settings->options && *settings->options ? tool_format("%s:%s=%s", settings->options, name, value)
	                                                       : tool_format("%s=%s", name, value);

	free(settings->options);
	settings->options = joined;
}

/* The program may change its folder before the shim opens the file, so the path is made absolute. */
static int add_path(struct settings *settings, const char *name, const char *path)
{
	char *absolute;

	if (!*path)
		return tool_usage("run", "--%s: the file name is empty", name);
	absolute = locate_absolute(path);
	if (strchr(absolute, ':')) {
		tool_usage("run", "--%s: %s: a path with a colon cannot be passed on in CUCONST_OPTIONS", name, absolute);
		free(absolute);
		return TOOL_USAGE;
	}
	add_option(settings, name, absolute);
	free(absolute);
	return 0;
}

static int add_named(struct settings *settings, const char *text)
{
	size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyz_");

	if (name == 0 || text[name] != '=' || strchr(text, ':'))
		return tool_usage("run", "--option %s: must be NAME=VALUE, without a colon", text);
	char *copy = tool_format("%.*s", (int)name, text);
	add_option(settings, copy, text + name + 1);
	free(copy);
	return 0;
}

/* One option of the command line: 0, or TOOL_USAGE after saying what is wrong with it. */
static int take(struct settings *settings, int option, const char *value)
{
	switch (option) {
	case OPT_MODE:
		if (strcmp(value, "log") != 0 && strcmp(value, "deny") != 0 && strcmp(value, "strict") != 0)
			return tool_usage("run", "--mode %s: must be log, deny or strict", value);
		add_option(settings, "mode", value);
		return 0;
	case OPT_LOG:
		return add_path(settings, "log", value);
	case OPT_EXITCODE:
		if (exit_number(value, strlen(value)) < 0)
			return tool_usage("run", "--exitcode %s: must be a number from 1 to 255", value);
		add_option(settings, "exitcode", value);
		return 0;
	case OPT_SUPPRESSIONS:
		if (access(value, R_OK) != 0)
			return tool_usage("run", "--suppressions: %s: %s", value, strerror(errno));
		return add_path(settings, "suppressions", value);
	case OPT_PROTECT:
		if (strcmp(value, "exports") != 0)
			return tool_usage("run", "--protect=%s: only --protect=exports is known", value);
		settings->exports = true;
		return 0;
	case OPT_OPTION:
		return add_named(settings, value);
	case OPT_LIBRARY:
		settings->library = value;
		return 0;
	case 'v':
		settings->verbose = true;
		return 0;
	}
	return TOOL_USAGE;
}

/* What getopt() stopped at, for a message: it keeps no text of its own for long options. */
static int complain(int argc, char **argv, int answer)
{
	const char *text = optind > 0 && optind <= argc ? argv[optind - 1] : "";

	if (answer == ':')
		return tool_usage("run", "%s: needs a value", text);
	if (optopt >= OPT_MODE || (optopt && strncmp(text, "--", 2) == 0))
		return tool_usage("run", "%s: takes no value", text);
	return tool_usage("run", "%s: unknown or ambiguous option", text);
}

enum settings_answer settings_read(int argc, char **argv, struct settings *ret_settings)
{
	const char *inherited = getenv("CUCONST_OPTIONS");
	struct settings settings = {.options = tool_format("%s", inherited ? inherited : "")};
	int answer;

	opterr = 0;
	optind = 0;
	while ((answer = getopt_long(argc, argv, "+:hv", long_options, NULL)) != -1) {
		bool wrong = answer == '?' || answer == ':';

		if (answer == 'h') {
			fputs(help, stdout);
			free(settings.options);
			return SETTINGS_DONE;
		}
		if ((wrong ? complain(argc, argv, answer) : take(&settings, answer, optarg)) != 0) {
			free(settings.options);
			return SETTINGS_WRONG;
		}
	}
	if (optind >= argc) {
		free(settings.options);
		tool_usage("run", "no program to run: cuconst run [options] -- PROGRAM [argument ...]");
		return SETTINGS_WRONG;
	}
	settings.program = argv + optind;
	settings.exitcode = settings_number(settings.options, "exitcode", TOOL_EXITCODE);
	*ret_settings = settings;
	return SETTINGS_RUN;
}
