/*
 * A fuzzer's entry: any bytes as PTX. What parses is run, with few instructions, on a memory with guard pages around
 * it, where only the bytes that ptx_memory.check allows are live: a load or store that was not checked, or checked
 * wrongly, dies at once.
 *
 * Each text is parsed from an allocation that ends with it, so that reading past its end is seen by a sanitizer.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/softgpu/ptx.h"

#define LIVE_BYTES 65536u /* whole pages */
#define GUARD_BYTES (1u << 20)
#define DATA_BYTES 4096u
#define INSTRUCTIONS 4000u
#define VARIABLES 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct {
	unsigned char *live;
	size_t used;
	uint64_t given[VARIABLES]; /* addresses that the module has and must give back */
	unsigned count;
} room;

#define MUST(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "fuzz_ptx: not so: %s\n", #condition);                                         \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

static bool check(void *data, uint64_t address, size_t bytes, bool write)
{
	uint64_t start = (uint64_t)(uintptr_t)room.live;

	(void)data;
	(void)write;
	return address >= start && address - start <= LIVE_BYTES && bytes <= LIVE_BYTES - (address - start);
}

static uint64_t take(void *data, size_t bytes, size_t align)
{
	size_t start = (room.used + align - 1) / align * align;

	(void)data;
	if (room.count == VARIABLES || start > LIVE_BYTES || bytes > LIVE_BYTES - start)
		return 0;
	room.used = start + bytes;
	memset(room.live + start, 0, bytes);
	room.given[room.count] = (uint64_t)(uintptr_t)(room.live + start);
	return room.given[room.count++];
}

static void give(void *data, uint64_t address)
{
	(void)data;
	for (unsigned n = 0; n < room.count; n++)
		if (room.given[n] == address) {
			room.given[n] = room.given[--room.count];
			return;
		}
	MUST(!"an address was given back that was not taken");
}

/* A heap of one block, which is always the same and may be taken and given back as often as a kernel likes. */
static uint64_t heap_take(void *data, size_t bytes)
{
	(void)data;
	return bytes <= 64 ? (uint64_t)(uintptr_t)(room.live + LIVE_BYTES - DATA_BYTES) : 0;
}

static bool heap_give(void *data, uint64_t address)
{
	(void)data;
	return address == (uint64_t)(uintptr_t)(room.live + LIVE_BYTES - DATA_BYTES);
}

static bool conditional(void *data, uint64_t handle, uint32_t value)
{
	(void)data;
	return (handle ^ value) & 1;
}

/* Every handle is a texture or a surface of some shape: eight bytes to a texel, all of them live. */
static bool texture(void *data, uint64_t handle, struct ptx_texture *ret_texture)
{
	(void)data;
	*ret_texture = (struct ptx_texture){.is_surface = handle & 1,
	                                    .is_line = !(handle & 1) && (handle & 2),
	                                    .normalized = handle >> 2 & 1,
	                                    .as_float = handle >> 3 & 1,
	                                    .dimensions = (uint8_t)(handle >> 4 & 3 ? handle >> 4 & 3 : 1),
	                                    .channels = 4,
	                                    .channel_bytes = 2,
	                                    .kind = handle >> 6 & 1 ? PTX_CHANNEL_FLOAT : PTX_CHANNEL_SIGNED,
	                                    .wrap = {handle >> 7 & 3, handle >> 9 & 3, handle >> 11 & 3},
	                                    .size = {4, 4, 2},
	                                    .address = (uint64_t)(uintptr_t)(room.live + LIVE_BYTES - DATA_BYTES),
	                                    .pitch = 32,
	                                    .slice = 128};
	return handle != 0;
}

static void open_room(void)
{
	unsigned char *all = mmap(NULL, LIVE_BYTES + 2 * (size_t)GUARD_BYTES, PROT_NONE,
	                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	MUST(all != MAP_FAILED);
	room.live = all + GUARD_BYTES;
	MUST(!mprotect(room.live, LIVE_BYTES, PROT_READ | PROT_WRITE));
}

static void run(const struct ptx_function *function)
{
	static uint64_t params[4096];
	struct ptx_launch launch = {.grid = {2, 1, 1},
	                            .block = {40, 1, 1},
	                            .shared_bytes = 256,
	                            .params = params,
	                            .params_bytes = ptx_function_params_bytes(function),
	                            .instruction_limit = INSTRUCTIONS,
	                            .host_threads = 1};
	struct ptx_fault fault = {0};

	MUST(launch.params_bytes <= sizeof(params));
	for (size_t n = 0; n < sizeof(params) / sizeof(params[0]); n++)
		params[n] = (uint64_t)(uintptr_t)(room.live + LIVE_BYTES - DATA_BYTES);
	enum ptx_status status = ptx_run(function, &launch, &fault);
	MUST(status == PTX_OK || status == PTX_OUT_OF_MEMORY ||
	     (status >= PTX_FAULT_ADDRESS && status <= PTX_BAD_LAUNCH));
	MUST(status == PTX_OK || fault.status == status);
	MUST(memchr(fault.message, 0, sizeof(fault.message)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct ptx_memory memory = {.check = check,
	                            .alloc = take,
	                            .free = give,
	                            .heap_take = heap_take,
	                            .heap_give = heap_give,
	                            .conditional = conditional,
	                            .texture = texture};
	char *copy = malloc(bytes ? bytes : 1), log[96];
	struct ptx_module *module = NULL;

	MUST(copy);
	if (!room.live)
		open_room();
	room.used = room.count = 0;
	if (bytes)
		memcpy(copy, data, bytes);
	memset(log, 'x', sizeof(log));
	enum ptx_status status = ptx_load(copy, bytes, &memory, log, sizeof(log), &module);
	free(copy);
	MUST(status >= PTX_OK && status <= PTX_OUT_OF_MEMORY);
	MUST((status == PTX_OK) == (module != NULL));
	MUST(status == PTX_OK || memchr(log, 0, sizeof(log)));
	for (size_t n = 0; module && n < ptx_function_count(module); n++)
		run(ptx_function_at(module, n));
	ptx_unload(&module);
	MUST(!module && !room.count);
	return 0;
}
