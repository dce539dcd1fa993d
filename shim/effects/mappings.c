/* Virtual memory management: reserved addresses, mappings and their access, which twins follow. A twin is not the program's to change. */
#include "shim/effects/frees.h"
#include "shim/twins/twin.h"

static void reserved_after(struct call *call, CUresult result)
{
	const CUdeviceptr *start = call->state[0].pointer;
	if (result == CUDA_SUCCESS && start)
		twins_reserved(*start, call->state[1].number);
}

void effect_reserve(struct call *call, CUdeviceptr *start, uint64_t bytes)
{
	call->state[0].pointer = start;
	call->state[1].number = bytes;
	call->after = reserved_after;
}

static void mapped_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		twins_mapped(call->state[0].number, call->state[1].number);
}

/* A call on [start, start + bytes): refused where a twin lies, else followed by `after`. */
static void follow(struct call *call, uint64_t start, uint64_t bytes, void (*after)(struct call *, CUresult))
{
	call->state[0].number = start;
	call->state[1].number = bytes;
	call->after = after;
	if (twin_touched(start, bytes))
		call->refused = CUDA_ERROR_NOT_PERMITTED;
}

void effect_map(struct call *call, uint64_t start, uint64_t bytes)
{
	follow(call, start, bytes, mapped_after);
}

static void access_after(struct call *call, CUresult result)
{
	frees_end_access(call, result);
	if (result == CUDA_SUCCESS)
		twins_access_set(call->state[0].number, call->state[1].number);
}

/*
 * Making a twin writable would make every view of it writable. Memory that its device may not even read any more is as good as unmapped: the next check
 * would be an illegal address.
 */
void effect_access(struct call *call, uint64_t start, uint64_t bytes, const CUmemAccessDesc *access, size_t count)
{
	follow(call, start, bytes, access_after);
	count = call->refused || start + bytes <= start ? 0 : call_list_count(access, sizeof *access, count);
	for (size_t i = 0; i < count; i++)
		if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		    access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
			frees_begin(call, start, start + bytes, access[i].location.id);
	frees_settle(call);
}

static void unreserved_after(struct call *call, CUresult result)
{
	twins_unreserve_ends(call->state[0].pointer, result == CUDA_SUCCESS);
}

void effect_unreserve(struct call *call, uint64_t start, uint64_t bytes)
{
	if (twin_touched(start, bytes)) {
		call->refused = CUDA_ERROR_NOT_PERMITTED;
		return;
	}
	call->state[0].pointer = twins_unreserve_begins(start, bytes);
	call->after = unreserved_after;
}

/* A handle of a twin's memory could be mapped again, for writing: it is the owner's to give. */
void effect_retain(struct call *call, uint64_t address)
{
	if (twin_is(address, 1, NULL))
		call->refused = CUDA_ERROR_NOT_PERMITTED;
}
