/*
 * The PTX interpreter of the software GPU: text in, launches out. Knows nothing of the driver API.
 *
 * Device addresses are host addresses of the same process (the driver half reserves one big region and backs it with a
 * memfd), so a load is a load, after a check that the bytes are live and writable.
 */
#ifndef SOFTGPU_PTX_H
#define SOFTGPU_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_module;
struct ptx_function; /* an .entry; owned by its module */

enum ptx_status {
	PTX_OK = 0,
	PTX_INVALID, /* malformed text: CUDA_ERROR_INVALID_PTX */
	PTX_UNSUPPORTED, /* an instruction or directive this interpreter does not know: CUDA_ERROR_NOT_SUPPORTED; names it and its line */
	PTX_UNSUPPORTED_VERSION, /* of the language: CUDA_ERROR_UNSUPPORTED_PTX_VERSION */
	PTX_OUT_OF_MEMORY,
	PTX_FAULT_ADDRESS, /* access outside live memory, or a store through a read-only mapping: CUDA_ERROR_ILLEGAL_ADDRESS */
	PTX_FAULT_ALIGN,   /* CUDA_ERROR_MISALIGNED_ADDRESS */
	PTX_FAULT_TRAP,    /* trap: CUDA_ERROR_LAUNCH_FAILED */
	PTX_FAULT_BARRIER, /* threads of a block wait at barriers that the others never reach */
	PTX_FAULT_LIMIT,   /* instruction limit: CUDA_ERROR_LAUNCH_TIMEOUT */
	PTX_FAULT_ASSERT,  /* a failed assert() of the kernel: CUDA_ERROR_ASSERT */
	PTX_BAD_LAUNCH,    /* shape beyond limits: CUDA_ERROR_INVALID_VALUE */
};

enum ptx_wrap { PTX_WRAP_REPEAT, PTX_WRAP_CLAMP, PTX_WRAP_MIRROR, PTX_WRAP_BORDER };
enum ptx_channel { PTX_CHANNEL_UNSIGNED, PTX_CHANNEL_SIGNED, PTX_CHANNEL_FLOAT };

/* What a handle of a texture or surface stands for. */
struct ptx_texture {
	bool is_surface, is_line; /* a line of plain memory: beyond it all is zero */
	bool normalized;          /* coordinates from 0 to 1 */
	bool as_float;            /* whole numbers of up to 16 bits as fractions of the largest */
	uint8_t dimensions, channels, channel_bytes;
	enum ptx_channel kind;
	enum ptx_wrap wrap[3];
	uint32_t size[3]; /* texels */
	uint64_t address;
	size_t pitch, slice; /* bytes from a row, and from a layer, to the next */
	float border[4];
};

/* The memory a launch may touch. */
struct ptx_memory {
	/*
	 * May [address, address + bytes) be read (or written)? Called for every global access; must be fast and
	 * thread-safe.
	 */
	bool (*check)(void *data, uint64_t address, size_t bytes, bool write);
	/* Allocates zeroed device memory for a module's .global variables; returns its address or 0. */
	uint64_t (*alloc)(void *data, size_t bytes, size_t align);
	void (*free)(void *data, uint64_t address);
	/* NULL, or told of every store that happened (the write log). */
	void (*wrote)(void *data, uint64_t address, size_t bytes);
	void *data;
	/*
	 * malloc() and free() of kernels: 0 when there is nothing left, false for an address that did not come from
	 * there. NULL: nothing ever is.
	 */
	uint64_t (*heap_take)(void *data, size_t bytes);
	bool (*heap_give)(void *data, uint64_t address);
	/* cudaGraphSetConditional() of kernels: false for no such handle. NULL: there are none. */
	bool (*conditional)(void *data, uint64_t handle, uint32_t value);
	/* A texture or surface by its handle; false for no such handle. NULL: there are none. */
	bool (*texture)(void *data, uint64_t handle, struct ptx_texture *ret_texture);
};

struct ptx_fault {
	enum ptx_status status;
	int line;         /* of the PTX text; 0 unknown */
	uint64_t address; /* for address faults */
	char message[256];
};

struct ptx_launch {
	uint32_t grid[3], block[3];
	uint32_t cluster[3];   /* blocks, which run together; 0: as the kernel says */
	uint32_t shared_bytes; /* dynamic shared memory */
	const void *params;    /* one block, laid out as ptx_function_param says */
	size_t params_bytes;
	uint64_t instruction_limit; /* per thread block; 0: the default of 2^32 */
	unsigned host_threads;      /* blocks run in parallel on this many; 0: as many as cores */
};

/*
 * Parses. On failure returns the status and writes what is wrong, with line numbers, into log (cut, always terminated).
 */
enum ptx_status ptx_load(const char *text, size_t bytes, const struct ptx_memory *memory, char *log, size_t log_bytes,
                         struct ptx_module **ret_module);
void ptx_unload(struct ptx_module **module);

/* By name; NULL when there is none. By index: 0 <= index < count. */
struct ptx_function *ptx_find(struct ptx_module *module, const char *name);
size_t ptx_function_count(const struct ptx_module *module);
struct ptx_function *ptx_function_at(struct ptx_module *module, size_t index);
const char *ptx_function_name(const struct ptx_function *function);
/* False when there is no parameter of that index. */
bool ptx_function_param(const struct ptx_function *function, size_t index, size_t *ret_offset, size_t *ret_bytes);
size_t ptx_function_params_bytes(const struct ptx_function *function);
size_t ptx_function_static_shared(const struct ptx_function *function);
/* The largest block that .maxntid and .reqntid allow; 1024 where they say nothing. */
unsigned ptx_function_max_threads(const struct ptx_function *function);
/* What .reqnctapercluster says; false where it says nothing. */
bool ptx_function_cluster(const struct ptx_function *function, uint32_t ret_size[3]);
/* A .global or .const variable; false when there is none. */
bool ptx_global(const struct ptx_module *module, const char *name, uint64_t *ret_address, size_t *ret_bytes);

/* Runs to the end. Thread-safe for different launches of the same function. */
enum ptx_status ptx_run(const struct ptx_function *function, const struct ptx_launch *launch,
                        struct ptx_fault *ret_fault);

/*
 * Host memory that a launch takes at a time, in bytes, and leaves to later launches. 0: each piece alone, and given
 * back, so that tests can see each one fail.
 */
extern size_t ptx_slab_bytes;

#endif
