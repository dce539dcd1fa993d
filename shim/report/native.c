#include "shim/report/native.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "shim/report/site.h"
#include "shim/report/stack_memo.h"

/* Frames asked for: as many as a site has room for, and the shim's own before them. */
#define OWN_FRAMES 16
#define DEPTH (SITE_NATIVE_FRAMES + OWN_FRAMES)

/*
 * Wheels rename bundled libraries to name-HASH.so. `parts`: cuDNN is many libraries, libcudnn_ops.so and so on. Plain
 * prefixes would also take a user's libcuda_mine.so.
 */
static const struct {
	const char *name;
	bool parts;
} plumbing[] = {
	{"libcuda", false},       {"libcudart", false},       {"libcufft", false},      {"libcufftw", false},
	{"libcublas", false},     {"libcublasLt", false},     {"libcusparse", false},   {"libcusolver", false},
	{"libcurand", false},     {"libcudnn", true},         {"libnccl", false},       {"libnvrtc", false},
	{"libnvJitLink", false},  {"libcuconst", false},      {"libcusolverMg", false}, {"libnvblas", false},
	{"libcusparseLt", false}, {"libcufftMp", false},      {"libc", false},          {"libffi", false},
	{"libpthread", false},    {"ld-linux-x86-64", false},
};

typedef _Unwind_Reason_Code (*unwind_fn)(_Unwind_Trace_Fn step, void *data);
typedef _Unwind_Ptr (*unwind_ip_fn)(struct _Unwind_Context *context);
typedef _Unwind_Word (*unwind_cfa_fn)(struct _Unwind_Context *context);
typedef int (*find_object_fn)(void *address, struct dl_find_object *result);

static _Atomic uintptr_t find_object, unwind, unwind_ip, unwind_cfa;
static _Atomic uintptr_t own_start, own_end;

static pthread_once_t program_once = PTHREAD_ONCE_INIT;
static char program[PATH_MAX];

const char *native_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_library(const char *base_name, const char *name, bool parts)
{
	size_t length = strlen(name);
	const char *rest = base_name + length;

	return !strncmp(base_name, name, length) &&
	       (!strncmp(rest, ".so", 3) || (*rest == '-' && strstr(rest, ".so")) || (parts && *rest == '_'));
}

bool native_is_plumbing(const char *base_name)
{
	for (size_t i = 0; i < sizeof(plumbing) / sizeof(*plumbing); i++)
		if (is_library(base_name, plumbing[i].name, plumbing[i].parts))
			return true;
	return false;
}

bool native_is_runtime(const char *base_name)
{
	return is_library(base_name, "libcudart", false);
}

static void program_read(void)
{
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (length <= 0)
		snprintf(program, sizeof(program), "%s", program_invocation_name);
}

/* The loader has no name for the main program, and argv[0] is whatever its parent said. */
static const char *program_path(void)
{
	pthread_once(&program_once, program_read);
	return program;
}

/* Extent of the object that holds `address`. */
static bool object_of(void *address, uintptr_t *ret_start, uintptr_t *ret_end, const char **ret_path, uintptr_t *ret_base)
{
	find_object_fn find = (find_object_fn)atomic_load_explicit(&find_object, memory_order_relaxed);
	struct dl_find_object found;
	struct link_map *map;
	Dl_info info;

	if (find) { /* lock-free */
		if (find(address, &found))
			return false;
		*ret_start = (uintptr_t)found.dlfo_map_start;
		*ret_end = (uintptr_t)found.dlfo_map_end;
		map = found.dlfo_link_map;
	} else {
		if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
			return false;
		*ret_start = *ret_end = 0;
	}
	*ret_path = map->l_name && *map->l_name ? map->l_name : program_path();
	*ret_base = map->l_addr;
	return true;
}

/*
 * Symbols of return addresses: dladdr() reads the whole symbol table of the object, which takes milliseconds in a
 * library of some 10^5 symbols. An entry holds for the same address in the same file at the same base. Guarded by a
 * sequence number, odd while it is written.
 */
#define NAMES 4096
static struct name {
	_Atomic uint32_t sequence;
	_Atomic uintptr_t address, base;
	const char *_Atomic path; /* interned, and so is the symbol */
	const char *_Atomic symbol;
} names[NAMES];

