/*
 * Lines of a file that may be anything: no line is longer in memory than LINES_MAX, and it is known whether the last
 * one was complete.
 */
#ifndef CUCONST_TOOLS_LINES_H
#define CUCONST_TOOLS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define LINES_MAX (1u << 20) /* bytes; the shim's records are far shorter */

struct lines {
	FILE *file;
	char *text; /* the current line without its newline, LINES_MAX + 1 bytes, not NUL-terminated */
	size_t length;
	unsigned long number; /* of the current line, from 1 */
	bool too_long;        /* the current line was longer than LINES_MAX: its end was skipped */
	bool cut;             /* the current line is the last and has no newline: its writer may have been killed */
};

/*
 * The next line into `lines`. False at the end of the file or on a read error (ferror()). `lines->text` must point to
 * LINES_MAX + 1 bytes.
 */
bool lines_next(struct lines *lines);

#endif
