/*
 * Memory that launches look into while something is protected. It lies in one large page, where the kernel gives one: a
 * program touches so much between two launches that finding each small page anew costs more than reading it.
 */
#ifndef CUCONST_HOT_PAGE_H
#define CUCONST_HOT_PAGE_H

#include <stddef.h>

/*
 * Zeroed, aligned to a cache line, and never given back. NULL: the page is full, or there is none; the caller takes
 * memory elsewhere, or does without. The page is made at the first call. Thread-safe, no lock; `errno` is kept.
 */
void *hot_page_take(size_t bytes);

#endif
