/*
 * The tables of launch_memo.c and launch_memo_any.c, which read them, and launch_memo_keep.c, which writes them; nobody else includes it.
 *
 * Each entry is guarded by a sequence number, odd while it is written; every member is atomic, so a torn read is seen, not undefined. What is read is used only after the
 * second look at the number.
 */
#ifndef CUCONST_EFFECTS_LAUNCH_MEMO_INTERNAL_H
#define CUCONST_EFFECTS_LAUNCH_MEMO_INTERNAL_H

#include <stddef.h>

#include "shim/effects/launch_memo.h"

#define MEMO_LAYOUTS_BITS 10
#define MEMO_PLACES_BITS 11
#define MEMO_COURSES 32
#define MEMO_COURSE 2048u /* launches that a thread remembers: the step of a large model */
#define MEMO_AHEAD 16     /* launches, after which the next line of them is needed */
#define MEMO_SKIPPED 15   /* launches that may be left out in a step */
/* Entries, side by side, where a function or a launch may be. */
#define MEMO_LAYOUT_WAYS 4
#define MEMO_WAYS 4
#define MEMO_ENTRIES 56     /* of a layout: pieces of parameters, and conditions on their values */
#define MEMO_PIECE 255      /* words of one */
#define MEMO_GAP 3          /* words between two that are better looked at, too */
#define MEMO_MANY 16        /* words, that are looked at in another way; */
#define MEMO_SEEN 255       /* so are all behind so many words, where a place needs 16 bits to say which one is hit, */
#define MEMO_FAR_WORDS 4    /* for so many */
#define MEMO_FEW 8          /* words: with no more nothing is to be gained by */
#define MEMO_SINGLE 24      /* words: with no more each is a piece of its own (two lines of a layout); */
#define MEMO_SIDE 4         /* so many of them are looked at side by side */
#define MEMO_LINE_ENTRIES 8 /* in the first line of a layout, */
#define MEMO_PLAIN_ENTRIES 24 /* and in the first two */
#define MEMO_FEW_HITS 4       /* words that may concern a range: most launches have no more */
#define MEMO_LOOKS                                                                                                     \
	32768 /* words that were looked at, after which the code is asked which of them matter: that takes about as long */
#define MEMO_GUARDS 8      /* conditions on the values of the parameters, of a launch or of a layout */
#define MEMO_NO_CONCERN 15 /* in place of a verdict */
#define MEMO_WORD sizeof(uint64_t)
#define MEMO_LINE 64

/*
 * Where the words of a function's parameters are that are looked at, in order: pieces of parameters. All words are, unless the code is understood: then those that it may store through (a narrow
 * layout). Code that is understood for some values of its parameters has a layout of its own for these, with the conditions on them behind the pieces. Four cache lines, of which most functions need
 * the first.
 */
#define MEMO_PACKED (sizeof(uint64_t) / sizeof(uint32_t))
#define MEMO_LAYOUT_WORDS (MEMO_ENTRIES / MEMO_PACKED)
#define MEMO_COUNT 0xffu
#define MEMO_NARROW 0x100u
#define MEMO_SETTLED 0x200u /* its code was asked, or need not be */
#define MEMO_SINGLES 0x400u /* each piece is one word; the last is there again until MEMO_SIDE divides their number */
#define MEMO_PLAIN 0x800u   /* settled, single words, and no more of all that than MEMO_PLAIN_ENTRIES */
#define MEMO_VALUES 0xf000u /* how many conditions; 0: for all values */
#define MEMO_VALUES_SHIFT 12
#define MEMO_VARIANT_SHIFT 16 /* struct variant's number, with conditions */
struct memo_layout {
	_Atomic uint32_t sequence, entries; /* MEMO_COUNT of it: their number */
	_Atomic uint64_t function, stamp;
	_Atomic uint32_t looks; /* at words, while it is not settled */
	_Atomic uint32_t seen;  /* where in its course a thread had it last that did not expect it */
	_Atomic uint64_t packed[MEMO_LAYOUT_WORDS];
} __attribute__((aligned(2 * MEMO_LINE)));

/* One condition: parameter, offset, and how many bytes where they are less than four (otherwise 0); mask; value. */
#define MEMO_CONDITION 3

static inline size_t memo_conditions(uint32_t entries)
{
	return (entries & MEMO_VALUES) >> MEMO_VALUES_SHIFT;
}

/* Where the first one is: its pieces are read side by side. */
static inline size_t memo_conditions_at(uint32_t entries)
{
	return ((entries & MEMO_COUNT) + MEMO_SIDE - 1) / MEMO_SIDE * MEMO_SIDE;
}

/* All that it has. */
static inline size_t memo_entries(uint32_t entries)
{
	return memo_conditions_at(entries) + memo_conditions(entries) * MEMO_CONDITION;
}

/* Under which the function's launches are kept: what they are like hangs on the layout. No address has the upper bits. */
static inline uint64_t memo_key(uint64_t function, uint32_t entries)
{
	return function ^ (uint64_t)(entries >> MEMO_VARIANT_SHIFT) << 48;
}

/* One piece: so many words of a parameter, from one of them on. */
static inline uint32_t memo_entry(size_t param, size_t first, size_t words)
{
	return (uint32_t)(param | words << 8 | first << 16);
}

static inline size_t memo_entry_param(uint32_t entry)
{
	return entry & 0xff;
}

static inline size_t memo_entry_words(uint32_t entry)
{
	return entry >> 8 & 0xff;
}

