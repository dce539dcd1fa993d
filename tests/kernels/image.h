#ifndef CUCONST_TESTS_KERNELS_IMAGE_H
#define CUCONST_TESTS_KERNELS_IMAGE_H

#include <stddef.h>
#include <stdint.h>

/* All that can be asked of an image of any kind: each entry of each fatbin, each kernel of each cubin, at most a few dozen. */
void analyse_image(const uint8_t *image, size_t bytes);

#endif
