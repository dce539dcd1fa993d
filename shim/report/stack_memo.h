/*
 * Stacks that were unwound before. Unwinding takes about a microsecond a frame, and a program launches from the same
 * places again and again: a stack whose return addresses still lie where they lay is the same stack. Private to
 * report/. Thread-safe, no lock, no allocation.
 */
#ifndef CUCONST_REPORT_STACK_MEMO_H
#define CUCONST_REPORT_STACK_MEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/report/site.h"

/* One unwound stack, innermost first: return addresses, and where on the stack each of them lies. */
struct stack_shape {
	uintptr_t caller, top; /* the key: frame[0], and the stack pointer of whoever unwinds... */
	unsigned way; /* ... and by which way he was called: it says how far that is from the hook's frame, and so which of two equal return addresses is frame[0] */
	int count;
	uintptr_t frame[SITE_NATIVE_FRAMES];
	uint32_t slot[SITE_NATIVE_FRAMES]; /* above `top` */
};

/* True: the calling thread's stack is the one kept for this caller, top and way. Else *ret_shape says nothing. */
bool stack_memo_find(uintptr_t caller, uintptr_t top, unsigned way, struct stack_shape *ret_shape);

/* A word of the calling thread's stack. It belongs to others: their variables lie beside it. */
__attribute__((no_sanitize("address", "thread"))) static inline uintptr_t stack_word(uintptr_t at)
{
	return *(const volatile uintptr_t *)at;
}

void stack_memo_keep(const struct stack_shape *shape);

#endif
