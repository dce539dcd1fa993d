#include "shim/report/site_ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#include "shim/hook_state.h"
#include "shim/report/native.h"
#include "shim/report/python.h"
#include "shim/report/stack_memo.h"

#define SITES 2048 /* a power of two */
#define HINTS 1024
#define HINTS_BITS 10
#define TRIES 6 /* places with the same hash that are looked at */
_Static_assert(SITES >= 2 * SITE_RING_LASTS, "what is young enough to be given again lasts as long as what is new");

struct kept_frame {
	_Atomic(const char *) file, function;
	_Atomic int line;
};

/*
 * One place. Guarded by `turn`, which is twice its number when it is whole, and odd while it is written; every member is atomic, so a torn read is seen, not undefined.
 * What is read is used only after the second look at the turn.
 */
struct kept {
	_Atomic uint64_t turn;
	_Atomic uint64_t before; /* the number that its hint had */
	_Atomic uintptr_t top; /* where the stack of site_ring_here() was; 0: its frames' places on it are not known */
	_Atomic unsigned way;  /* to it */
	_Atomic uint32_t counts;                   /* native frames, Python frames, python_cut: a byte each */
	_Atomic uint16_t slot[SITE_NATIVE_FRAMES]; /* where each return address lies, in words above `top` */
	_Atomic uintptr_t native[SITE_NATIVE_FRAMES];
	struct kept_frame python[SITE_PYTHON_FRAMES];
} __attribute__((aligned(64)));

struct ring {
	struct kept sites[SITES];
	_Atomic uint64_t hints[HINTS]; /* numbers: where a place with this hash was last */
};

static struct {
	_Atomic(struct ring *) ring;
	_Atomic uint64_t made;
} state HOOK_DATA __attribute__((aligned(64)));

