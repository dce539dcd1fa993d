#ifndef TESTS_TWINS_AGAIN_OWNER_H
#define TESTS_TWINS_AGAIN_OWNER_H

#include <cuda.h>

__attribute__((visibility("default"))) CUresult launch_as_owner(CUfunction function, CUstream stream, void **params);

#endif
