/* What `cuconst run` was asked for, and the environment that makes of it. */
#ifndef CUCONST_TOOLS_SETTINGS_H
#define CUCONST_TOOLS_SETTINGS_H

#include <stdbool.h>

struct settings {
	char *options;       /* the new CUCONST_OPTIONS: what was inherited, then the command line, which wins */
	const char *library; /* --library, NULL: look for it */
	int exitcode;        /* for a program that returned 0 and had violations */
	bool exports;        /* --protect=exports */
	bool verbose;
	char **program; /* its argv */
};

enum settings_answer { SETTINGS_RUN, SETTINGS_DONE /* help was printed */, SETTINGS_WRONG /* said on stderr */ };

/* Reads the command line of `run`; argv[0] is "run". *ret_settings is set for SETTINGS_RUN only; free its `options`. */
enum settings_answer settings_read(int argc, char **argv, struct settings *ret_settings);

/*
 * The value of the last `name=...` in a text of CUCONST_OPTIONS, as an int in 1..255; `fallback` when there is none or
 * it is no such number.
 */
int settings_number(const char *options, const char *name, int fallback);

/*
 * `text` put before or after a list joined by colons; the list may be NULL or empty. Nothing is added that is there
 * already. The caller frees.
 */
char *settings_prepend(const char *text, const char *list);
char *settings_append(const char *list, const char *text);

#endif
