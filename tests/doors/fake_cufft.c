/*
 * A libcufft that makes plans of increasing numbers and counts executions; the test looks at the calling thread from
 * inside.
 */
#include "check.h"

OFFER void (*fake_cufft_inside)(void);
OFFER int fake_cufft_calls, fake_cufft_next, fake_cufft_answer;

static int call(const char *symbol)
{
	fake_cufft_calls += strstr(symbol, "Exec") != NULL;
	if (fake_cufft_inside)
		fake_cufft_inside();
	return fake_cufft_answer;
}

#define CUFFT(symbol)                                                                                                  \
	OFFER int symbol(int *handle);                                                                                 \
	int symbol(int *handle)                                                                                        \
	{                                                                                                              \
		if (!strncmp(#symbol, "cufftPlan", 9) || !strcmp(#symbol, "cufftCreate"))                              \
			*handle = fake_cufft_next++;                                                                   \
		return call(#symbol);                                                                                  \
	}
#include "names.inc"
