/*
 * cuconst: read-only ranges of CUDA device memory.
 *
 * A program that includes this header needs no CUDA header and links nothing: the functions are found at run time in
 * libcuconst.so when it was preloaded (LD_PRELOAD, or `cuconst run -- PROGRAM`). When it was not, every call answers
 * CUCONST_ERROR_NOT_ACTIVE and does nothing. C and C++.
 *
 * Addresses are device addresses. Ranges are half-open byte ranges, [ptr, ptr + bytes). One byte is the granularity.
 * All functions are thread-safe, may be called with or without a CUDA context current unless said otherwise, and never
 * throw. None may be called from a signal handler. Outputs (`ret_...`) are untouched unless a call answers CUCONST_OK.
 */
#ifndef CUCONST_H
#define CUCONST_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUCONST_VERSION 100 /* major * 10000 + minor * 100 + patch */

typedef uint64_t cuconst_handle; /* names one protection; 0 is none */

typedef enum cuconst_result {
	CUCONST_OK = 0,
	CUCONST_ERROR_NOT_ACTIVE = 1, /* libcuconst.so is not preloaded, or is disabled in this process (said on stderr) */
	CUCONST_ERROR_INVALID_VALUE = 2, /* NULL pointer, zero bytes, a range that wraps, or unknown flags */
	CUCONST_ERROR_NOT_DEVICE = 3,    /* the address is not device-accessible memory of a live allocation */
	CUCONST_ERROR_OUT_OF_RANGE = 4,  /* the range goes beyond the end of its allocation */
	CUCONST_ERROR_STALE_HANDLE = 5,  /* unprotected before, or ended because its memory was freed */
	CUCONST_ERROR_BAD_HANDLE = 6,    /* no handle that was ever given in this process */
	CUCONST_ERROR_OUT_OF_MEMORY = 7, /* host or device memory for the bookkeeping or the baseline */
	CUCONST_ERROR_CUDA = 8, /* the driver refused what a baseline or check needs: cuconst_last_cuda_error() */
	CUCONST_ERROR_CHANGED = 9, /* cuconst_check, cuconst_unprotect: bytes differ from the baseline; a record was written */
	CUCONST_ERROR_BUSY = 10, /* a stream capture is running: nothing was compared */
	/* cuconst_view() only: why there can be no read-only view. cuconst_result_text() says what can be done. */
	CUCONST_ERROR_TWINS_OFF = 11,      /* by the option twins=off, or the driver has no virtual memory management */
	CUCONST_ERROR_PLAIN_MEMORY = 12,   /* memory of cuMemAlloc, and the option is not twins=all */
	CUCONST_ERROR_POOL_MEMORY = 13,    /* memory of cuMemAllocAsync, of a pool, or of a graph */
	CUCONST_ERROR_MANAGED_MEMORY = 14, /* cuMemAllocManaged */
	CUCONST_ERROR_HOST_MEMORY = 15,    /* pinned or registered host memory */
	CUCONST_ERROR_NO_ROOM = 16         /* no address space, or no memory for page tables, for the second mapping */
} cuconst_result;

/*
 * Flags of cuconst_protect().
 *
 * NO_BASELINE  judge calls, and launches by their kernel's code, only: take no digest, compare no bytes
 * STREAM       `stream` is given, and its pending work produces the bytes; without it the context is synchronised
 * VERIFY_ONLY  refuse no kernel for this range, compare bytes instead: its address is rightly the base of stores beyond it (paged caches)
 */
#define CUCONST_NO_BASELINE 1u
#define CUCONST_STREAM 2u
#define CUCONST_VERIFY_ONLY 4u

/*
 * Optional facts about a protection. Set `size` to sizeof(struct cuconst_protect_info); zero the rest. Strings are
 * UTF-8, and copied.
 */
struct cuconst_protect_info {
	size_t size;
	const char *label; /* shown in records; NULL: none */
	const char *owner; /* glob over library file names that may write, e.g. "*xla_cuda_plugin*"; NULL: nobody */
	const char *file;  /* where the protection was asked for; NULL: found by the shim (Python) */
	const char *function;
	int line;
	void *stream; /* CUstream, with CUCONST_STREAM */
};

