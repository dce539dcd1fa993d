/*
 * DLPack tensors of views. Their deleter is called by whoever consumed the tensor, in any thread, also when an
 * interpreter is gone: so it is C, and the bindings only pass tensors on. Layouts: DLPack 1.x, dlpack.h; their order is
 * part of that ABI.
 */
#include <stdint.h>
#include <stdlib.h>

#include "shim/cuconst.h"

#define FLAG_READ_ONLY UINT64_C(1)
#define FLAG_COPIED UINT64_C(2)
#define VERSION 1
#define CUDA 2

struct dl_tensor {
	void *data;
	int32_t device_type, device_id;
	int32_t ndim;
	uint8_t code, bits;
	uint16_t lanes;
	int64_t *shape, *strides;
	uint64_t byte_offset;
};

struct dl_plain {
	struct dl_tensor tensor;
	void *context;
	void (*deleter)(struct dl_plain *);
};

struct dl_versioned {
	uint32_t major, minor;
	void *context;
	void (*deleter)(struct dl_versioned *);
	uint64_t flags;
	struct dl_tensor tensor;
};

/* What we hand out, and what it was made from: shape and strides belong to that. */
struct view_tensor {
	union {
		struct dl_plain plain;
		struct dl_versioned versioned;
	} out;
	struct dl_plain *inner_plain;
	struct dl_versioned *inner_versioned;
};

static void drop(struct view_tensor *view)
{
	if (view->inner_plain && view->inner_plain->deleter)
		view->inner_plain->deleter(view->inner_plain);
	if (view->inner_versioned && view->inner_versioned->deleter)
		view->inner_versioned->deleter(view->inner_versioned);
	free(view);
}

static void drop_plain(struct dl_plain *out)
{
	drop((struct view_tensor *)(void *)out);
}

static void drop_versioned(struct dl_versioned *out)
{
	drop((struct view_tensor *)(void *)out);
}

/*
 * Of items of whole bytes that lie one after the other, in device memory; 0: they do not, there are none, or too many.
 */
static size_t bytes_of(const struct dl_tensor *tensor)
{
	size_t bits = (size_t)tensor->bits * tensor->lanes, bytes = bits / 8;
	int64_t step = 1;
	if (tensor->device_type != CUDA || bits % 8 || tensor->ndim < 0 || (tensor->ndim && !tensor->shape))
		return 0;
	for (int32_t i = tensor->ndim; i-- > 0;) {
		int64_t count = tensor->shape[i];
		if (count <= 0 || (tensor->strides && count > 1 && tensor->strides[i] != step) ||
		    __builtin_mul_overflow(step, count, &step) || __builtin_mul_overflow(bytes, (size_t)count, &bytes))
			return 0;
	}
	return bytes;
}

__attribute__((visibility("default"))) void *cuconst_dlpack_view(void *managed, int versioned, int as_versioned,
                                                                 uint64_t address)
{
	struct view_tensor *view = managed ? calloc(1, sizeof *view) : NULL;
	if (!view)
		return NULL;
	if (versioned)
		view->inner_versioned = managed;
	else
		view->inner_plain = managed;
	struct dl_tensor tensor = versioned ? view->inner_versioned->tensor : view->inner_plain->tensor;
	tensor.data = (void *)(uintptr_t)address;
	tensor.byte_offset = 0;
	if (!as_versioned) {
		view->out.plain = (struct dl_plain){.tensor = tensor, .deleter = drop_plain};
		return &view->out.plain;
	}
	uint64_t flags = versioned ? view->inner_versioned->flags : 0;
	view->out.versioned = (struct dl_versioned){
		.major = 1, .minor = 0, .deleter = drop_versioned, .flags = flags | FLAG_READ_ONLY, .tensor = tensor};
	return &view->out.versioned;
}

__attribute__((visibility("default"))) void *cuconst_dlpack_view_known(void *managed, int versioned, int as_versioned)
{
	const struct dl_versioned *with_flags = versioned ? managed : NULL;
	const struct dl_plain *plain = managed;
	if (!managed || (with_flags && (with_flags->major != VERSION || with_flags->flags & FLAG_COPIED)))
		return NULL;
	const struct dl_tensor *tensor = with_flags ? &with_flags->tensor : &plain->tensor;
	uint64_t at = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
	uint64_t address = cuconst_view_known(at, bytes_of(tensor));
	return address ? cuconst_dlpack_view(managed, versioned, as_versioned, address) : NULL;
}
