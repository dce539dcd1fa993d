#include "shim/effects/call.h"

#include <stdlib.h>
#include <string.h>

#include "shim/hook_state.h"
#include "shim/report/peek.h"
#include "shim/twins/serve.h"
#include "shim/verdict/protect.h"

#define PAGE ((uintptr_t)4096)

HOOK_HOT void call_begin(struct call *call, enum entry_id entry, CUstream stream, void *caller)
{
	hook_thread.depth++;
	call->entry = &entrypoints[entry];
	call->caller = caller;
	call->stream = stream;
	call->graph = 0;
	call->time = 0;
	call->deferred = call->concerned = false;
	call->verdict = KERNEL_CLEAN;
	call->writes = call->inline_writes;
	call->write_count = 0;
	call->write_room = CALL_INLINE_WRITES;
	call->slots = call->inline_slots;
	call->slot_count = 0;
	call->slot_room = CALL_INLINE_SLOTS;
	call->memop = false;
	call->refused = CUDA_SUCCESS;
	call->after = NULL;
	call->ended = NULL;
	call->ended_count = 0;
	call->overrun = false;
	call->params = call->extra = NULL;
	call->overlaps = false;
	call->draft = NULL;
	call->copy = NULL;
	call->judgement = NULL;
}

/* Room for one more; a list that outgrew its inline place moves to the heap. False: out of memory, the entry is lost and counted. */
static bool make_room(void **list, void *inline_list, size_t *room, size_t count, size_t size)
{
	if (count < *room)
		return true;
	void *grown = realloc(*list == inline_list ? NULL : *list, 2 * *room * size);
	if (!grown) {
		hook_count(COUNT_UNJUDGED);
		return false;
	}
	if (*list == inline_list)
		memcpy(grown, inline_list, count * size);
	*list = grown;
	*room *= 2;
	return true;
}

static void add_write(struct call *call, const struct extent *extent, const char *node, bool maybe)
{
	uint64_t start, end;
	struct registry *ranges = protect_ranges();
	if (!extent_bounds(extent, &start, &end))
		return;
	/* What a graph's nodes write the driver has seen when they were added. */
	if (!node && serve_overrun(start, end))
		call->overrun = true;
	if (!ranges || !registry_in_bounds(ranges, start, end) || !registry_hits(ranges, start, end))
		return;
	if (make_room((void **)&call->writes, call->inline_writes, &call->write_room, call->write_count,
	              sizeof *call->writes))
		call->writes[call->write_count++] = (struct call_write){*extent, node, maybe};
}

void call_add_write(struct call *call, const struct extent *extent, const char *node)
{
	add_write(call, extent, node, false);
}

void call_add_maybe(struct call *call, const struct extent *extent, const char *node)
{
	add_write(call, extent, node, true);
}

void call_add_slot(struct call *call, const struct call_slot *slot)
{
	if (make_room((void **)&call->slots, call->inline_slots, &call->slot_room, call->slot_count, sizeof *call->slots))
		call->slots[call->slot_count++] = *slot;
	else
		range_put(slot->range);
}

size_t call_list_count(const void *list, size_t element_bytes, size_t count)
{
	const uintptr_t start = (uintptr_t)list;
	size_t most = (UINTPTR_MAX - start) / element_bytes;
	char byte;
	if (!list)
		return 0;
	count = count < most ? count : most;
	for (uintptr_t page = (start | (PAGE - 1)) + 1; page < start + count * element_bytes; page += PAGE)
		if (!peek(page, &byte, 1))
			return (page - start) / element_bytes;
	return count;
}

HOOK_HOT void call_end(struct call *call)
{
	for (size_t i = 0; i < call->slot_count; i++)
		range_put(call->slots[i].range);
	for (size_t i = 0; i < call->ended_count; i++)
		range_put(call->ended[i]);
	if (call->ended)
		free(call->ended);
	if (call->copy)
		free(call->copy);
	if (call->slots != call->inline_slots)
		free(call->slots);
	if (call->writes != call->inline_writes)
		free(call->writes);
	hook_thread.depth--;
}
