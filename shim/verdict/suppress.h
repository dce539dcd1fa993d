/*
 * Suppressions: one `kind:glob` a line, `#` comments. Kinds: kernel (raw or demangled name), library, api (driver, runtime or library call), label,
 * python (`file.py:function`). Never addresses. Matches are counted. Errors in the file name its line and what is wrong, once; the rest counts.
 */
#ifndef CUCONST_VERDICT_SUPPRESS_H
#define CUCONST_VERDICT_SUPPRESS_H

#include <stdbool.h>
#include <stdint.h>

struct report_event;

/* Loads a file; complaints through `complain` (NULL: none). Returns 0 or negative errno (the file could not be read). */
int suppress_load(const char *path, void (*complain)(const char *message, void *data), void *data);

/* Does a line match? Counts it. Lock-free. */
bool suppress_match(const struct report_event *event);

/* How often lines matched, in all. */
uint64_t suppress_count(void);

#endif
