/*
 * From a return address to library, offset and symbol. Takes the loader's lock where glibc has no lock-free way: call
 * it with no lock held. Thread-safe.
 */
#ifndef CUCONST_REPORT_NATIVE_H
#define CUCONST_REPORT_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

struct native_frame {
	const char *path;   /* of the library or program; the loader's own text, valid until the library is unloaded */
	uint64_t offset;    /* of the address in the file's address space, as addr2line takes it */
	const char *symbol; /* exported symbol whose code it lies in, NULL when none; interned */
};

/* False when the address lies in no loaded object. `with_symbol`: a look-up of some microseconds. */
bool native_resolve(void *address, bool with_symbol, struct native_frame *ret_frame);

/* "libcufft.so.12" of "/usr/lib/libcufft.so.12". Never NULL. */
const char *native_base_name(const char *path);

/*
 * Is this file one of the driver's, of NVIDIA's math libraries', or plumbing (libc, libffi, the shim) that never is the
 * culprit?
 */
bool native_is_plumbing(const char *base_name);

/* Is it the CUDA runtime, as a library of its own? */
bool native_is_runtime(const char *base_name);

/*
 * Fills `out` with the caller's stack, innermost first: from the return address `caller` (NULL, or not found: the first
 * frame outside this library) to the first frame inside a Python interpreter, whose own frames say nothing. Some
 * microseconds.
 */
int native_capture(void **out, int max, void *caller);

/*
 * The same, and where on the stack the frames' return addresses lie; ret_shape->count is 0 when that is not known of each. `way`, not 0: the same one means that this is as far
 * from the frame of the hook as ever.
 */
struct stack_shape;
int native_capture_shape(void **out, int max, void *caller, unsigned way, struct stack_shape *ret_shape);

/* The first backtrace() loads libgcc_s and allocates. */
void native_prepare(void);

#endif
