/* What an analysis found, as one line: for expectations and messages. */
#ifndef CUCONST_TESTS_KERNELS_PTX_TEXT_H
#define CUCONST_TESTS_KERNELS_PTX_TEXT_H

#include <stdio.h>

#include "shim/kernels/paths.h"

static inline const char *ptx_reason_word(enum paths_reason reason)
{
	static const char *const words[] = {"clear", "table",       "global",       "split",   "no_base",
	                                    "call",  "instruction", "architecture", "damaged", "limit"};

	return (size_t)reason < sizeof(words) / sizeof(words[0]) ? words[reason] : "?";
}

static inline void ptx_paths_spell(const struct kernel_paths *paths, char *text, size_t room)
{
	static const char *const uses[] = {"none", "load", "store"};
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < paths->slot_count && used < room; i++)
		used += (size_t)snprintf(text + used, room - used, "%s%s%s ", uses[paths->slots[i].use],
		                         paths->slots[i].only_base ? "!" : "", paths->slots[i].compared ? "~" : "");
	if (used < room)
		snprintf(text + used, room - used, ": %s", ptx_reason_word(paths->reason));
}

#endif
