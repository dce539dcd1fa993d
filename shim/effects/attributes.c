/* Pointer attributes: of protected memory they say that it can only be read. */
#include "shim/verdict/attributes.h"
#include "shim/effects/call.h"

static void tell(struct call *call, uint64_t address, CUpointer_attribute attribute, void *data)
{
	unsigned *flags = data;
	/* The driver has written it; NONE stays what it is. */
	if (attribute == CU_POINTER_ATTRIBUTE_ACCESS_FLAGS && flags && attributes_read_only(address, call->caller))
		*flags &= CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ;
}

static void one_after(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		tell(call, call->state[2].number, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, call->state[0].pointer);
}

void effect_attribute(struct call *call, void *data, CUpointer_attribute attribute, uint64_t address)
{
	if (attribute != CU_POINTER_ATTRIBUTE_ACCESS_FLAGS)
		return;
	call->state[0].pointer = data;
	call->state[2].number = address;
	call->after = one_after;
}

static void all_after(struct call *call, CUresult result)
{
	const CUpointer_attribute *attributes = call->state[0].pointer;
	void **data = call->state[1].pointer;
	for (unsigned i = 0; result == CUDA_SUCCESS && i < call->attributes; i++)
		tell(call, call->state[2].number, attributes[i], data[i]);
}

void effect_attributes(struct call *call, unsigned count, CUpointer_attribute *attributes, void **data, uint64_t address)
{
	call->attributes = count;
	call->state[0].pointer = attributes;
	call->state[1].pointer = data;
	call->state[2].number = address;
	call->after = all_after;
}
