/*
 * The tables of launch_memo.c, which reads them, and launch_memo_keep.c, which writes them; nobody else includes it.
 *
 * Each entry is guarded by a sequence number, odd while it is written; every member is atomic, so a torn read is seen, not undefined. What is read is used only after the
 * second look at the number.
 */
#ifndef CUCONST_EFFECTS_LAUNCH_MEMO_INTERNAL_H
#define CUCONST_EFFECTS_LAUNCH_MEMO_INTERNAL_H

#include "shim/effects/launch_memo.h"

#define MEMO_LAYOUTS_BITS 10
#define MEMO_PLACES_BITS 11
/* Entries, side by side, where a function or a launch may be: with one, a fifth of 500 launches would have to share. */
#define MEMO_WAYS 2
#define MEMO_PARAMS 40     /* of a function whose launches are kept */
#define MEMO_GUARDS 8      /* conditions on the values of the parameters */
#define MEMO_NO_CONCERN 15 /* in place of a verdict */
#define MEMO_WORD sizeof(uint64_t)

/* How many whole words each parameter of a function has. A cache line. */
struct memo_layout {
	_Atomic uint32_t sequence, params;
	_Atomic uint64_t function, stamp;
	_Atomic uint64_t words[MEMO_PARAMS / MEMO_WORD]; /* a byte each */
} __attribute__((aligned(64)));

struct memo_note {
	_Atomic(struct writer *) writer;
	_Atomic(struct tally *) tally;
	_Atomic uint64_t key;
};

/* One condition: parameter, small, offset and mask; and the value. */
struct memo_guard {
	_Atomic uint64_t what, value;
};

/* What it is (memo_swap_what()); its twin, and a range that it lies in. */
struct memo_swap {
	_Atomic uint64_t what, twin;
	_Atomic registry_handle range;
};

/* Which of the words, of which argument at which offset there, how large the argument is, and how many there are: as memo_twin has them. */
static inline uint64_t memo_swap_what(uint64_t word, uint64_t argument, uint64_t params, uint64_t offset, uint64_t bytes)
{
	return word | argument << 8 | params << 16 | offset << 32 | bytes << 48;
}

/* A launch. Most need the first two lines; with twins the third as well. */
struct memo_place {
	_Atomic uint32_t sequence, counts; /* verdict and swaps: half a byte each; words, notes, guards: a byte each */
	_Atomic uint64_t function, stamp, at, noted; /* the last two: a byte for each word, and for each note */
	struct memo_note first;
	_Atomic uint64_t word[MEMO_WORDS];
	_Atomic(const struct function_info *) info;
	_Atomic(const struct kernel_paths *) paths;
	struct memo_swap swap[MEMO_SWAPS];
	struct memo_note more[MEMO_NOTES - 1];
	struct memo_guard guard[MEMO_GUARDS];
} __attribute__((aligned(64)));

struct memo_tables {
	struct memo_layout layouts[1u << MEMO_LAYOUTS_BITS];
	struct memo_place places[1u << MEMO_PLACES_BITS];
};

/* NULL: nothing is kept. */
static inline struct memo_tables *memo_tables(void)
{
	return atomic_load_explicit(&hook_line.memo, memory_order_acquire);
}

static inline uint64_t memo_peek(const _Atomic uint64_t *field)
{
	return atomic_load_explicit(field, memory_order_acquire);
}

static inline uint64_t memo_mixed(uint64_t mixed, uint64_t word)
{
	return (mixed ^ word) * UINT64_C(0x9e3779b97f4a7c15);
}

/* The first of MEMO_WAYS. */
static inline struct memo_layout *memo_layouts_of(struct memo_tables *tables, uint64_t function)
{
	return &tables->layouts[(memo_mixed(0, function) >> (64 - MEMO_LAYOUTS_BITS)) & ~(uint64_t)(MEMO_WAYS - 1)];
}

/* The same. `mixed`: the function, and then each word. */
static inline struct memo_place *memo_places_of(struct memo_tables *tables, uint64_t mixed)
{
	return &tables->places[(mixed >> (64 - MEMO_PLACES_BITS)) & ~(uint64_t)(MEMO_WAYS - 1)];
}

static inline struct memo_note *memo_note_of(struct memo_place *place, size_t nth)
{
	return nth ? &place->more[nth - 1] : &place->first;
}

#endif
