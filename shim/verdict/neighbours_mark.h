/*
 * Where a launch that stores beside a range, or may, is noted in its neighbourhood: so that the next one of the same kernel through the same parameter finds its two lines at once.
 *
 * A mark may outlive what it is of: the memory stays what it is (neighbours.c uses it again), and who holds one looks whose places they are. Thread-safe, no lock.
 */
#ifndef CUCONST_VERDICT_NEIGHBOURS_MARK_H
#define CUCONST_VERDICT_NEIGHBOURS_MARK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One kernel that stores through one slot. The key says both; of those that share a place the one that was launched last has it. Written in this order, so that who looks whether the key is still the same has read all of one. */
struct writer {
	_Atomic uint64_t key; /* 0: free */
	_Atomic uint64_t last, value;
	_Atomic(const char *) api;
};

/* How often it was launched. One that takes another's place goes on with its number: else many that take turns would each be at its first launch, always. */
struct tally {
	_Atomic uint64_t key, count;
};

struct neighbours_mark {
	struct writer *writer; /* NULL: none */
	struct tally *tally;
	uint64_t key; /* of the writer; the tally's may be its complement */
};

static inline bool neighbours_is_due(uint64_t count)
{
	return !(count & (count - 1));
}

/* Is its number still kept there, and is the next launch none that is to be checked? One question for all: mostly the answer is yes. */
static inline bool neighbours_mark_waits(const struct neighbours_mark *mark)
{
	uint64_t key = atomic_load_explicit(&mark->tally->key, memory_order_relaxed) ^ mark->key;
	uint64_t count = atomic_load_explicit(&mark->tally->count, memory_order_relaxed);
	/* The same, or the complement: no bit, or all. */
	return (key + 1 <= 1) & !neighbours_is_due(count + 1);
}

static inline void writer_note(struct writer *writer, uint64_t key, uint64_t value, uint64_t time, const char *api)
{
	atomic_store_explicit(&writer->key, key, memory_order_relaxed);
	atomic_store_explicit(&writer->value, value, memory_order_release);
	atomic_store_explicit(&writer->api, api, memory_order_release);
	atomic_store_explicit(&writer->last, time, memory_order_release);
}

/*
 * Notes a launch that was not due. Where other threads' launches came between, and it is by now, it leaves its number to the next one. A number that two of them count at once is lost:
 * a check comes a launch later, or once more, and no launch needs a locked instruction for it.
 */
static inline void neighbours_mark_note(const struct neighbours_mark *mark, uint64_t value, uint64_t time, const char *api)
{
	uint64_t count = atomic_load_explicit(&mark->tally->count, memory_order_relaxed);
	/* Written in any case: no jump stands for it. */
	atomic_store_explicit(&mark->tally->count, count + !neighbours_is_due(count + 1), memory_order_relaxed);
	writer_note(mark->writer, mark->key, value, time, api);
}

#endif
