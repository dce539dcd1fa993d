/*
 * Start, fork and end of the shim in one process.
 */
#ifndef CUCONST_VERDICT_LIFECYCLE_H
#define CUCONST_VERDICT_LIFECYCLE_H

#include <stdbool.h>

/* Called by doors/resolve.c, once, when the driver was found: options, help, fork handlers, exit handler. Makes no driver call, opens no file. */
void lifecycle_start(void);

/* Trouble of our own: from here on everything passes through. Says `why` once on stderr. */
void lifecycle_disable(const char *why);

/* A protection is about to be made: opens the log, starts verification. Idempotent, thread-safe. */
void lifecycle_arm(void);
/* Whether memory can be compared at all: wanted, and this driver has what that needs. */
bool lifecycle_can_verify(void);

/* strict: flush, last line, and _exit(exitcode) or abort(). Does not return. Any thread. */
void lifecycle_stop(void) __attribute__((noreturn));

#endif
