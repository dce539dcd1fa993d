/*
 * Mutexes with a rank, and the one order in which they may be taken. A thread takes locks by rising rank only, so no
 * two threads can wait for each other. Debug builds (NDEBUG not set) check that and abort on a wrong order.
 *
 * A mutex under which no other one is taken needs no rank and may be a plain pthread_mutex_t that says so.
 */
#ifndef CUCONST_REGISTRY_LOCK_H
#define CUCONST_REGISTRY_LOCK_H

#include <pthread.h>

/* Lowest first. A lock may be taken while locks of lower rank are held, never of the same or of a higher one. */
enum lock_rank {
	LOCK_TWINS,      /* twins/space.c: reserved ranges and their mappings */
	LOCK_SERVE,      /* twins/serve_blocks.c: served memory */
	LOCK_NEIGHBOURS, /* verdict/neighbours.c: which allocations hold ranges */
	LOCK_REGISTRY,   /* registry.c: writers */
	LOCK_REPORT,     /* report/report.c: opening the outputs */
	LOCK_OUTPUT,     /* report/output.c, report/fold.c: the log's file; the table of sites */
};

struct lock {
	pthread_mutex_t mutex;
	enum lock_rank rank;
};

/* Static locks. */
#define LOCK_INITIALIZER(wanted)                                                                                       \
	{                                                                                                              \
		.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = (wanted)                                                   \
	}

void lock_init(struct lock *lock, enum lock_rank rank);

void lock_acquire(struct lock *lock);
void lock_release(struct lock *lock);

/*
 * In the child of a fork, by the thread that holds the lock since before it: makes the lock new and free. Not
 * lock_release(), because threads that waited for it in the parent do not exist here.
 */
void lock_reset_in_child(struct lock *lock);

#endif
