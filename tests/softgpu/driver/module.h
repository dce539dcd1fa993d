/*
 * Code: modules (loaded into a context), libraries (loaded into none; a module of theirs is made for each context that
 * needs one), functions and kernels.
 */
#ifndef SOFTGPU_MODULE_H
#define SOFTGPU_MODULE_H

#include "tests/softgpu/driver/context.h"

struct sg_library;
struct sg_module;

/* What launches as in CUDA 2 are made of, see legacy_launch.c. */
struct sg_remembered {
	unsigned block[3], shared, bytes;
	char parameters[4096] __attribute__((aligned(16)));
};

/* A CUfunction: an entry of a module. */
struct sg_function {
	struct sg_module *module;
	struct ptx_function *ptx;
	int max_dynamic_shared;
	struct sg_remembered *remembered; /* NULL: nothing */
};

/* A CUmodule. */
struct sg_module {
	struct sg_context *context;
	struct sg_library *library; /* that it was made for, or NULL */
	struct ptx_module *ptx;
	struct sg_function *functions;
	size_t count;
	struct sg_module *next; /* of the same library */
};

/* A CUkernel: an entry of a library, in no context. */
struct sg_kernel {
	struct sg_library *library;
	struct ptx_function *ptx; /* of the library's sketch: good for names and parameters, not for running */
	int max_dynamic_shared;
};

/* A text in an image, or unpacked from one: the caller frees `owned`. */
struct sg_text {
	const char *text;
	size_t bytes;
	char *owned;
};

/* Without the lock, each. The PTX text of an image: plain, in a fat binary, in a wrapper of one. */
CUresult sg_image_text(const void *image, struct sg_text *ret_text);
/* fatbin.c: the same for a fat binary. */
CUresult sg_fatbin_text(const void *image, struct sg_text *ret_text);
/* Parses and loads; on failure `log` says why. */
CUresult sg_image_load(const char *text, size_t bytes, const struct ptx_memory *memory, char *log, size_t log_bytes,
                       struct ptx_module **ret_module);
/* Parses alone; on failure `log` says why. */
CUresult sg_image_check(const char *text, size_t bytes, char *log, size_t log_bytes);
/* The whole file and some zeros behind it, or NULL; the caller frees. */
char *sg_read_file(const char *path);
/* Writes a log where the options ask for it. */
void sg_jit_log(unsigned count, const CUjit_option *options, void **values, const char *error);
CUresult sg_module_create(struct sg_context *context, const char *text, size_t bytes, char *log, size_t log_bytes,
                          struct sg_module **ret_module);
/*
 * The function a handle means in a context: a CUfunction itself, or a CUkernel's function there, which is loaded if it
 * has to be.
 */
CUresult sg_function_in(CUfunction handle, struct sg_context *context, struct sg_function **ret_function);
CUresult sg_status_of(enum ptx_status status);

/* With the lock held. A live CUfunction that is no CUkernel, or NULL. */
struct sg_function *sg_function_of(CUfunction handle);
/* The handle's function; takes it out of the tables. The lock is dropped while memory is given back. */
void sg_module_free(struct sg_module *module);
/* Ends the modules of a context. */
void sg_modules_end(struct sg_context *context);
/* library.c: forgets a module of a library that ends with its context. */
void sg_library_forget(struct sg_library *library, struct sg_module *module);

#endif
