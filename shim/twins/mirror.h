/*
 * The driver's part of a twin: second mappings of the memory in a space. Internal to twins/; every function wants the
 * space entered.
 */
#ifndef CUCONST_TWINS_MIRROR_H
#define CUCONST_TWINS_MIRROR_H

#include "shim/twins/space.h"

/* The driver's functions that twins need are all there. */
bool mirror_possible(void);

/*
 * Gives the space a twin, if it has none, and mirrors all that is readable and not mirrored yet. When all is, its
 * addresses get their twins in the table; when not, they lose them, and it is broken. A space whose twin could not be
 * made at all is as it was.
 */
enum twin_answer mirror_complete(struct space *space);

/* The access of [start, end) was changed: the twin's follows. */
enum twin_answer mirror_follow_access(struct space *space, uint64_t start, uint64_t end);

/* Unmaps the twins of all mappings inside [start, end), which are then leaving. */
void mirror_drop(struct space *space, uint64_t start, uint64_t end);

/* Ends a twin without mappings. Without a twin nothing happens. */
void mirror_end(struct space *space);

/* The device of the memory in it; -1 unknown. */
int mirror_device(const struct space *space);

CUresult mirror_last_error(void);

#endif
