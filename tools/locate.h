/* Where the tool's companions are: the shim, the Python module, the program that is to be run. */
#ifndef CUCONST_TOOLS_LOCATE_H
#define CUCONST_TOOLS_LOCATE_H

#include <stdbool.h>
#include <stdio.h>

/*
 * The absolute path of libcuconst.so: `wanted` (--library, may be NULL), else $CUCONST_LIBRARY, else the places of an
 * installation and of a build folder, seen from the tool's own file. A path that was asked for is never replaced by
 * another one. Returns a string the caller frees, or NULL after saying on `err` where it looked and what was wrong with
 * each place.
 */
char *locate_library(const char *wanted, FILE *err);

/*
 * The absolute path of the folder that holds the Python package `cuconst`: $CUCONST_PYTHON, else as above. NULL when
 * there is none; with `err` not NULL it says where it looked.
 */
char *locate_python(FILE *err);

/* The file execvp(name) would start: a string the caller frees; NULL and errno when there is none. */
char *locate_program(const char *name);

/* An absolute path for `path`, without resolving links, for a program that may change its folder. The caller frees. */
char *locate_absolute(const char *path);

#endif
