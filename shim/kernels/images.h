/*
 * Loaded images: what the program gave to cuModuleLoad* and cuLibraryLoad*, and from a launched function to its store paths.
 *
 * A load costs a hash insertion and at most a copy; an image is read at the first question about one of its kernels. Thread-safe; no lock is held
 * while the driver is called or an image is read.
 */
#ifndef CUCONST_KERNELS_IMAGES_H
#define CUCONST_KERNELS_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/driver.h"
#include "shim/kernels/paths.h"

struct link_map;

/*
 * Store paths of a function, or of a CUkernel passed as one: read from the loaded image at the first question, then kept for the life of the
 * process and found without a lock. Never NULL but for lack of memory: an image that was not seen or cannot be read is a reason (PATHS_UNSEEN and
 * those behind it), with no slots. The first question takes some 100 us to many ms, and calls the driver: cuFuncGetModule, cuKernelGetLibrary, attributes of
 * devices; for a function whose module nobody loaded, and of which the program did not say what library it is from, also cuLibraryGetKernel and
 * cuKernelGetFunction. A capture goes on.
 */
const struct kernel_paths *images_paths(CUfunction function);

/* fork child: no other thread holds the locks. */
void images_reset(void);

/*
 * A load of the program succeeded; `image` is what it was given, `path` the file it named. Call before the program goes on: it may free the
 * image then. Images that lie in the read-only part of a loaded library are kept by reference, others are copied.
 */
void images_module_loaded(CUmodule module, const void *image);
void images_module_file_loaded(CUmodule module, const char *path);
void images_library_loaded(CUlibrary library, const void *image);
void images_library_file_loaded(CUlibrary library, const char *path);

/*
 * The program got the function of a library's kernel, or a library's module, in the current context: code that the driver made of the library. A function
 * that is told again costs a look at a table.
 */
void images_kernel_function(CUfunction function, CUkernel kernel);
bool images_kernel_is_told(CUfunction function);
void images_library_module(CUmodule module, CUlibrary library);

/*
 * The end of a module or library, in two steps, since its handle may be given to another thread's load before the driver returns: the number of the load that
 * has the handle now (0: not seen), before the call; and afterwards that it ended, or stays since the call failed.
 */
uint64_t images_ending(const void *handle);
void images_ended(const void *handle, uint64_t load);
void images_stay(const void *handle, uint64_t load);

/* Was any module or library loaded? One load. */
bool images_any(void);

/* A context is gone, and its modules with it. */
void images_context_ended(CUcontext context);

/* The number of the load that a function's code came from; 0: not seen. Calls the driver. */
uint64_t images_origin(CUfunction function);

/*
 * Before the first load: how to find the loaded object that an address lies in (NULL: in none), and a symbol of a library, handed in by who knows its doors. Until
 * then all images are copied.
 */
void images_start(struct link_map *(*object_at)(const void *address), void *(*symbol)(void *library, const char *name));

#endif
