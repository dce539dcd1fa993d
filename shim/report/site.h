/*
 * Where a call came from: Python frames and native frames of the calling thread, taken only when a range was hit.
 *
 * A site is small, fixed-size and copied by value, so it travels with a pending check. Python file and function names
 * are interned copies (never freed: their number is bounded by the program's code), native frames are raw return
 * addresses, resolved to library + offset + symbol when a record is written. Nothing here takes the GIL, allocates
 * Python objects or looks at another thread. Callable from any thread, not from a signal handler.
 */
#ifndef CUCONST_REPORT_SITE_H
#define CUCONST_REPORT_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SITE_PYTHON_FRAMES 16
#define SITE_NATIVE_FRAMES 24

struct site_frame {
	const char *file;     /* interned, never NULL */
	const char *function; /* interned qualified name, never NULL */
	int line;             /* 0 when unknown */
};

struct site {
	struct site_frame python[SITE_PYTHON_FRAMES]; /* innermost first, library frames included; the user's own: site_user_frame() */
	int python_count;
	bool python_cut; /* there were more; the last one is then the innermost of the user's own, if the others are libraries' */
	void *native[SITE_NATIVE_FRAMES]; /* innermost first, without the shim's own frames */
	int native_count;
};

/* Copies what there is of it: a site is mostly empty, and large. */
static inline void site_copy(struct site *to, const struct site *from)
{
	memcpy(to->python, from->python, (size_t)from->python_count * sizeof from->python[0]);
	memcpy(to->native, from->native, (size_t)from->native_count * sizeof from->native[0]);
	to->python_count = from->python_count;
	to->python_cut = from->python_cut;
	to->native_count = from->native_count;
}

/*
 * Fills both parts. `caller` is the hook's return address: native frames start there. Leaves what it cannot find empty.
 */
void site_capture(struct site *ret_site, void *caller);

/* Python frames only (protect() called from Python). */
void site_capture_python(struct site *ret_site);

/*
 * The frame to name in one line: the first one outside installed libraries (site-packages, dist-packages, the standard
 * library, <frozen ...>); the innermost one when all are. NULL when there is no Python frame.
 */
const struct site_frame *site_user_frame(const struct site *site);

/*
 * File name (no folder) of the culprit library: the first native frame outside libcuda, libcudart, cuFFT, cuBLAS and
 * NVIDIA's other math libraries. Interned; "?" when unknown. Libraries with a private static cudart count as
 * themselves.
 */
const char *site_library(const struct site *site);

/*
 * What the program called of the CUDA runtime, "cudaLaunchKernel": the outermost of its exported functions where the
 * native frames begin. Interned; NULL: it called the driver, or by a runtime that exports nothing.
 */
const char *site_runtime(const struct site *site);

/* A copy that lives for ever; equal strings give equal pointers. NULL gives NULL. Thread-safe. */
const char *site_intern(const char *text);

/* Call once outside any hook: the first backtrace() loads libgcc_s and allocates. */
void site_prepare(void);

/*
 * How to find a symbol in what the process has loaded: the real dlsym(RTLD_DEFAULT, symbol), handed in by doors/, which
 * alone may call it. Until then, and where the interpreter is not found, sites have no Python frames. Call once, before
 * the first capture.
 */
void site_set_resolver(void *(*lookup)(const char *symbol));

#endif
