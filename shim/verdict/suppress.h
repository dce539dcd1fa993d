/*
 * Suppressions: one `kind:glob` a line, `#` comments. Kinds: kernel (raw or demangled name), library, api (driver, runtime or library call), label,
 * python (`file.py:function`, of any frame; a file without a
 * folder stands for that file in any folder). Never addresses. Matches are counted. Errors in the file name its line and what is wrong, once; the rest counts.
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

/* The same without counting. */
bool suppress_test(const struct report_event *event);

/* How often lines matched, in all. */
uint64_t suppress_count(void);

/*
 * Glob over a whole text: `*` any run, `?` one byte, `[a-z]` and `[!a-z]` one of a set, `\\` takes the next byte as it is. No locale, no allocation,
 * time at most length(glob) * length(text). A set that is not closed matches nothing.
 */
bool suppress_glob(const char *glob, const char *text);

/* After fork in the child: counts start at zero. */
void suppress_postfork_child(void);

#endif
