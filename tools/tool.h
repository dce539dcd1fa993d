/*
 * What all commands of the tool share: exit codes, messages, versions.
 *
 * The tool is an ordinary program of one thread. It knows the shim by its version (shim/cuconst.h), the status page
 * (shim/verdict/status.h) and the text of CUCONST_OPTIONS; it links no CUDA, and of the shim only shim/kernels/, which
 * `cuconst scan` asks.
 */
#ifndef CUCONST_TOOLS_TOOL_H
#define CUCONST_TOOLS_TOOL_H

#include <stdbool.h>
#include <stdio.h>

#define TOOL_EXITCODE 86 /* as the shim's default: options.h */

/* The tool's own exit codes, from sysexits.h, so that they do not look like a program's usual ones. */
enum tool_exit {
	TOOL_OK = 0,
	TOOL_USAGE = 64,       /* the command line is wrong */
	TOOL_NO_IMAGE = 65,    /* a file holds no device code, or some that could not be read */
	TOOL_NO_INPUT = 66,    /* a log, or the file to scan, could not be read */
	TOOL_NO_LIBRARY = 69,  /* libcuconst.so, or the Python module, was not found */
	TOOL_OS_ERROR = 71,    /* fork and the like failed */
	TOOL_CANNOT_RUN = 126, /* as shells: found, but not executable */
	TOOL_NOT_FOUND = 127,
};

/* One line on stderr: "cuconst: ...\n". */
void tool_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A message and the way to the help; returns TOOL_USAGE. `command` may be NULL. */
int tool_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* asprintf() that ends the tool when there is no memory. The caller frees. */
char *tool_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Commands: argv[0] is the command's name. Return the exit status. */
int run_command(int argc, char **argv);
int report_command(int argc, char **argv);
int scan_command(int argc, char **argv);

#endif
