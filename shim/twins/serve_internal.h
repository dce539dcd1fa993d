/* Between the files of serving. */
#ifndef CUCONST_TWINS_SERVE_INTERNAL_H
#define CUCONST_TWINS_SERVE_INTERNAL_H

#include "shim/twins/serve.h"
#include "shim/twins/serve_blocks.h"

extern struct serve_events serve_events;

/* Is serving on? One load. */
bool serve_on(void);

/* An allocation of the current context. False: it is the driver's to answer. */
bool serve_take(size_t bytes, CUdeviceptr *ret_start);

/*
 * The arena of the current context, made if there is none yet. False: no context, no memory, or the device cannot be
 * served.
 */
bool serve_view(struct view *ret_view);
/* The same for any context, for its peers' sake; also where its device cannot be served. */
bool serve_view_of(CUcontext context, struct view *ret_view);

/*
 * A mapping of its own, accessible as the view says. The driver's error otherwise; nothing is left behind. Without the
 * lock.
 */
CUresult serve_map(const struct view *view, size_t bytes, CUdeviceptr *ret_base,
                   CUmemGenericAllocationHandle *ret_handle);
/* Takes a mapping down, with its slab; not the struct. Without the lock; all work on it must be done. */
void serve_drop_mapping(const struct block *block);
/* The same for a list, and frees it. */
void serve_take_down(struct block *taken);

/*
 * Sets who may access a block; `revoked` loses it, -1: nobody. Without the lock; the block must be held by its users.
 */
CUresult serve_set_access(const struct block *block, const struct view *view, CUdevice revoked);
/* With the lock: work on the block begins and ends. */
void serve_hold(struct block *block);
void serve_let_go(struct block *block, struct block **taken);

/*
 * Waits for the context's work, as cuMemFree of plain memory does, and for that of its peers. Then what had been
 * retired before is given back: the piece at `own` (0: none), and what else waits in that context. The driver's error
 * otherwise.
 */
CUresult serve_synchronize(CUcontext context, CUdeviceptr own);

/* Does a block of ours hold the address, and what does the program know of it? */
struct serve_fact {
	bool inside; /* of a block: the driver's answers are about that */
	bool slab;   /* and the block is one */
	bool live;   /* of an allocation; the rest is set then */
	CUcontext context;
	CUdeviceptr start;
	struct piece piece;
};
struct serve_fact serve_fact(CUdeviceptr address);

/* May this thread make a call that a running capture forbids to others? True when no capture runs. */
bool serve_unrestricted(void);

#endif
