/*
 * Store paths: for each 8-byte slot of a kernel's parameters, can the kernel store through it? Worked out from its machine code (sass) or its PTX,
 * once per kernel, conservatively: what is not understood makes the kernel unknown, never clean. No driver, no vendor tool, no state but what kinds of instructions this processor has (wide.h).
 */
#ifndef CUCONST_KERNELS_PATHS_H
#define CUCONST_KERNELS_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the kernel does with the address in a slot. Ordered: more is worse. */
enum slot_use { SLOT_NONE, SLOT_LOAD, SLOT_STORE };

struct slot_paths {
	uint8_t use; /* enum slot_use */
	bool loaded; /* read through, also where use says more */
	bool only_base; /* some store has this slot as its one and only base: refusing or swapping the slot meets that store exactly */
	bool compared; /* compared with another address, subtracted from one, or handed out: must not be swapped for a twin */
};

/* Why a kernel stores through addresses that did not come from its parameters, or could not be read. Static text: paths_reason_text(). */
enum paths_reason {
	PATHS_CLEAR,        /* every store has a parameter base (or a local or shared one) */
	PATHS_TABLE,        /* an address was loaded from memory */
	PATHS_GLOBAL,       /* a module global */
	PATHS_SPLIT,        /* an address was put together from pieces that could not be followed */
	PATHS_NO_BASE,      /* a store without any base */
	PATHS_CALL,         /* a call whose target is not known */
	PATHS_INSTRUCTION,  /* an instruction that is not known */
	PATHS_ARCHITECTURE, /* machine code of a generation that is not known */
	PATHS_DAMAGED,      /* the image is cut or contradicts itself */
	PATHS_LIMIT,        /* too large to follow within the limits */
	/* Of images: there was nothing to analyse. */
	PATHS_UNSEEN,   /* it was not seen being loaded, or is gone */
	PATHS_UNKEPT,   /* too large to be kept */
	PATHS_UNPACKED, /* packed, and nothing there to unpack it */
	PATHS_NO_CODE,  /* holds neither machine code nor PTX of that kernel for this device */
};

/* One store-like instruction, for messages. */
struct store_site {
	uint32_t offset;  /* bytes from the kernel's entry (machine code), or line of the PTX text */
	uint32_t base;    /* slot that is its only base; UINT32_MAX: none, or several */
	const char *kind; /* "STG", "RED", "st.global", ...: static text */
	const char *file; /* of its source, where the image has line info: lives for ever; else NULL */
	uint32_t line;
};

struct kernel_paths {
	enum paths_reason reason; /* anything but PATHS_CLEAR: slots that say less than SLOT_STORE prove nothing */
	uint32_t reason_offset;   /* where it was met, as store_site.offset */
	size_t slot_count;        /* of the parameter block, rounded up to 8 bytes */
	struct slot_paths *slots;
	size_t store_count; /* at most PATHS_STORES are kept, all are counted */
	struct store_site *stores;
};
#define PATHS_STORES 256

/* Gives back what an analysis allocated, and zeroes it. NULL is fine. */
void kernel_paths_free(struct kernel_paths *paths);

/* Static text for messages. */
const char *paths_reason_text(enum paths_reason reason);

/* The static text of a kind of store (store_site.kind) by its name; NULL where there is none. */
const char *paths_kind_named(const char *name);

/*
 * Machine code: one kernel of a cubin (ELF image, `bytes` long) by its symbol. 0 with *ret_paths filled (also when its reason is not clear), -ENOENT
 * (no such kernel), -ENOMEM. Never reads outside [image, image + bytes).
 */
int paths_of_cubin(const void *image, size_t bytes, const char *kernel, struct kernel_paths *ret_paths);

/*
 * The same, for who wants more than is kept: called for each parameter, and for each slot that a store may go through, by the store's number in the order of
 * paths->stores; of all stores, not only of those kept. Either may be NULL.
 */
struct paths_watch {
	void (*param)(void *ctx, uint32_t index, uint32_t offset, uint32_t bytes);
	void (*base)(void *ctx, size_t store, uint32_t slot);
	void *ctx;
};
int paths_watch_cubin(const void *image, size_t bytes, const char *kernel, const struct paths_watch *watch,
                      struct kernel_paths *ret_paths);
int paths_watch_ptx(const char *text, size_t bytes, const char *kernel, const struct paths_watch *watch,
                    struct kernel_paths *ret_paths);

/*
 * Values of parameters, by the bytes of their block: known[i] says how far byte i is one to go by, and used[i] on return how far it decided something. `used` has room for
 * as many as the two others.
 */
enum paths_knowledge {
	VALUE_UNKNOWN,
	VALUE_EXACT,
	VALUE_SMALL, /* only that the aligned word of 4 bytes, all of this kind, is below PATHS_SMALL */
};
#define PATHS_SMALL 4096u /* high halves of addresses are larger, as a rule: nothing hangs on that, but time */
struct paths_values {
	const uint8_t *bytes, *known;
	uint8_t *used;
	size_t count;
	uint8_t *missed; /* special.c's, else NULL: what could have decided a predicate with another value, but has not with this one */
};

/*
 * What the kernel does where its parameters have these values, and values->used what that hangs on: it is the same for all values that are alike there. *ret_better: it says
 * more than the answer for any values does. Some runs of the analysis. 0, -ENOENT, -ENOMEM.
 */
int paths_for_cubin(const void *image, size_t bytes, const char *kernel, struct paths_values *values,
                    struct kernel_paths *ret_paths, bool *ret_better);
int paths_for_ptx(const char *text, size_t bytes, const char *kernel, struct paths_values *values,
                  struct kernel_paths *ret_paths, bool *ret_better);

/* For PTX: source lines of its stores, by what line_index_ptx() made of the text. */
struct line_index;
void paths_add_text_lines(const struct line_index *index, struct kernel_paths *paths);

/* PTX text: the same question. `text` need not be terminated. 0, -ENOENT, -ENOMEM. */
int paths_of_ptx(const char *text, size_t bytes, const char *kernel, struct kernel_paths *ret_paths);

/*
 * The same for many kernels of one text, which is read once: it must stay as it is until the module is closed. Several threads may ask at once. `watch` may be
 * NULL.
 */
struct ptx_module;
int ptx_module_open(const char *text, size_t bytes, struct ptx_module **ret_module);
int ptx_module_paths(const struct ptx_module *module, const char *kernel, const struct paths_watch *watch,
                     struct kernel_paths *ret_paths);
void ptx_module_close(struct ptx_module *module);

#endif