/* One protected range, as cuconst_query() tells it. */
struct cuconst_range_info {
	uint64_t ptr, bytes;
	cuconst_handle handle;
	uint64_t checks;     /* calls and launches judged against it, but for kernels that cannot store there */
	uint64_t violations; /* records of kind violation that name it */
	char label[256];     /* cut at 255 bytes */
};

/* Counters of this process since it began, or since the fork that made it. All but `ranges` and `bytes` only grow. */
struct cuconst_stats {
	size_t size;       /* in: sizeof(struct cuconst_stats); members beyond it are not written */
	uint64_t ranges;   /* protected now */
	uint64_t bytes;    /* sum of their sizes */
	uint64_t calls;    /* driver calls that can write and were seen, copies, sets, memory operations */
	uint64_t launches; /* kernel launches seen */
	uint64_t graph_launches;
	uint64_t checked;  /* calls and launches judged against at least one range */
	uint64_t verified; /* checks on the device that came back */
	uint64_t violations;
	uint64_t denied; /* of these, refused before the damage */
	uint64_t inconclusive;
	uint64_t unverified; /* checks that could not be made or had not come back at the end */
	uint64_t suppressed;
	/*
	 * Launches with an address in an allocation that holds a protected range, by the worst of what the kernel's
	 * code says of such addresses. Others concern no range.
	 */
	uint64_t clean; /* none is stored through: not checked. Once a kernel's code is known, what it only reads is not looked at, nor counted here */
	uint64_t near;  /* one beside a range is stored through */
	uint64_t unknown; /* the kernel stores through addresses that did not come from its parameters, or could not be read */
	uint64_t stores; /* one in a range is stored through */
};

/*
 * Makes [ptr, ptr + bytes) read-only for everyone but its owner. Takes the baseline: waits for the context's pending
 * work unless a stream is given. `label` and `info` may be NULL. Needs the range's context to be current, or its
 * primary context to exist. Ranges may overlap and repeat: each call is a protection of its own, and ends by its own
 * handle, which the caller has to keep. Answers INVALID_VALUE, NOT_ACTIVE, NOT_DEVICE, OUT_OF_RANGE, OUT_OF_MEMORY or
 * CUDA when nothing was protected.
 */
cuconst_result cuconst_protect(uint64_t ptr, size_t bytes, const char *label, unsigned flags,
                               const struct cuconst_protect_info *info, cuconst_handle *ret_handle);

/*
 * Ends one protection after a last check, for which it waits (none with CUCONST_NO_BASELINE). Answers CHANGED when the
 * check found a change, BUSY when a stream capture was running, so that none could be made (counted as "ended
 * unverified"), CUDA when it failed: the protection has ended then, too. STALE_HANDLE: was ended before. BAD_HANDLE,
 * NOT_ACTIVE: nothing was done. Any thread may lift it: the handle is the right to do so.
 */
cuconst_result cuconst_unprotect(cuconst_handle handle);

/*
 * As cuconst_unprotect(), without the check, without waiting and without any CUDA call: for finalizers. Counted as
 * "ended unverified".
 */
cuconst_result cuconst_release(cuconst_handle handle);

/*
 * Waits for pending work, compares one range (or all: handle 0) with its baseline. CUCONST_OK: unchanged, or without a
 * baseline. CHANGED: a record was written, and what is there now is the new baseline. BUSY while a stream capture is
 * running, CUDA when the comparison failed; OUT_OF_MEMORY, STALE_HANDLE, BAD_HANDLE, NOT_ACTIVE: nothing was compared.
 */
cuconst_result cuconst_check(cuconst_handle handle);

/*
 * The protected ranges that overlap [ptr, ptr + bytes), by ascending address: writes up to `max` to `out` (NULL when
 * `max` is 0), and how many there are in all to *ret_count. Makes no CUDA call. Answers INVALID_VALUE, NOT_ACTIVE or
 * OUT_OF_MEMORY on failure.
 */
cuconst_result cuconst_query(uint64_t ptr, size_t bytes, struct cuconst_range_info *out, size_t max, size_t *ret_count);

