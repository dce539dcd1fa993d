/*
 * A libcudart of some version: every function answers with that version and calls back, if asked, so that a test sees
 * what the calling thread looks like beneath it.
 */
#include "check.h"

#include <stdint.h>

OFFER void (*fake_cudart_inside)(void);
OFFER uint64_t fake_cudart_last[13];

/* Six words in registers and seven on the stack: as many as any of the functions takes. Those that take fewer find junk in the rest. */
#define CUDART(symbol)                                                                                                 \
	OFFER int symbol(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,           \
	                 uint64_t h, uint64_t i, uint64_t j, uint64_t k, uint64_t l, uint64_t m);                      \
	int symbol(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h,     \
	           uint64_t i, uint64_t j, uint64_t k, uint64_t l, uint64_t m)                                         \
	{                                                                                                              \
		const uint64_t words[13] = {a, b, c, d, e, f, g, h, i, j, k, l, m};                                    \
		memcpy(fake_cudart_last, words, sizeof words);                                                         \
		if (fake_cudart_inside)                                                                                \
			fake_cudart_inside();                                                                          \
		return CUDART_VERSION;                                                                                 \
	}
#include "names.inc"
