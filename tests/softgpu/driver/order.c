#include "tests/softgpu/driver/order.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum sg_order order;
static uint64_t state; /* guarded by the driver's lock after read_environment */

static void read_environment(void)
{
	const char *text = getenv("SOFTGPU_ORDER");
	char *end;

	if (text == NULL || *text == '\0')
		return;
	if (strcmp(text, "serial") == 0) {
		order = SG_ORDER_SERIAL;
	} else if (strncmp(text, "shuffle:", 8) == 0 && text[8] >= '0' && text[8] <= '9' &&
	           (state = strtoull(text + 8, &end, 10), *end == '\0')) {
		order = SG_ORDER_SHUFFLE;
	} else {
		dprintf(STDERR_FILENO, "softgpu: SOFTGPU_ORDER: cannot use \"%s\" (serial, shuffle:SEED)\n", text);
	}
}

enum sg_order sg_order(void)
{
	pthread_once(&once, read_environment);
	return order;
}

/* SplitMix64: any seed will do, 0 and 1 included. */
size_t sg_order_choose(size_t count)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (size_t)((z ^ z >> 31) % count);
}
