/*
 * Memory for kernels on the software GPU, cut into buffers, and which of them a kernel wrote. Whatever lies outside of them may not be touched, and no kernel has
 * variables of its own.
 */
#ifndef CUCONST_TESTS_KERNELS_WRITE_LOG_H
#define CUCONST_TESTS_KERNELS_WRITE_LOG_H

#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/ptx.h"

#define WRITE_LOG_BUFFERS 16

struct write_log {
	char *bytes;
	unsigned buffers;
	size_t each, gap; /* a gap behind each: what leaves one does not land in the next */
	bool wrote[WRITE_LOG_BUFFERS];
};

static inline uint64_t write_log_address(const struct write_log *log, unsigned buffer)
{
	return (uintptr_t)log->bytes + (uint64_t)buffer * (log->each + log->gap);
}

static inline size_t write_log_bytes(const struct write_log *log)
{
	return log->buffers * (log->each + log->gap);
}

/* False: no memory, or too many buffers. The caller frees log->bytes. */
static inline bool write_log_open(struct write_log *log)
{
	log->bytes = log->buffers <= WRITE_LOG_BUFFERS ? aligned_alloc(4096, write_log_bytes(log)) : NULL;
	return log->bytes;
}

/* Nothing has been written yet. */
static inline void write_log_forget(struct write_log *log)
{
	memset(log->wrote, 0, sizeof(log->wrote));
}

/* The buffer that holds all of these bytes; log->buffers for none. */
static inline unsigned write_log_buffer(const struct write_log *log, uint64_t address, size_t bytes)
{
	uint64_t at = address - (uintptr_t)log->bytes, step = log->each + log->gap;

	return at >= log->buffers * step || at % step + bytes > log->each ? log->buffers : (unsigned)(at / step);
}

static inline bool write_log_check(void *data, uint64_t address, size_t bytes, bool write)
{
	const struct write_log *log = data;

	return write_log_buffer(log, address, bytes) < log->buffers;
}

static inline void write_log_wrote(void *data, uint64_t address, size_t bytes)
{
	struct write_log *log = data;
	unsigned buffer = write_log_buffer(log, address, bytes);

	if (buffer < log->buffers)
		log->wrote[buffer] = true;
}

static inline uint64_t write_log_no_variable(void *data, size_t bytes, size_t align)
{
	return 0;
}

static inline void write_log_free_nothing(void *data, uint64_t address)
{
}

static inline struct ptx_memory write_log_memory(struct write_log *log)
{
	return (struct ptx_memory){.check = write_log_check,
	                           .alloc = write_log_no_variable,
	                           .free = write_log_free_nothing,
	                           .wrote = write_log_wrote,
	                           .data = log};
}

#endif
