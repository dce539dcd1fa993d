#include "registry/lock.h"

#include <assert.h>

#ifndef NDEBUG
/*
 * One bit per rank that this thread holds. Initial-exec: the library is there from the start, and this never
 * allocates.
 */
static _Thread_local unsigned held __attribute__((tls_model("initial-exec")));

static void note_acquire(enum lock_rank rank)
{
	assert(held >> rank == 0 && "locks are taken by rising rank");
	held |= 1u << rank;
}

static void note_release(enum lock_rank rank)
{
	assert(held >> rank & 1u && "only a held lock is released");
	held &= ~(1u << rank);
}
#else
static void note_acquire(enum lock_rank rank)
{
}

static void note_release(enum lock_rank rank)
{
}
#endif

void lock_init(struct lock *lock, enum lock_rank rank)
{
	pthread_mutex_init(&lock->mutex, NULL);
	lock->rank = rank;
}

void lock_acquire(struct lock *lock)
{
	note_acquire(lock->rank);
	pthread_mutex_lock(&lock->mutex);
}

void lock_release(struct lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
	note_release(lock->rank);
}

void lock_reset_in_child(struct lock *lock)
{
	note_release(lock->rank);
	pthread_mutex_init(&lock->mutex, NULL);
}
