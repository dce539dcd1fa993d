/*
 * Launches that were judged before. Programs launch the same kernels with the same addresses again and again, and between two launches they fill the caches: so what a launch
 * of one function with these addresses came to is kept in a few cache lines, where it needs nothing but to be noted. The next such launch is answered from there.
 *
 * Kept are launches that concern no range, clean ones, and those that may store beside ranges and were not due to be checked; never one that is checked, refused, recorded, or
 * given a twin. README.md says what an answer hangs on. Thread-safe; no lock, no allocation.
 */
#ifndef CUCONST_EFFECTS_LAUNCH_MEMO_H
#define CUCONST_EFFECTS_LAUNCH_MEMO_H

#include "shim/effects/call.h"
#include "shim/hook_state.h"
#include "shim/verdict/neighbours_mark.h"

#define MEMO_WORDS 8 /* of a launch that lie within the bounds of what is protected; with more it is not kept */
#define MEMO_NOTES 3 /* of these, such as are noted */

/* What is learnt of one launch while it is judged the long way. */
struct memo_draft {
	uint64_t stamp; /* hook_stamp() before */
	bool unfit;     /* not to be kept */
	uint8_t words, notes;
	uint8_t at[MEMO_WORDS];    /* which of all words of the parameters */
	uint8_t noted[MEMO_NOTES]; /* which of these words */
	uint64_t word[MEMO_WORDS];
	struct neighbours_mark note[MEMO_NOTES];
	const struct variant *variant; /* the values that its paths hold for; NULL: any */
};

static inline void memo_draft_begin(struct memo_draft *draft)
{
	draft->stamp = hook_stamp();
	draft->unfit = false;
	draft->words = draft->notes = 0;
	draft->variant = NULL;
}

static inline void memo_draft_word(struct memo_draft *draft, size_t at, uint64_t value)
{
	if (draft->words == MEMO_WORDS || at > UINT8_MAX) {
		draft->unfit = true;
		return;
	}
	draft->at[draft->words] = (uint8_t)at;
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

/* The launch was judged the long way, and nothing is to be done for it. */
void memo_keep(const struct call *call, const struct function_info *info, const struct memo_draft *draft);

/*
 * Is it such a launch again? Then all that it has to leave behind is done but what follows the driver's call (judge_again()), and this thread is inside a hook. `api`: static
 * text.
 */
bool memo_passes(CUfunction function, void **params, const char *api);

#endif
