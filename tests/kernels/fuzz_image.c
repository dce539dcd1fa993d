/*
 * libFuzzer's entry. Build by hand:
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/kernels/fuzz_image.c tests/kernels/image.c shim/kernels/{elf,...}.c
 * tests/kernels/replay.c runs the same over the kept corpus in the test suite.
 */
#include "tests/kernels/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	analyse_image(data, bytes);
	return 0;
}
