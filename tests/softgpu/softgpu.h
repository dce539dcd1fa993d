/*
 * Private entry points of the software GPU, for tests. They are exported by tests/softgpu's libcuda.so.1 next to the
 * cu* functions; the real driver has none of them, so look them up by dlsym and go without where they are missing.
 *
 * All are thread-safe and may be called before cuInit. The environment variables that steer the library are in
 * tests/softgpu/README.md.
 */
#ifndef SOFTGPU_H
#define SOFTGPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How often an exported function was called, by its exact symbol ("cuMemcpyHtoD_v2_ptds"), refused and failed calls
 * included. UINT64_MAX for a name that is not exported. */
uint64_t softgpu_calls(const char *symbol);
/* The sum over all exported functions. */
uint64_t softgpu_calls_total(void);
void softgpu_reset_calls(void);

/* The call trace: on, every call's symbol index is kept in call order, the newest 65536 of them. softgpu_trace(false)
 * stops it and keeps what is there; softgpu_trace(true) starts it empty. softgpu_traced returns the symbol of call n
 * since then (0 the oldest kept), or NULL. */
void softgpu_trace(bool on);
const char *softgpu_traced(size_t n);

/* Fail a later call of one function: call number `nth` from now (1: the next) returns `status` (a CUresult) without
 * being run. False for an unknown symbol or when 32 of these wait already. The same as SOFTGPU_FAIL. */
bool softgpu_fail(const char *symbol, uint64_t nth, int status);
void softgpu_fail_none(void);

/* Every operation of every stream waits this long before it runs. The same as SOFTGPU_DELAY_US. */
void softgpu_delay_us(unsigned microseconds);

/* The write log: on, every byte of device memory that an operation wrote (kernels, copies, sets, memory operations) is
 * remembered as extents in the order they were written; adjacent extents of one writer are merged. At most 2^20
 * extents: after that softgpu_writes_lost grows. */
struct softgpu_write {
	uint64_t address, bytes;
};
void softgpu_log_writes(bool on); /* on: starts empty */
/* Copies up to `capacity` extents from index `first` on; returns how many there are in all. */
size_t softgpu_writes(struct softgpu_write *out, size_t first, size_t capacity);
uint64_t softgpu_writes_lost(void);
/* Whether a logged write touched [address, address + bytes). */
bool softgpu_wrote(uint64_t address, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