static bool name_get(struct name *name, uintptr_t address, uintptr_t base, const char *path, const char **ret_symbol)
{
	uint32_t sequence = atomic_load_explicit(&name->sequence, memory_order_acquire);
	const char *symbol = atomic_load_explicit(&name->symbol, memory_order_acquire);

	if (sequence & 1 || atomic_load_explicit(&name->address, memory_order_acquire) != address ||
	    atomic_load_explicit(&name->base, memory_order_acquire) != base ||
	    atomic_load_explicit(&name->path, memory_order_acquire) != path ||
	    atomic_load_explicit(&name->sequence, memory_order_relaxed) != sequence)
		return false;
	*ret_symbol = symbol;
	return true;
}

static void name_keep(struct name *name, uintptr_t address, uintptr_t base, const char *path, const char *symbol)
{
	uint32_t sequence = atomic_load_explicit(&name->sequence, memory_order_relaxed);

	if (sequence & 1 || !atomic_compare_exchange_strong_explicit(&name->sequence, &sequence, sequence + 1,
	                                                             memory_order_acquire, memory_order_relaxed))
		return;
	atomic_store_explicit(&name->address, address, memory_order_release);
	atomic_store_explicit(&name->base, base, memory_order_release);
	atomic_store_explicit(&name->path, path, memory_order_release);
	atomic_store_explicit(&name->symbol, symbol, memory_order_release);
	atomic_store_explicit(&name->sequence, sequence + 2, memory_order_release);
}

static const char *symbol_of(uintptr_t address, uintptr_t base, const char *path)
{
	struct name *name = &names[(address * 0x9e3779b97f4a7c15u) >> 32 & (NAMES - 1)];
	const char *symbol = NULL;
	Dl_info info;

	path = site_intern(path);
	if (name_get(name, address, base, path, &symbol))
		return symbol;
	if (dladdr((void *)(address - 1), &info))
		symbol = site_intern(info.dli_sname);
	name_keep(name, address, base, path, symbol);
	return symbol;
}

bool native_resolve(void *address, bool with_symbol, struct native_frame *ret_frame)
{
	uintptr_t start, end, base;
	const char *path;

	/* A return address may be the first byte behind its function: look one back. */
	if (!address || !object_of((char *)address - 1, &start, &end, &path, &base))
		return false;
	ret_frame->path = path;
	ret_frame->offset = (uintptr_t)address - base;
	ret_frame->symbol = with_symbol ? symbol_of((uintptr_t)address, base, path) : NULL;
	return true;
}

void native_prepare(void)
{
	void *frames[2];
	uintptr_t start, end, base;
	const char *path;
	void *gcc;

	backtrace(frames, 2);
	/*
	 * Loaded by backtrace(), not linked: preloaded, it would be the system's, before a newer one that the program
	 * comes with.
	 */
	gcc = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (gcc) {
		atomic_store(&unwind_ip, (uintptr_t)dlvsym(gcc, "_Unwind_GetIP", "GCC_3.0"));
		atomic_store(&unwind_cfa, (uintptr_t)dlvsym(gcc, "_Unwind_GetCFA", "GCC_3.3"));
		atomic_store(&unwind, (uintptr_t)dlvsym(gcc, "_Unwind_Backtrace", "GCC_3.3"));
	}
	/* glibc 2.35. The symbol has a version; our own dlvsym passes such a name on to libc at once. */
	atomic_store(&find_object, (uintptr_t)dlvsym(RTLD_DEFAULT, "_dl_find_object", "GLIBC_2.35"));
	if (object_of((void *)(uintptr_t)native_prepare, &start, &end, &path, &base)) {
		atomic_store(&own_start, start);
		atomic_store(&own_end, end);
	}
}

static bool is_interpreter(const char *base_name)
{
	return !strncmp(base_name, "libpython", 9) || !strncmp(base_name, "python", 6);
}

struct stack {
	void **out;
	int count, max;
	void *caller;
	bool started;
	int skipped;                    /* frames before the first that counts */
	uintptr_t own_start, own_end;   /* this library */
	uintptr_t seen_start, seen_end; /* the object of the frame before, known to be no interpreter */
	unwind_ip_fn ip;
	unwind_cfa_fn cfa;        /* NULL: stacks are not kept */
	struct stack_shape shape; /* where the return addresses lie; count is 0 when that is not known of all */
};

