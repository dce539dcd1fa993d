/*
 * What is learnt of one launch while it is judged the long way, for launch_memo.h to keep.
 */
#ifndef CUCONST_EFFECTS_LAUNCH_DRAFT_H
#define CUCONST_EFFECTS_LAUNCH_DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/hook_state.h"
#include "shim/verdict/neighbours_mark.h"

struct variant;

#define MEMO_WORDS                                                                                                     \
	8 /* of a launch that may lie in allocations with ranges (verdict/granules.h); with more it is not kept */
#define MEMO_NOTES 3 /* of these, such as are noted */

struct memo_draft {
	uint64_t stamp; /* hook_stamp() before */
	bool unfit;     /* not to be kept */
	uint8_t words, notes;
	uint16_t at[MEMO_WORDS];   /* which of all words of the parameters */
	uint8_t noted[MEMO_NOTES]; /* which of these words */
	uint64_t word[MEMO_WORDS];
	struct neighbours_mark note[MEMO_NOTES];
	const struct variant *variant; /* the values that its paths hold for; NULL: any */
	bool inside;                   /* a word in a range is stored through */
};

static inline void memo_draft_begin(struct memo_draft *draft)
{
	draft->stamp = hook_stamp();
	draft->unfit = false;
	draft->words = draft->notes = 0;
	draft->variant = NULL;
	draft->inside = false;
}

static inline void memo_draft_word(struct memo_draft *draft, size_t at, uint64_t value)
{
	if (draft->words == MEMO_WORDS || at > UINT16_MAX) {
		draft->unfit = true;
		return;
	}
	draft->at[draft->words] = (uint16_t)at;
	draft->word[draft->words++] = value;
}

/* Of the word that was added last. */
static inline void memo_draft_note(struct memo_draft *draft, const struct neighbours_mark *mark)
{
	if (draft->notes == MEMO_NOTES || !mark->writer || draft->unfit) {
		draft->unfit = true;
		return;
	}
	draft->noted[draft->notes] = (uint8_t)(draft->words - 1);
	draft->note[draft->notes++] = *mark;
}

#endif
