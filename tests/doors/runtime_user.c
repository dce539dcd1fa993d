/* An extension module that uses the CUDA runtime: with its library behind it, or with a static one inside it. */
#include "check.h"

OFFER int use_runtime(void);
int cudaMemcpy(void *dst, const void *src, size_t count, int kind);
int cudaMemsetAsync(void *pointer, int value, size_t count, void *stream);

#ifdef STATIC_RUNTIME
OFFER int cudaMemcpy(void *dst, const void *src, size_t count, int kind)
{
	return STATIC_RUNTIME;
}

OFFER int cudaMemsetAsync(void *pointer, int value, size_t count, void *stream)
{
	return STATIC_RUNTIME;
}
#endif

int use_runtime(void)
{
	int first = cudaMemcpy(NULL, NULL, 0, 0), second = cudaMemsetAsync(NULL, 0, 0, NULL);
	return first == second ? first : -1;
}
