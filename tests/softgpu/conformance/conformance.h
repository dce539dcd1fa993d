/*
 * Questions about the CUDA driver. Each answer is one line on stdout, `family.question<TAB>answer`, that two correct
 * drivers of the same version and device agree on: names of status codes, yes or no, numbers that the API defines.
 * Never an address, a time, or a count of what else the machine does.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Questions asked one after the other in one context. A topic that may end its context, or its process, is `alone`. */
struct topic {
	const char *name;
	void (*ask)(void);
	bool alone;
};

struct family {
	const char *name;
	const struct topic *topics; /* ends with a NULL name */
	bool bare;                  /* the topics find CUDA untouched, and are each alone */
};

extern const struct family array_family, capture_family, context_family, copy_family, device_family, event_family,
	graph_family, graph_edit_family, init_family, ipc_family, launch_family, library_family, memory_family,
	memop_family, module_family, occupancy_family, pointer_family, pool_family, primary_family, resolve_family,
	set_family, sticky_family, stream_family, vmm_family;

/* The answers. The question's family is that of the running topic. */
void answer(const char *question, const char *format, ...) __attribute__((format(printf, 2, 3)));
void answer_status(const char *question, CUresult status);
void answer_yes(const char *question, bool yes);
void answer_number(const char *question, long long number);

/*
 * What a question needs before it can be asked: where that fails, says so as an answer and leaves the topic's process.
 */
void need_status(CUresult status, const char *what);
#define NEED(call) need_status((call), #call)

/* The primary context of device 0, made current. */
CUcontext enter(void);
/* Device memory that holds zeros; the process's end gives it back. */
CUdeviceptr device_memory(size_t bytes);
/* The first word of device memory. */
uint32_t word_at(CUdeviceptr address);
/* Kernels of conformance_ptx, in the current context. */
CUmodule kernels(void);
CUfunction kernel(const char *name);
/* Launches one thread of store(out, value); what the launch said. */
CUresult launch_store(CUstream stream, CUdeviceptr out, uint32_t value);
/* Keeps the stream busy until release_streams: what it is given meanwhile waits. */
void hold_stream(CUstream stream);
void release_streams(void);

/*
 * store(u64 out, u32 value): *out = value. load(u64 out, u64 in): *out = *in. add(u64 out, u32 value): atomic.
 * trap(): faults. shared(u64 out): 1024 static bytes, *out = 9. by_value(16 bytes that start with u64 out, u32 more):
 * *out = more. bounded(u64): .maxntid 64. data: 64 bytes of .global, 0 to 3 then zeros; fixed: 16 of .const, 7 first.
 */
extern const char conformance_ptx[];

#endif
