/*
 * Places of calls that are kept for a while, and told by number: most launches come from a place that is here already, which is cheaper to see than to write down anew.
 * Thread-safe, no lock, no allocation but for the start; `errno` is kept.
 */
#ifndef CUCONST_REPORT_SITE_RING_H
#define CUCONST_REPORT_SITE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/report/site.h"

/* A number that was given holds until at least so many more places have been written. One is written for a call at most. */
#define SITE_RING_LASTS 1024

/* Without memory nothing is kept. Again and again is right, too. */
void site_ring_start(void);

/* The number of this place. 0: it is not kept. */
uint64_t site_ring_put(const struct site *site);

/*
 * The same of the place that this thread is at: `caller` is the hook's return address, where native frames start. Of a place that was met on the same stack nothing is copied,
 * and nothing unwound. `way`, not 0: the same one means that this is as far from the frame of the hook as ever.
 */
uint64_t site_ring_here(void *caller, unsigned way);

/* False: not there any more, or number 0; then *ret_site is empty. */
bool site_ring_get(uint64_t number, struct site *ret_site);

#endif
