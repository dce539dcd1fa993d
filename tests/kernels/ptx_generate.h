/* Random kernels that run: pointers go every way they can, and stay inside their buffers whatever way they go. */
#ifndef CUCONST_TESTS_KERNELS_PTX_GENERATE_H
#define CUCONST_TESTS_KERNELS_PTX_GENERATE_H

#include <stddef.h>
#include <stdint.h>

#define GENERATED_SLOTS 10
#define GENERATED_BUFFER 8192 /* bytes behind each pointer; threads of a block: 32 */

struct generated {
	char *text; /* an entry named k; free() it */
	size_t bytes;
	unsigned slots; /* of the parameters */
	unsigned pointers; /* slots that hold pointers are the first so many; then comes an unsigned 32-bit n below 4, then a 64-bit m below 4 */
};

struct generated ptx_generate(uint64_t seed);

#endif
