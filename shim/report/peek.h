/*
 * Memory of this process that may not be there, or may go while it is read: an answer instead of a SIGSEGV. A leaf;
 * thread-safe; keeps errno.
 */
#ifndef CUCONST_REPORT_PEEK_H
#define CUCONST_REPORT_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies [at, at + size) to `out`. False: not all of it could be read, `out` is undefined. One system call. */
bool peek(uintptr_t at, void *out, size_t size);

#endif
