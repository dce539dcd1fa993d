/*
 * Runtime functions above the driver calls that NVIDIA's make. CUDART_STATIC: inside an extension, hidden, as a static
 * cudart is.
 */
#include "driver.h"

#ifdef CUDART_STATIC
#define RUNTIME static
#else
#define RUNTIME OFFER
int cudaMemcpyAsync(void *to, const void *from, size_t count, int kind, CUstream stream);
int cudaMemset(void *to, int value, size_t count);
#endif

RUNTIME int cudaMemcpyAsync(void *to, const void *from, size_t count, int kind, CUstream stream)
{
	CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
	*(void **)&copy = driver_function("cuMemcpyDtoDAsync", 3020);
	return copy((CUdeviceptr)to, (CUdeviceptr)from, count, stream);
}

RUNTIME int cudaMemset(void *to, int value, size_t count)
{
	CUresult (*set)(CUdeviceptr, unsigned char, size_t);
	*(void **)&set = driver_function("cuMemsetD8", 3020);
	return set((CUdeviceptr)to, (unsigned char)value, count);
}

#ifndef CUDART_STATIC
/* Not as NVIDIA's: a launch for each row, for a call that makes several. */
OFFER int cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height);
int cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
	CUresult result = CUDA_SUCCESS;
	for (size_t row = 0; row < height && !result; row++)
		result = fill((char *)to + row * pitch, value, (int)width / 4);
	return (int)result;
}
#endif

#ifndef CUDART_STATIC
/* As NVIDIA's: what is exported calls something that is not. */
static __attribute__((noinline)) int launch(void *out, int value, int count)
{
	volatile CUresult result = fill(out, value, count);
	return (int)result;
}

OFFER int cudaLaunchKernel(void *out, int value, int count);
int cudaLaunchKernel(void *out, int value, int count)
{
	volatile int result = launch(out, value, count);
	return result;
}
#endif

#ifdef CUDART_STATIC
OFFER int extension_copy(void *to, const void *from, size_t count);
int extension_copy(void *to, const void *from, size_t count)
{
	return cudaMemcpyAsync(to, from, count, 3, NULL);
}

OFFER int extension_set(void *to, int value, size_t count);
int extension_set(void *to, int value, size_t count)
{
	return cudaMemset(to, value, count);
}
#endif
