#include "shim/hook_state.h"

#include <pthread.h>

#define SLOTS 1024   /* threads alive at once that count without sharing */
#define SLOTS_NEAR 4 /* that lie in the page of all that a launch looks at; most programs launch in two threads */

__thread struct hook_thread hook_thread __attribute__((tls_model("initial-exec")));
struct hook_line hook_line HOOK_DATA;
_Atomic bool hook_used HOOK_DATA;
_Atomic bool hook_disabled HOOK_DATA;

struct hook_counts hook_counts_shared __attribute__((aligned(64)));
static struct slot {
	struct hook_counts counts;
} __attribute__((aligned(64))) slots_far[SLOTS - SLOTS_NEAR],
	slots_near[SLOTS_NEAR] HOOK_DATA __attribute__((aligned(4096)));
static _Atomic size_t slots_used; /* all that were ever taken lie below */
static pthread_key_t slot_key;
static _Atomic int key_state; /* 0 none, 1 being made, 2 ready, 3 cannot be made */

static struct hook_counts *slot(size_t nth)
{
	return nth < SLOTS_NEAR ? &slots_near[nth].counts : &slots_far[nth - SLOTS_NEAR].counts;
}

static void slot_leave(void *counts)
{
	/* A hook in a later destructor of this thread claims another one. */
	hook_thread.counts = NULL;
	atomic_store_explicit(&((struct hook_counts *)counts)->taken, false, memory_order_release);
}

static bool key_ready(void)
{
	int state = atomic_load_explicit(&key_state, memory_order_acquire);
	if (state == 0 && atomic_compare_exchange_strong(&key_state, &state, 1)) {
		state = pthread_key_create(&slot_key, slot_leave) ? 3 : 2;
		atomic_store_explicit(&key_state, state, memory_order_release);
	}
	return state == 2;
}

struct hook_counts *hook_counts_claim(void)
{
	if (key_ready()) {
		for (size_t i = 0; i < SLOTS; i++) {
			struct hook_counts *counts = slot(i);
			bool taken = false;
			if (!atomic_load_explicit(&counts->taken, memory_order_relaxed) &&
			    atomic_compare_exchange_strong(&counts->taken, &taken, true)) {
				size_t used = atomic_load(&slots_used);
				while (used <= i && !atomic_compare_exchange_weak(&slots_used, &used, i + 1))
					;
				pthread_setspecific(slot_key, counts);
				hook_thread.counts = counts;
				return counts;
			}
		}
	}
	hook_thread.counts = &hook_counts_shared;
	return hook_thread.counts;
}

uint64_t hook_counted(enum hook_counter counter)
{
	uint64_t sum = atomic_load_explicit(&hook_counts_shared.of[counter], memory_order_relaxed);
	for (size_t i = 0, used = atomic_load(&slots_used); i < used; i++)
		sum += atomic_load_explicit(&slot(i)->of[counter], memory_order_relaxed);
	return sum;
}

void hook_counts_reset(void)
{
	for (size_t c = 0; c < COUNT_KINDS; c++) {
		atomic_store_explicit(&hook_counts_shared.of[c], 0, memory_order_relaxed);
		for (size_t i = 0; i < SLOTS; i++)
			atomic_store_explicit(&slot(i)->of[c], 0, memory_order_relaxed);
	}
}
