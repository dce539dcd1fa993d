/*
 * Options, in the sanitizers' style: CUCONST_OPTIONS="mode=strict:log=FILE:exitcode=86". Read once; fixed afterwards.
 * An unknown or malformed option is said once on stderr, with what would be right, and the rest still counts.
 */
#ifndef CUCONST_VERDICT_OPTIONS_H
#define CUCONST_VERDICT_OPTIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum options_mode { MODE_LOG, MODE_DENY, MODE_STRICT };

/* Whose memory can have read-only twins. */
enum options_twins {
	TWINS_NATIVE, /* what the program maps by itself */
	TWINS_ALL,    /* also cuMemAlloc's, which is then served from mapped memory */
	TWINS_OFF
};

struct options {
	/* What each launch looks at comes first: one cache line. */
	bool enabled;     /* enabled=0: transparent */
	bool verify;      /* verify=0: judge calls only */
	bool store_paths; /* store_paths=0: kernels' code is not read, every kernel may write through every pointer */
	bool names;       /* names=0: no runtime and library hooks */
	enum options_mode mode; /* mode=log|deny|strict */
	uint64_t wait_ms;       /* wait=MS: after a verified launch wait up to MS for the result; 0 (default): never */
	enum options_twins twins; /* twins=native|all|off */
	const char *log;     /* log=PATH, with %h host, %p pid, %r rank, %t start time (seconds), %% ; NULL: no file */
	bool text;           /* text=0: nothing on stderr but errors of the shim itself */
	int exitcode;        /* exitcode=N (1..255), default 86: strict's status */
	bool abort_on_error; /* strict: abort() for a core instead of _exit */
	const char *suppressions; /* suppressions=FILE */
	uint64_t site_limit;      /* site_limit=N: full records per site, the rest is folded; default 10 */
	uint64_t exit_wait_ms;    /* exit_wait=MS: at exit, wait for checks in flight; default 2000 */
	const char *cache; /* cache=0|DIR: where results of store_paths are kept; NULL: the user's cache folder */
	bool color;        /* color=0|1; default: stderr is a terminal and NO_COLOR is not set */
	bool help;         /* help=1 prints all options on stderr */
};

/* Parses them; for options_get(). */
const struct options *options_read(void);

#pragma GCC visibility push(hidden)
extern _Atomic(const struct options *) options_known; /* NULL: not parsed yet */
#pragma GCC visibility pop

/* The options; parsed at the first call (secure_getenv). Thread-safe, lock-free after that. Never NULL. */
static inline const struct options *options_get(void)
{
	const struct options *known = atomic_load_explicit(&options_known, memory_order_acquire);
	return known ? known : options_read();
}

/* Parses `text` into *ret: for tests and the tool. Complaints go to `complain`. Returns the number of complaints. */
int options_parse(const char *text, struct options *ret, void (*complain)(const char *message, void *data), void *data);

/* The text of help=1: one option a line with its default and meaning. Static. */
const char *options_help(void);

const char *options_mode_name(enum options_mode mode);

#endif
