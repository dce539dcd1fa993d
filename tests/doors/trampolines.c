/* A plugin that defines the driver's names and would load the driver at the first call. */
#include "check.h"

OFFER int cuMemcpyHtoD_v2(uint64_t destination, const void *source, size_t bytes);
OFFER int use_trampoline(void);

int cuMemcpyHtoD_v2(uint64_t destination, const void *source, size_t bytes)
{
	return 4242;
}

int use_trampoline(void)
{
	return cuMemcpyHtoD_v2(0, NULL, 0);
}
