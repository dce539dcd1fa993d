/*
 * Copies and sets of one piece of memory that concern nothing: neither a protected range nor, where memory is served, the end of an allocation. They are told
 * by a few cache lines, so that the hook hands them to the driver without a `struct call`. README.md says what the long way would have done for them.
 */
#ifndef CUCONST_EFFECTS_WRITES_H
#define CUCONST_EFFECTS_WRITES_H

#include <stdbool.h>
#include <stdint.h>

enum write_how {
	WRITE_UNKNOWN, /* it may concern something: it goes the long way, and nothing is done yet */
	WRITE_PASSES,  /* all is done, counting too */
	WRITE_IS_WATCHED, /* all is done before the driver's call, and this thread is inside a hook; judge_write_again() follows */
};

/*
 * Does a write of `bytes` from `address` on concern nothing, where hook_passes() said no? `blocks`: struct entrypoint has it; such a call passes, or is
 * WRITE_UNKNOWN. Thread-safe; no lock.
 */
enum write_how write_asks(uint64_t address, uint64_t bytes, bool blocks);

#endif
