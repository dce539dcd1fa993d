/*
 * Where bytes go: the log file and stderr. One write(2) a record, and whatever goes wrong stays in here: no signal
 * reaches the program, errno is kept, no descriptor but our own is closed, and nothing is written into a file that is
 * not ours. Thread-safe. Not callable from a signal handler.
 */
#ifndef CUCONST_REPORT_OUTPUT_H
#define CUCONST_REPORT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output_trouble {
	uint64_t log_lost;  /* records that did not reach the log */
	int log_errno;      /* why the last one did not */
	uint64_t text_lost; /* the same for stderr */
	int text_errno;
};

/*
 * Opens (creates, appends to) the log that `pattern` names (%h %p %r %t %%), relative to the folder of the first call.
 * Returns 0 or negative errno; *ret_path is the expanded name, for messages, valid until the next call.
 */
int output_log_open(const char *pattern, const char **ret_path);

/* One record with its newline. False when it was lost, or no log is open; a loss is counted. */
bool output_log(const char *text, size_t length);

bool output_log_is_open(void);

/* Text for people. False when it was lost; counted. */
bool output_stderr(const char *text, size_t length);

struct output_trouble output_trouble(void);

/* After fork in the child: the next output_log_open() opens the child's own log. Losses start at zero. */
void output_postfork_child(void);

/* Global rank of this process by its launcher's environment, -1 when there is none. */
int output_rank(void);

/* Host name, "?" when unknown. Static text after the first call. */
const char *output_host(void);

#endif
