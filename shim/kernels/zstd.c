/*
 * zstd by the process's own libzstd, or the system's: fatbins of CUDA 13 are packed with it by default. Nothing links to it, since the library lives in
 * other people's processes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

#include "shim/kernels/image.h"

typedef size_t (*decompress_function)(void *to, size_t room, const void *from, size_t bytes);

static void *(*_Atomic find_symbol)(void *library, const char *name);

void zstd_set_symbol_finder(void *(*symbol)(void *library, const char *name))
{
	atomic_store(&find_symbol, symbol);
}

/* Threads that come at the same time do the same work twice. */
static decompress_function find(void)
{
	static _Atomic uintptr_t known; /* 1: there is none */
	uintptr_t function = atomic_load_explicit(&known, memory_order_acquire);
	void *(*symbol)(void *, const char *) = atomic_load(&find_symbol);
	if (!function && symbol) {
		void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
		function = library ? (uintptr_t)symbol(library, "ZSTD_decompress") : 0;
		atomic_store_explicit(&known, function ? function : 1, memory_order_release);
	}
	return function > 1 ? (decompress_function)function : NULL;
}

int zstd_unpack(uint8_t *to, size_t bytes, const uint8_t *from, size_t from_bytes)
{
	decompress_function decompress = find();
	if (!decompress)
		return -ENOTSUP;
	/* An error is a number near SIZE_MAX. */
	return decompress(to, bytes, from, from_bytes) == bytes ? 0 : -EINVAL;
}