/* `address` returns to this frame, so the word below the frame's stack pointer holds it. */
static void note_slot(struct stack *stack, struct _Unwind_Context *context, uintptr_t address)
{
	struct stack_shape *shape = &stack->shape;
	uintptr_t slot = stack->cfa ? stack->cfa(context) - sizeof(void *) : 0;

	if (shape->count != stack->count || stack->count == SITE_NATIVE_FRAMES)
		return;
	if (slot <= shape->top || slot - shape->top > UINT32_MAX || *(uintptr_t *)slot != address)
		return;
	shape->frame[shape->count] = address;
	shape->slot[shape->count++] = (uint32_t)(slot - shape->top);
}

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *data)
{
	struct stack *stack = data;
	uintptr_t address = stack->ip(context), base;
	const char *path;

	if (!stack->started) {
		if (stack->caller)
			stack->started = address == (uintptr_t)stack->caller;
		else
			stack->started = address < stack->own_start || address >= stack->own_end;
		if (!stack->started)
			return ++stack->skipped == OWN_FRAMES ? _URC_END_OF_STACK : _URC_NO_REASON;
	}
	if (!address)
		return _URC_END_OF_STACK; /* above a thread's first function */
	note_slot(stack, context, address);
	stack->out[stack->count++] = (void *)address;
	if (stack->count == stack->max)
		return _URC_END_OF_STACK;
	if (address > stack->seen_start && address <= stack->seen_end)
		return _URC_NO_REASON;
	/*
	 * From here on the interpreter calls itself: the Python frames say more, and each step of the unwinder costs.
	 */
	if (object_of((void *)(address - 1), &stack->seen_start, &stack->seen_end, &path, &base) &&
	    is_interpreter(native_base_name(path)))
		return _URC_END_OF_STACK;
	return _URC_NO_REASON;
}

/* As native_capture(); 0 when the caller was not met, or when there is no such way to unwind. */
static int walk_stack(void **out, int max, void *caller, uintptr_t top, unsigned way, struct stack_shape *ret_shape)
{
	unwind_fn walk = (unwind_fn)atomic_load_explicit(&unwind, memory_order_relaxed);
	struct stack stack = {
		.out = out,
		.max = max,
		.caller = caller,
		.own_start = atomic_load_explicit(&own_start, memory_order_relaxed),
		.own_end = atomic_load_explicit(&own_end, memory_order_relaxed),
		.ip = (unwind_ip_fn)atomic_load_explicit(&unwind_ip, memory_order_relaxed),
		.cfa = (unwind_cfa_fn)atomic_load_explicit(&unwind_cfa, memory_order_relaxed),
		.shape = {.caller = (uintptr_t)caller, .top = top, .way = way},
	};

	if (!walk || !stack.ip || max <= 0)
		return 0;
	walk(step, &stack);
	if (caller && max >= SITE_NATIVE_FRAMES && stack.count > 0 && stack.shape.count == stack.count) {
		stack_memo_keep(&stack.shape);
		*ret_shape = stack.shape;
	}
	return stack.count;
}

/* The way without libgcc_s's interface, and for a caller that is not on the stack. */
static int copy_stack(void **out, int max, void *caller)
{
	uintptr_t start = atomic_load_explicit(&own_start, memory_order_relaxed);
	uintptr_t end = atomic_load_explicit(&own_end, memory_order_relaxed);
	void *frames[DEPTH];
	int depth = backtrace(frames, DEPTH);
	int first = 0, count = 0;

	while (caller && first < depth && frames[first] != caller)
		first++;
	if (!caller || first == depth)
		for (first = 1; first < depth && (uintptr_t)frames[first] >= start && (uintptr_t)frames[first] < end;
		     first++)
			;
	if (caller && (first == depth || frames[first] != caller))
		out[count++] = caller; /* a stack that could not be unwound: at least the hook's caller is sure */
	for (; first < depth && count < max; first++)
		out[count++] = frames[first];
	return count;
}

/* Not inlined: the stack pointer is that of a frame whose distance to the hook's is always the same. */
__attribute__((noinline)) int native_capture_shape(void **out, int max, void *caller, unsigned way,
                                                   struct stack_shape *ret_shape)
{
	uintptr_t top = (uintptr_t)__builtin_frame_address(0);
	int count;

	if (caller && max >= SITE_NATIVE_FRAMES && stack_memo_find((uintptr_t)caller, top, way, ret_shape)) {
		for (int i = 0; i < ret_shape->count; i++)
			out[i] = (void *)ret_shape->frame[i];
		return ret_shape->count;
	}
	ret_shape->count = 0;
	count = walk_stack(out, max, caller, top, way, ret_shape);
	return count ? count : copy_stack(out, max, caller);
}

int native_capture(void **out, int max, void *caller)
{
	struct stack_shape shape;

	return native_capture_shape(out, max, caller, 0, &shape);
}
