#include "shim/effects/told.h"

#include "shim/hot_page.h"

/* While nothing is protected, and where there is no room in the hot page. */
static struct told_marks elsewhere;

_Atomic(struct told_marks *) told_now HOOK_DATA = &elsewhere;

void told_start(void)
{
	if (atomic_load_explicit(&told_now, memory_order_relaxed) != &elsewhere)
		return;
	struct told_marks *near = hot_page_take(sizeof *near);
	if (near)
		atomic_store_explicit(&told_now, near, memory_order_release);
}
