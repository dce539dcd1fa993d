/*
 * Stacks that were unwound before. Unwinding takes about a microsecond a frame, and a program launches from the same
 * places again and again: a stack whose return addresses still lie where they lay is the same stack. Private to
 * report/. Thread-safe, no lock, no allocation but for a thread's first question.
 */
#ifndef CUCONST_REPORT_STACK_MEMO_H
#define CUCONST_REPORT_STACK_MEMO_H

#include <stdbool.h>
#include <stddef.h>
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

/*
 * The calling thread's own stack; both 0: not asked for yet, both 1: not known. What was kept of another stack at the same addresses may lead further up than this one goes, so
 * nothing is read above its end. Where that is nobody says of the stacks that coroutines run on.
 */
#pragma GCC visibility push(hidden)
extern __thread struct own_stack {
	uintptr_t start, end;
} own_stack;
#pragma GCC visibility pop
void stack_find_own(void);

/* How many bytes there are from `top`, the stack pointer, to the end of this thread's stack. 0: it runs on another one. */
static inline size_t stack_room(uintptr_t top)
{
	if (__builtin_expect(!own_stack.end, 0))
		stack_find_own();
	return top >= own_stack.start && top < own_stack.end ? own_stack.end - top : 0;
}

#endif
