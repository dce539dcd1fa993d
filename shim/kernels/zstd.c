#include "shim/kernels/zstd.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

typedef size_t (*decompress_fn)(void *to, size_t room, const void *from, size_t from_bytes);

static _Atomic uintptr_t decompress;
static void *(*_Atomic find_symbol)(void *library, const char *name) = dlsym;

void zstd_set_symbol_finder(void *(*symbol)(void *library, const char *name))
{
	atomic_store(&find_symbol, symbol);
}

/* Errors are sizes that no frame has: whatever is not the size that was promised is damage. */
static int unpack(uint8_t *to, size_t bytes, const uint8_t *from, size_t from_bytes)
{
	decompress_fn run = (decompress_fn)atomic_load_explicit(&decompress, memory_order_acquire);
	return run(to, bytes, from, from_bytes) == bytes ? 0 : -EINVAL;
}

fatbin_zstd zstd_decoder(void)
{
	if (atomic_load_explicit(&decompress, memory_order_acquire))
		return unpack;
	/* Two threads that come here at once both find the same; the handle is kept, so that the function stays. */
	int saved = errno;
	void *library = dlopen("libzstd.so.1", RTLD_LAZY | RTLD_LOCAL);
	uintptr_t found = library ? (uintptr_t)atomic_load(&find_symbol)(library, "ZSTD_decompress") : 0;
	errno = saved;
	if (!found)
		return NULL;
	atomic_store_explicit(&decompress, found, memory_order_release);
	return unpack;
}