void site_ring_start(void)
{
	struct ring *none = NULL;
	if (atomic_load_explicit(&state.ring, memory_order_acquire))
		return;
	/* Untouched pages cost nothing. */
	void *made = mmap(NULL, sizeof *none, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (made != MAP_FAILED && !atomic_compare_exchange_strong(&state.ring, &none, made))
		munmap(made, sizeof *none);
}

static uint32_t counts_of(const struct site *site)
{
	return (uint32_t)site->native_count | (uint32_t)site->python_count << 8 | (uint32_t)site->python_cut << 16;
}

static uint64_t mixed(uint64_t so_far, uint64_t word)
{
	return (so_far ^ word) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t python_mixed(uint64_t so_far, const struct site *site)
{
	for (int i = 0; i < site->python_count; i++)
		so_far = mixed(so_far, (uintptr_t)site->python[i].function + (uint64_t)site->python[i].line);
	return so_far;
}

static uint64_t native_mixed(uint64_t so_far, const struct site *site)
{
	for (int i = 0; i < site->native_count; i++)
		so_far = mixed(so_far, (uintptr_t)site->native[i]);
	return so_far;
}

static _Atomic uint64_t *hint_of(struct ring *ring, uint64_t hash)
{
	return &ring->hints[mixed(hash, 0) >> (64 - HINTS_BITS)];
}

static struct kept *kept_at(struct ring *ring, uint64_t number)
{
	return &ring->sites[number % SITES];
}

static bool is_held(const struct kept *kept, uint64_t number)
{
	/* All loads before are acquire loads and stay before it. */
	return atomic_load_explicit(&kept->turn, memory_order_relaxed) == 2 * number;
}

/* So young that it lasts as long as a new one? */
static bool is_young(uint64_t number)
{
	return number && atomic_load_explicit(&state.made, memory_order_relaxed) - number < SITES - SITE_RING_LASTS;
}

static bool same_python(const struct kept *kept, const struct site *site)
{
	for (int i = 0; i < site->python_count; i++)
		if (atomic_load_explicit(&kept->python[i].line, memory_order_acquire) != site->python[i].line ||
		    atomic_load_explicit(&kept->python[i].function, memory_order_acquire) != site->python[i].function ||
		    atomic_load_explicit(&kept->python[i].file, memory_order_acquire) != site->python[i].file)
			return false;
	return true;
}

static bool same_native(const struct kept *kept, const struct site *site)
{
	for (int i = 0; i < site->native_count; i++)
		if (atomic_load_explicit(&kept->native[i], memory_order_acquire) != (uintptr_t)site->native[i])
			return false;
	return true;
}

/* What a place is looked for by: its frames in `site`; or where the stack is, and then `site` has Python's frames alone. */
struct wanted {
	const struct site *site;
	uint32_t counts;       /* of the frames in `site` */
	uintptr_t top, caller; /* top 0: the first */
	size_t words;          /* of this stack above `top` */
	unsigned way;
	bool whole; /* only a place whose frames are all there are */
};

/*
 * Does this thread's stack have the place's frames? From the inside out, as in stack_memo.c: as long as those inside are the same, the next slot is part of this stack. What is torn may
 * lead anywhere in the stack, but not beyond its end.
 */
static inline bool same_stack(const struct kept *kept, const struct wanted *wanted, int count)
{
	const uintptr_t top = wanted->top;
	const size_t words = wanted->words;
	if (atomic_load_explicit(&kept->top, memory_order_acquire) != top ||
	    atomic_load_explicit(&kept->way, memory_order_acquire) != wanted->way ||
	    atomic_load_explicit(&kept->native[0], memory_order_acquire) != wanted->caller)
		return false;
	for (int i = 0; i < count; i++) {
		size_t slot = atomic_load_explicit(&kept->slot[i], memory_order_acquire);
		uintptr_t frame = atomic_load_explicit(&kept->native[i], memory_order_acquire);
		if (slot >= words || stack_word(top + slot * sizeof frame) != frame)
			return false;
	}
	return count;
}

static inline bool is_there(struct ring *ring, uint64_t number, const struct wanted *wanted)
{
	const struct kept *kept = kept_at(ring, number);
	if (atomic_load_explicit(&kept->turn, memory_order_acquire) != 2 * number)
		return false;
	uint32_t counts = atomic_load_explicit(&kept->counts, memory_order_acquire);
	int native = (int)(counts & 0xff);
	if ((wanted->top ? counts & ~UINT32_C(0xff) : counts) != wanted->counts ||
	    (wanted->whole && native == SITE_NATIVE_FRAMES) || !same_python(kept, wanted->site))
		return false;
	bool same = wanted->top ? same_stack(kept, wanted, native) : same_native(kept, wanted->site);
	return same && is_held(kept, number);
}

/* 0: none is this place. */
static HOOK_HOT __attribute__((noinline)) uint64_t find(struct ring *ring, uint64_t number, const struct wanted *wanted)
{
	for (int i = 0; i < TRIES && is_young(number); i++) {
		if (is_there(ring, number, wanted))
			return number;
		number = atomic_load_explicit(&kept_at(ring, number)->before, memory_order_relaxed);
	}
	return 0;
}

/* False: they are not known of each frame, or too far. */
static bool write_slots(struct kept *kept, uintptr_t top, const struct stack_shape *shape)
{
	for (int i = 0; i < shape->count; i++) {
		uintptr_t above = shape->top + shape->slot[i] - top;
		if (above % sizeof(uintptr_t) || above / sizeof(uintptr_t) > UINT16_MAX)
			return false;
		atomic_store_explicit(&kept->slot[i], (uint16_t)(above / sizeof(uintptr_t)), memory_order_release);
	}
	return shape->count > 0;
}

/* 0: somebody is still writing what was here SITES places ago, or this thread was held up while others wrote so many. `shape` (NULL: not known) is that of the site's native frames on this stack. */
static uint64_t write_down(struct ring *ring, uint64_t before, const struct wanted *wanted,
                           const struct stack_shape *shape)
{
	const struct site *site = wanted->site;
	uint64_t number = atomic_fetch_add_explicit(&state.made, 1, memory_order_relaxed) + 1;
	struct kept *kept = kept_at(ring, number);
	uint64_t turn = atomic_load_explicit(&kept->turn, memory_order_relaxed);
	if (turn & 1 || turn > 2 * number || !atomic_compare_exchange_strong(&kept->turn, &turn, turn | 1))
		return 0;
	/* Release stores: none can come before the number is odd. */
	atomic_store_explicit(&kept->before, before, memory_order_release);
	atomic_store_explicit(&kept->top, shape && write_slots(kept, wanted->top, shape) ? wanted->top : 0,
	                      memory_order_release);
	atomic_store_explicit(&kept->way, wanted->way, memory_order_release);
	atomic_store_explicit(&kept->counts, counts_of(site), memory_order_release);
	for (int i = 0; i < site->native_count; i++)
		atomic_store_explicit(&kept->native[i], (uintptr_t)site->native[i], memory_order_release);
	for (int i = 0; i < site->python_count; i++) {
		atomic_store_explicit(&kept->python[i].file, site->python[i].file, memory_order_release);
		atomic_store_explicit(&kept->python[i].function, site->python[i].function, memory_order_release);
		atomic_store_explicit(&kept->python[i].line, site->python[i].line, memory_order_release);
	}
	atomic_store_explicit(&kept->turn, 2 * number, memory_order_release);
	return number;
}

uint64_t site_ring_put(const struct site *site)
{
	struct ring *ring = atomic_load_explicit(&state.ring, memory_order_acquire);
	const struct wanted wanted = {.site = site, .counts = counts_of(site)};
	if (!ring)
		return 0;
	_Atomic uint64_t *hint = hint_of(ring, python_mixed(native_mixed(0, site), site));
	uint64_t last = atomic_load_explicit(hint, memory_order_relaxed);
	uint64_t number = find(ring, last, &wanted);
	if (number)
		return number;
	number = write_down(ring, last, &wanted, NULL);
	if (number)
		atomic_store_explicit(hint, number, memory_order_relaxed);
	return number;
}

static __attribute__((noinline)) uint64_t write_here(struct ring *ring, _Atomic uint64_t *hint, struct site *site,
                                                     const struct wanted *wanted)
{
	struct stack_shape shape;
	int saved = errno;
	site->native_count =
		native_capture_shape(site->native, SITE_NATIVE_FRAMES, (void *)wanted->caller, wanted->way, &shape);
	uint64_t number =
		write_down(ring, atomic_load_explicit(hint, memory_order_relaxed), wanted, shape.count ? &shape : NULL);
	if (number)
		atomic_store_explicit(hint, number, memory_order_relaxed);
	errno = saved;
	return number;
}

/* On the stack of a coroutine. */
static HOOK_COLD uint64_t put_here(struct site *site, void *caller)
{
	site_capture(site, caller);
	return site_ring_put(site);
}

static _Atomic uint64_t *hint_here(struct ring *ring, const struct wanted *wanted)
{
	return hint_of(ring, python_mixed(wanted->caller ^ wanted->top << 7, wanted->site));
}

static uint64_t find_here(struct ring *ring, const struct wanted *wanted)
{
	return find(ring, atomic_load_explicit(hint_here(ring, wanted), memory_order_relaxed), wanted);
}

/*
 * Without asking whether there is an interpreter by now, and what it runs: a thread that runs Python has frames of its own for that, so a stack that was the same when it ran none runs
 * none. That it did is sure: look_again() came before. 0: not known.
 */
static inline uint64_t find_without_python(struct ring *ring, struct wanted *wanted)
{
	if (python_known())
		return 0;
	wanted->whole = true;
	uint64_t number = find_here(ring, wanted);
	wanted->whole = false;
	return number;
}

/* Before a place is written down as one without Python: nobody may ask again of this stack. */
static HOOK_COLD void look_again(struct site *site)
{
	int saved = errno;
	if (python_appeared())
		site_capture_python(site);
	errno = saved;
}

/* Not inlined: the stack pointer is that of a frame whose distance to the hook's is always the same. */
HOOK_HOT __attribute__((noinline)) uint64_t site_ring_here(void *caller, unsigned way)
{
	struct ring *ring = atomic_load_explicit(&state.ring, memory_order_acquire);
	uintptr_t top = (uintptr_t)__builtin_frame_address(0);
	struct site site;
	struct wanted wanted = {.site = &site,
	                        .top = top,
	                        .caller = (uintptr_t)caller,
	                        .words = stack_room(top) / sizeof(uintptr_t),
	                        .way = way};
	if (!ring)
		return 0;
	if (HOOK_UNLIKELY(!wanted.words))
		return put_here(&site, caller);
	site.native_count = site.python_count = 0;
	site.python_cut = false;
	uint64_t number = find_without_python(ring, &wanted);
	if (number)
		return number;
	site_capture_python(&site);
	wanted.counts = counts_of(&site);
	number = find_here(ring, &wanted);
	if (number)
		return number;
	if (!site.python_count)
		look_again(&site);
	return write_here(ring, hint_here(ring, &wanted), &site, &wanted);
}

/* False: it is overwritten meanwhile. */
static bool read_kept(const struct kept *kept, uint64_t number, struct site *ret)
{
	if (atomic_load_explicit(&kept->turn, memory_order_acquire) != 2 * number)
		return false;
	uint32_t counts = atomic_load_explicit(&kept->counts, memory_order_acquire);
	ret->native_count = (int)(counts & 0xff);
	ret->python_count = (int)(counts >> 8 & 0xff);
	ret->python_cut = counts >> 16;
	for (int i = 0; i < ret->native_count; i++)
		ret->native[i] = (void *)atomic_load_explicit(&kept->native[i], memory_order_acquire);
	for (int i = 0; i < ret->python_count; i++)
		ret->python[i] = (struct site_frame){
			.file = atomic_load_explicit(&kept->python[i].file, memory_order_acquire),
			.function = atomic_load_explicit(&kept->python[i].function, memory_order_acquire),
			.line = atomic_load_explicit(&kept->python[i].line, memory_order_acquire)};
	return is_held(kept, number);
}

bool site_ring_get(uint64_t number, struct site *ret_site)
{
	struct ring *ring = atomic_load_explicit(&state.ring, memory_order_acquire);
	if (ring && number && read_kept(kept_at(ring, number), number, ret_site))
		return true;
	ret_site->native_count = ret_site->python_count = 0;
	ret_site->python_cut = false;
	return false;
}
