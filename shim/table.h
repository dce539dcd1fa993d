/*
 * uthash, which by default ends the process when memory runs out: the process is somebody else's. An element that could not be added has
 * `hh.tbl` NULL. A leaf: every folder of shim/ may include it, and none includes uthash.h itself.
 */
#ifndef CUCONST_TABLE_H
#define CUCONST_TABLE_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
