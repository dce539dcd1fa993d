/*
 * SOFTGPU_ORDER: who runs the work of streams, and in which order.
 *
 * Ordinarily every stream has a thread. In the two ordered modes none has: work is run by the threads that call the
 * driver, one operation at a time, so that a program with one thread always takes the same course.
 */
#ifndef SOFTGPU_ORDER_H
#define SOFTGPU_ORDER_H

#include <stdbool.h>
#include <stddef.h>

enum sg_order {
	SG_ORDER_THREADS,
	SG_ORDER_SERIAL,  /* each operation before the call that makes it returns */
	SG_ORDER_SHUFFLE, /* when somebody waits or asks: whichever is ready, by a seeded choice */
};

/* Thread-safe. Read from the environment once; what cannot be read is said on stderr and means SG_ORDER_THREADS. */
enum sg_order sg_order(void);
/* With the lock held: the seeded choice among `count` operations, count > 0. */
size_t sg_order_choose(size_t count);

#endif
