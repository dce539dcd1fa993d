/*
 * uthash for the shim. As it comes, it ends the process with exit(-1) when an insertion finds no memory; here the
 * element is then not in the table, which hash_took() tells, and the caller goes without.
 * A leaf: every folder of shim/ may include it, and none includes uthash.h.
 */
#ifndef CUCONST_HASH_H
#define CUCONST_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Right after HASH_ADD and HASH_REPLACE, under the same lock: is the element in? Its handle must be named hh. */
#define hash_took(element) ((element)->hh.tbl != NULL)

#endif
