/*
 * zstd frames, by the system's libzstd where there is one: nothing is linked, so nothing is needed where no image is packed that way.
 */
#ifndef CUCONST_KERNELS_ZSTD_H
#define CUCONST_KERNELS_ZSTD_H

#include "shim/kernels/fatbin.h"

/*
 * The decoder to hand to fatbin_unpack(); NULL where libzstd.so.1 cannot be loaded, which is asked again each time. Thread-safe. Takes the loader's lock, so no
 * lock may be held; not callable in a signal handler. The library stays loaded.
 */
fatbin_zstd zstd_decoder(void);

/* For who must not call dlsym, since it has one of its own. */
void zstd_set_symbol_finder(void *(*symbol)(void *library, const char *name));

#endif