/* Fills what `size` has room for. INVALID_VALUE: NULL, or `size` is not set. Makes no CUDA call. */
cuconst_result cuconst_stats(struct cuconst_stats *ret_stats);

/*
 * *ret_view is an address of the same bytes through which nobody can write: the GPU's MMU refuses stores, the driver refuses copies and sets. The owner goes
 * on using `ptr`, and may write, free and use the memory again meanwhile: nothing is checked, so nothing is reported of
 * that. A view needs no end: it is there as long as the memory is mapped, and dangles like `ptr` afterwards. The view
 * of a view is itself. *ret_view is untouched on failure.
 */
cuconst_result cuconst_view(uint64_t ptr, size_t bytes, uint64_t *ret_view);

/*
 * For language bindings: what cuconst_view() answers, where that takes no work: it only looks up, asks no driver and
 * waits for nobody, so an interpreter's lock may be held. 0: cuconst_view() makes the view, or says why there is none.
 */
uint64_t cuconst_view_known(uint64_t ptr, size_t bytes);

/*
 * For language bindings: `managed` is a DLManagedTensorVersioned of DLPack 1.x, or a DLManagedTensor if not
 * `versioned`, that the caller owns. Returns another one, of the version that is wanted, with its data at `address`
 * and, where there are flags, read-only. Its deleter needs no interpreter, and deletes `managed`, too. NULL: no memory,
 * or no tensor; nothing has changed.
 */
void *cuconst_dlpack_view(void *managed, int versioned, int as_versioned, uint64_t address);

/*
 * As cuconst_dlpack_view(), at the address that cuconst_view_known() has. NULL also: it has none, or the tensor is more
 * than items of whole bytes without gaps.
 */
void *cuconst_dlpack_view_known(void *managed, int versioned, int as_versioned);

/* What a result means and what can be done about it, in English. Static text, never NULL. */
const char *cuconst_result_text(cuconst_result result);

/* Version of the loaded library, as CUCONST_VERSION; 0 when it is not preloaded. */
int cuconst_version(void);

/* The CUresult behind this thread's last CUCONST_ERROR_CUDA, CUCONST_ERROR_NOT_DEVICE or CUCONST_ERROR_NO_ROOM. */
int cuconst_last_cuda_error(void);

