/*
 * What is known of cuFFT plans: enough for an execution's contract.
 */
#ifndef CUCONST_EFFECTS_CUFFT_PLANS_H
#define CUCONST_EFFECTS_CUFFT_PLANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Element types of one transform. A size of 0: unknown. */
struct plan_type {
	bool real_in, real_out;
	unsigned in_bytes, out_bytes; /* of one element */
};

struct plan {
	int rank; /* 0: nothing is known of this plan */
	bool complex_to_real;
	uint64_t in_bytes,
		out_bytes; /* read from idata, written to odata, from its first byte on; 1 where the layout is not simple */
};

struct plan_type plan_type(int cufft_type);
struct plan_type plan_type_of_data(int input, int output); /* cudaDataType */

/* Remembers a plan. `simple`: the basic layout, contiguous from the pointer on. Replaces what was known of the handle. Thread-safe, lock-free. */
void plan_set(int handle, int rank, const long long *n, struct plan_type type, long long batch, bool simple);
void plan_forget(int handle);

/* Unknown handles give rank 0 and one byte each. */
void plan_get(int handle, struct plan *ret_plan);

#endif