static inline size_t memo_entry_first(uint32_t entry)
{
	return entry >> 16;
}

struct memo_note {
	_Atomic(struct writer *) writer;
	_Atomic(struct tally *) tally;
	_Atomic uint64_t key;
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

/* A launch. Most need the first two lines; with two notes and more the third as well, with twins the next. */
struct memo_place {
	_Atomic uint32_t sequence,
		counts; /* verdict and swaps: half a byte each; words (memo_words_of()), notes, guards: a byte each */
	_Atomic uint64_t key, stamp,
		at; /* memo_key(); `at`: a byte for each word, which of those that are looked at it is; or two, where that is too little for one */
	_Atomic uint32_t noted, seen; /* a byte for each note; where in its course a thread had it last */
	struct memo_note first;
	_Atomic uint64_t word[MEMO_WORDS];
	struct memo_note more[MEMO_NOTES - 1];
	_Atomic(const struct function_info *) info;
	_Atomic(const struct kernel_paths *) paths;
	struct memo_swap swap[MEMO_SWAPS];
	_Atomic uint32_t guard[MEMO_GUARDS * MEMO_CONDITION]; /* where the layout is for all values */
} __attribute__((aligned(MEMO_LINE)));

/*
 * The launches of a thread, in order: the number of the layout, and of the first line of the place (0: it needs none, or that one). Programs repeat themselves: what came after a launch the last time
 * will come again, and what it needs is fetched before. Two threads may share a course; then they guess wrong.
 */
struct memo_course {
	_Atomic uint32_t count, next; /* of launches so far; where the next one is thought to be found */
	_Atomic uint32_t launch[MEMO_COURSE] __attribute__((aligned(MEMO_LINE)));
};
#define MEMO_PLACE_SHIFT 16
#define MEMO_LAYOUT_OF_COURSE 0xffffu

struct memo_tables {
	struct memo_layout layouts[1u << MEMO_LAYOUTS_BITS];
	struct memo_place places[1u << MEMO_PLACES_BITS];
	struct memo_course courses[MEMO_COURSES];
	_Atomic unsigned threads; /* that were given one */
};

/* In one byte, how many words a launch has, what its layout is, and how a place says where they are: which word is which hangs on that. `entries`: the layout's. */
static inline uint32_t memo_words_of(size_t words, uint32_t entries, bool is_far)
{
	return (uint32_t)words | (entries & MEMO_NARROW) >> 4 | (uint32_t)is_far << 5;
}
_Static_assert(MEMO_WORDS < MEMO_NARROW >> 4 && MEMO_NARROW >> 4 < 1 << 5, "they do not meet");

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

/* By bits in the middle: the upper ones say which entries, and the lower ones of a product of aligned addresses are 0. */
static inline uint64_t memo_way(uint64_t mixed)
{
	return mixed >> 40;
}

/* The first of MEMO_LAYOUT_WAYS. */
static inline struct memo_layout *memo_layouts_of(struct memo_tables *tables, uint64_t function)
{
	return &tables->layouts[(memo_mixed(0, function) >> (64 - MEMO_LAYOUTS_BITS)) & ~(uint64_t)(MEMO_LAYOUT_WAYS - 1)];
}

/* The first of MEMO_WAYS. `mixed`: the function, and then each word. */
static inline struct memo_place *memo_places_of(struct memo_tables *tables, uint64_t mixed)
{
	return &tables->places[(mixed >> (64 - MEMO_PLACES_BITS)) & ~(uint64_t)(MEMO_WAYS - 1)];
}

/* This thread's: its own, as long as there are no more threads than courses. */
static inline struct memo_course *memo_course(struct memo_tables *tables)
{
	if (HOOK_UNLIKELY(!hook_thread.course))
		hook_thread.course = &tables->courses[atomic_fetch_add(&tables->threads, 1) % MEMO_COURSES];
	return hook_thread.course;
}

/* A launch of a course. */
static inline uint32_t memo_nth(const struct memo_course *course, uint32_t nth)
{
	return atomic_load_explicit(&course->launch[nth % MEMO_COURSE], memory_order_relaxed);
}

static inline struct memo_layout *memo_layout_at(struct memo_tables *tables, uint32_t launch)
{
	return &tables->layouts[launch & MEMO_LAYOUT_OF_COURSE];
}

static inline struct memo_place *memo_place_at(struct memo_tables *tables, uint32_t launch)
{
	uintptr_t line = launch >> MEMO_PLACE_SHIFT;
	return (struct memo_place *)(void *)((char *)tables->places + line * MEMO_LINE);
}

/* `place`: NULL where it needs none. */
static inline uint32_t memo_launch(const struct memo_tables *tables, const struct memo_layout *layout,
                                   const struct memo_place *place)
{
	size_t line = place ? (size_t)((const char *)place - (const char *)tables->places) / MEMO_LINE : 0;
	return (uint32_t)(layout - tables->layouts) | (uint32_t)(line << MEMO_PLACE_SHIFT);
}
_Static_assert((sizeof(struct memo_place) << MEMO_PLACES_BITS) / MEMO_LINE <= 1u << (32 - MEMO_PLACE_SHIFT) &&
                       1u << MEMO_LAYOUTS_BITS <= MEMO_LAYOUT_OF_COURSE + 1,
               "a launch of a course has room for both numbers");

static inline struct memo_note *memo_note_of(struct memo_place *place, size_t nth)
{
	return nth ? &place->more[nth - 1] : &place->first;
}

#endif
