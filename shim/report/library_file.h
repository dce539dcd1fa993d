/*
 * Whose code is this Python file: a library's, or the user's own? One rule for records and for `cuconst report`. A
 * leaf, libc only: looks at the text of the name, opens nothing.
 */
#ifndef CUCONST_REPORT_LIBRARY_FILE_H
#define CUCONST_REPORT_LIBRARY_FILE_H

#include <stdbool.h>
#include <string.h>

/* ".../lib/python3.12/...", whatever the prefix, and the zipped library. */
static inline bool library_file_standard(const char *file)
{
	const char *at = file;

	while ((at = strstr(at, "/lib/python3"))) {
		at += strlen("/lib/python3");
		at += strspn(at, "0123456789");
		if (!strncmp(at, ".zip/", 5))
			return true;
		at += *at == '.';
		at += strspn(at, "0123456789");
		at += *at == 't'; /* free-threaded builds have folders of their own */
		if (*at == '/')
			return true;
	}
	return false;
}

static inline bool library_file(const char *file)
{
	return strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") || strstr(file, "/python/cuconst/") ||
	       !strncmp(file, "<frozen ", 8) || !strncmp(file, "<__array_function__", 19) || library_file_standard(file);
}

#endif
