#include "shim/twins/serve_memo.h"

#include "shim/hot_page.h"

/* For when there is no room in the hot page. */
static struct serve_memo elsewhere;
static struct serve_memo *kept; /* what hook_line.served is, or was */
static size_t used;             /* areas that were kept since all were forgotten */

void serve_memo_start(void)
{
	if (!kept)
		kept = hot_page_take(sizeof *kept);
	if (!kept)
		kept = &elsewhere;
	atomic_store_explicit(&hook_line.served, kept, memory_order_release);
}

static void set(struct serve_area *area, uint64_t start, uint64_t bytes)
{
	uint64_t sequence = atomic_load_explicit(&area->sequence, memory_order_relaxed);
	atomic_store_explicit(&area->sequence, sequence + 1, memory_order_relaxed);
	/* Who sees one of these sees the odd number, too. */
	atomic_store_explicit(&area->start, start, memory_order_release);
	atomic_store_explicit(&area->bytes, bytes, memory_order_release);
	atomic_store_explicit(&area->sequence, sequence + 2, memory_order_release);
}

static uint64_t bytes_of(const struct serve_area *area)
{
	return atomic_load_explicit(&area->bytes, memory_order_relaxed);
}

void serve_memo_keep(uint64_t address, uint64_t start, uint64_t end, bool small)
{
	if (!kept)
		return;
	struct serve_area *area = serve_area_of(kept, address, small ? SERVE_SMALL_PART_BITS : SERVE_PART_BITS);
	used += !bytes_of(area);
	set(area, start, end - start);
}

void serve_memo_forget(uint64_t start, uint64_t end)
{
	/* Most programs that free much set little. */
	for (size_t i = 0, left = used; left && i < 1u << SERVE_AREAS_BITS; i++) {
		struct serve_area *area = &kept->areas[i];
		uint64_t bytes = bytes_of(area), from = atomic_load_explicit(&area->start, memory_order_relaxed);
		left -= bytes != 0;
		if (bytes && from < end && start < from + bytes) {
			set(area, 0, 0);
			used--;
		}
	}
}