#ifndef CUCONST_BUILDING
/* The fallback: each name becomes a look-up in what is loaded. Defined here so that nothing needs to be linked. */
#define CUCONST_CALL_(name, type, args, none)                                                                          \
	do {                                                                                                           \
		type fn_ = NULL;                                                                                       \
		void *found_ = dlsym(CUCONST_ANYWHERE_, #name);                                                        \
		memcpy(&fn_, &found_, sizeof fn_); /* ISO C has no cast from an object's address to a function's */    \
		return fn_ ? fn_ args : none;                                                                          \
	} while (0)
#define CUCONST_ANYWHERE_ NULL /* RTLD_DEFAULT; <dlfcn.h> has that word for programs with _GNU_SOURCE only */

static inline cuconst_result cuconst_protect_(uint64_t ptr, size_t bytes, const char *label, unsigned flags,
                                              const struct cuconst_protect_info *info, cuconst_handle *ret_handle)
{
	typedef cuconst_result (*fn)(uint64_t, size_t, const char *, unsigned, const struct cuconst_protect_info *,
	                             cuconst_handle *);
	CUCONST_CALL_(cuconst_protect, fn, (ptr, bytes, label, flags, info, ret_handle), CUCONST_ERROR_NOT_ACTIVE);
}
static inline cuconst_result cuconst_unprotect_(cuconst_handle handle)
{
	typedef cuconst_result (*fn)(cuconst_handle);
	CUCONST_CALL_(cuconst_unprotect, fn, (handle), CUCONST_ERROR_NOT_ACTIVE);
}
static inline cuconst_result cuconst_release_(cuconst_handle handle)
{
	typedef cuconst_result (*fn)(cuconst_handle);
	CUCONST_CALL_(cuconst_release, fn, (handle), CUCONST_ERROR_NOT_ACTIVE);
}
static inline cuconst_result cuconst_check_(cuconst_handle handle)
{
	typedef cuconst_result (*fn)(cuconst_handle);
	CUCONST_CALL_(cuconst_check, fn, (handle), CUCONST_ERROR_NOT_ACTIVE);
}
static inline cuconst_result cuconst_query_(uint64_t ptr, size_t bytes, struct cuconst_range_info *out, size_t max,
                                            size_t *ret_count)
{
	typedef cuconst_result (*fn)(uint64_t, size_t, struct cuconst_range_info *, size_t, size_t *);
	CUCONST_CALL_(cuconst_query, fn, (ptr, bytes, out, max, ret_count), CUCONST_ERROR_NOT_ACTIVE);
}
static inline cuconst_result cuconst_stats_(struct cuconst_stats *ret_stats)
{
	typedef cuconst_result (*fn)(struct cuconst_stats *);
	CUCONST_CALL_(cuconst_stats, fn, (ret_stats), CUCONST_ERROR_NOT_ACTIVE);
}
static inline cuconst_result cuconst_view_(uint64_t ptr, size_t bytes, uint64_t *ret_view)
{
	typedef cuconst_result (*fn)(uint64_t, size_t, uint64_t *);
	CUCONST_CALL_(cuconst_view, fn, (ptr, bytes, ret_view), CUCONST_ERROR_NOT_ACTIVE);
}
static inline uint64_t cuconst_view_known_(uint64_t ptr, size_t bytes)
{
	typedef uint64_t (*fn)(uint64_t, size_t);
	CUCONST_CALL_(cuconst_view_known, fn, (ptr, bytes), 0);
}
static inline void *cuconst_dlpack_view_(void *managed, int versioned, int as_versioned, uint64_t address)
{
	typedef void *(*fn)(void *, int, int, uint64_t);
	CUCONST_CALL_(cuconst_dlpack_view, fn, (managed, versioned, as_versioned, address), NULL);
}
static inline void *cuconst_dlpack_view_known_(void *managed, int versioned, int as_versioned)
{
	typedef void *(*fn)(void *, int, int);
	CUCONST_CALL_(cuconst_dlpack_view_known, fn, (managed, versioned, as_versioned), NULL);
}
static inline const char *cuconst_result_text_(cuconst_result result)
{
	typedef const char *(*fn)(cuconst_result);
	CUCONST_CALL_(cuconst_result_text, fn, (result), "cuconst is not preloaded");
}
static inline int cuconst_version_(void)
{
	typedef int (*fn)(void);
	CUCONST_CALL_(cuconst_version, fn, (), 0);
}
static inline int cuconst_last_cuda_error_(void)
{
	typedef int (*fn)(void);
	CUCONST_CALL_(cuconst_last_cuda_error, fn, (), 0);
}
/* Macros with arguments, so that `struct cuconst_stats` keeps its name. */
#define cuconst_protect(ptr, bytes, label, flags, info, ret_handle)                                                    \
	cuconst_protect_(ptr, bytes, label, flags, info, ret_handle)
#define cuconst_unprotect(handle) cuconst_unprotect_(handle)
#define cuconst_release(handle) cuconst_release_(handle)
#define cuconst_check(handle) cuconst_check_(handle)
#define cuconst_query(ptr, bytes, out, max, ret_count) cuconst_query_(ptr, bytes, out, max, ret_count)
#define cuconst_stats(ret_stats) cuconst_stats_(ret_stats)
#define cuconst_view(ptr, bytes, ret_view) cuconst_view_(ptr, bytes, ret_view)
#define cuconst_view_known(ptr, bytes) cuconst_view_known_(ptr, bytes)
#define cuconst_dlpack_view(managed, versioned, as_versioned, address)                                                 \
	cuconst_dlpack_view_(managed, versioned, as_versioned, address)
#define cuconst_dlpack_view_known(managed, versioned, as_versioned)                                                    \
	cuconst_dlpack_view_known_(managed, versioned, as_versioned)
#define cuconst_result_text(result) cuconst_result_text_(result)
#define cuconst_version() cuconst_version_()
#define cuconst_last_cuda_error() cuconst_last_cuda_error_()
#endif

#ifdef __cplusplus
}
#endif

#endif
