/* The store instructions of a kernel that a record names. Works on its arguments only. */
#ifndef CUCONST_REPORT_STORES_H
#define CUCONST_REPORT_STORES_H

#include <stddef.h>

#include "shim/report/report.h"

#define STORES_LISTED 8

/*
 * Stores that may go through the slot that `code` is about: those that have it as their only base; without any, those
 * with several bases or none, of which it may be one. Writes up to STORES_LISTED, returns how many there are.
 */
size_t stores_of(const struct report_code *code, const struct store_site **ret_stores);

/* Is the store's offset a line of PTX text, and not of machine code? PTX writes its instructions in small letters. */
static inline bool store_is_ptx(const struct store_site *store)
{
	return store->kind[0] >= 'a' && store->kind[0] <= 'z';
}

#endif
