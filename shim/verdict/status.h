/*
 * The status page: a small file shared with `cuconst run`, which made it and passed its path in CUCONST_STATUS. The shim maps it at its first
 * CUDA call and counts there; the launcher reads it after the program ended. Without it everything goes to a private page.
 */
#ifndef CUCONST_VERDICT_STATUS_H
#define CUCONST_VERDICT_STATUS_H

#include <stdatomic.h>
#include <stdint.h>

#define STATUS_MAGIC 0x63756373u /* "cucs" */
#define STATUS_VERSION 1u

struct status_page {
	uint32_t magic, version;
	_Atomic uint32_t processes;  /* that reached a CUDA entry point through a door */
	_Atomic uint32_t logs;       /* that opened a log */
	_Atomic uint64_t violations; /* not suppressed, in all processes */
	_Atomic uint64_t denied;
	_Atomic uint64_t inconclusive;
	_Atomic uint64_t launches; /* added at exit */
	_Atomic uint64_t disabled; /* processes in which the shim could not start and was transparent */
};

/* The page; never NULL. Mapped at the first call. */
struct status_page *status_page(void);

#endif
