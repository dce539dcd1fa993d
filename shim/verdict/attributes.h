/* What pointer attributes say of protected memory. */
#ifndef CUCONST_VERDICT_ATTRIBUTES_H
#define CUCONST_VERDICT_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * May whoever returns to `caller` be told that this address can only be read? In deny and strict, for a protected address, unless the asker is its owner. A library that
 * asks before it writes can then know; log changes no answer.
 */
bool attributes_read_only(uint64_t address, void *caller);

#endif
