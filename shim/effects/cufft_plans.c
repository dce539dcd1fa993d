/*
 * Handles are small numbers that cuFFT gives out again. A slot belongs to one handle at a time and is reused after plan_forget(), so memory is
 * bounded by the plans alive at once. A program that destroys a plan while another thread uses it gets a mixed answer from cuFFT too;
 * here every field is an atomic of its own and the worst is a wrong length.
 */
#include "shim/effects/cufft_plans.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { NO_HANDLE = -1, BUCKETS = 64 }; /* CUFFT_PLAN_NULL is -1 */

struct slot {
	_Atomic int handle;
	_Atomic int rank;
	_Atomic bool complex_to_real;
	_Atomic uint64_t in_bytes, out_bytes;
	struct slot *next;
};
static _Atomic(struct slot *) buckets[BUCKETS];

static struct slot *find_slot(int handle)
{
	struct slot *slot = atomic_load(&buckets[(unsigned)handle % BUCKETS]);
	while (slot && atomic_load(&slot->handle) != handle)
		slot = slot->next;
	return slot;
}

static struct slot *take_slot(int handle)
{
	_Atomic(struct slot *) *bucket = &buckets[(unsigned)handle % BUCKETS];
	for (struct slot *slot = atomic_load(bucket); slot; slot = slot->next) {
		int nobody = NO_HANDLE;
		if (atomic_compare_exchange_strong(&slot->handle, &nobody, handle))
			return slot;
	}
	struct slot *slot = calloc(1, sizeof *slot);
	if (!slot)
		return NULL;
	atomic_store(&slot->handle, handle);
	slot->next = atomic_load(bucket);
	while (!atomic_compare_exchange_weak(bucket, &slot->next, slot))
		;
	return slot;
}

struct plan_type plan_type(int cufft_type)
{
	switch (cufft_type) {
	case 0x2a: /* R2C */
		return (struct plan_type){.real_in = true, .in_bytes = 4, .out_bytes = 8};
	case 0x2c: /* C2R */
		return (struct plan_type){.real_out = true, .in_bytes = 8, .out_bytes = 4};
	case 0x29: /* C2C */
		return (struct plan_type){.in_bytes = 8, .out_bytes = 8};
	case 0x6a: /* D2Z */
		return (struct plan_type){.real_in = true, .in_bytes = 8, .out_bytes = 16};
	case 0x6c: /* Z2D */
		return (struct plan_type){.real_out = true, .in_bytes = 16, .out_bytes = 8};
	case 0x69: /* Z2Z */
		return (struct plan_type){.in_bytes = 16, .out_bytes = 16};
	default:
		return (struct plan_type){0};
	}
}

static unsigned data_bytes(int data_type, bool *ret_real)
{
	static const struct {
		int type;
		bool real;
		unsigned bytes;
	} known[] = {
		{2, true, 2},  {0, true, 4},  {1, true, 8},   {14, true, 2},  /* R_16F R_32F R_64F R_16BF */
		{6, false, 4}, {4, false, 8}, {5, false, 16}, {15, false, 4}, /* C_16F C_32F C_64F C_16BF */
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].type == data_type) {
			*ret_real = known[i].real;
			return known[i].bytes;
		}
	return 0;
}

struct plan_type plan_type_of_data(int input, int output)
{
	struct plan_type type = {0};
	type.in_bytes = data_bytes(input, &type.real_in);
	type.out_bytes = data_bytes(output, &type.real_out);
	return type;
}

/* Bytes of `batch` contiguous transforms; of a complex side of a real transform only n/2 + 1 of the last dimension exist. 0: unknown. */
static uint64_t side_bytes(int rank, const long long *n, bool halved, unsigned element, long long batch)
{
	uint64_t bytes = element;
	if (batch <= 0 || __builtin_mul_overflow(bytes, (uint64_t)batch, &bytes))
		return 0;
	for (int i = 0; i < rank; i++) {
		uint64_t length = halved && i == rank - 1 ? (uint64_t)n[i] / 2 + 1 : (uint64_t)n[i];
		if (n[i] <= 0 || __builtin_mul_overflow(bytes, length, &bytes))
			return 0;
	}
	return bytes;
}

void plan_set(int handle, int rank, const long long *n, struct plan_type type, long long batch, bool simple)
{
	if (handle == NO_HANDLE || rank < 1)
		return;
	struct slot *slot = find_slot(handle);
	if (!slot)
		slot = take_slot(handle);
	if (!slot)
		return;
	bool half = type.real_in != type.real_out;
	uint64_t in = simple ? side_bytes(rank, n, half && !type.real_in, type.in_bytes, batch) : 0;
	uint64_t out = simple ? side_bytes(rank, n, half && !type.real_out, type.out_bytes, batch) : 0;
	atomic_store(&slot->complex_to_real, type.real_out && !type.real_in);
	atomic_store(&slot->in_bytes, in ? in : 1);
	atomic_store(&slot->out_bytes, out ? out : 1);
	atomic_store(&slot->rank, rank);
}

void plan_forget(int handle)
{
	struct slot *slot = handle == NO_HANDLE ? NULL : find_slot(handle);
	if (!slot)
		return;
	atomic_store(&slot->rank, 0);
	atomic_store(&slot->handle, NO_HANDLE);
}

void plan_get(int handle, struct plan *ret_plan)
{
	const struct slot *slot = handle == NO_HANDLE ? NULL : find_slot(handle);
	int rank = slot ? atomic_load(&slot->rank) : 0;
	*ret_plan = (struct plan){.in_bytes = 1, .out_bytes = 1};
	if (rank)
		*ret_plan = (struct plan){.rank = rank,
		                          .complex_to_real = atomic_load(&slot->complex_to_real),
		                          .in_bytes = atomic_load(&slot->in_bytes),
		                          .out_bytes = atomic_load(&slot->out_bytes)};
}
