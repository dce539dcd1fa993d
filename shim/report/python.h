/*
 * The calling thread's own Python frames, read from the interpreter's memory: no GIL, no Python object made, no
 * exception, no other thread's state.
 *
 * A thread's frames cannot be popped while it is in a hook, whether it holds the GIL or not, so reading them needs no
 * lock. Callable from any thread.
 */
#ifndef CUCONST_REPORT_PYTHON_H
#define CUCONST_REPORT_PYTHON_H

#include <stdbool.h>

#include "shim/report/site.h"

/*
 * Innermost first. Returns how many were written (0: this thread runs no Python); *ret_cut: there were more. A deep
 * stack whose first `max` frames all belong to libraries (is_library) keeps the innermost frame that does not, in the
 * last place: it is the line to name.
 */
int python_capture(struct site_frame *out, int max, bool (*is_library)(const char *file), bool *ret_cut);

/* Has a capture met an interpreter whose frames can be read? Until then only python_capture() says whether there is one by now. */
bool python_known(void);

/* Is there one by now, of which no capture knew? A capture asks at most every millisecond or two, this each time. */
bool python_appeared(void);

#endif
