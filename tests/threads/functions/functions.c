/*
 * What is known of a function is dropped by one thread as its code is loaded again, right behind another that made room for it: TSan sees whether the first is sure to see what the second
 * has written. They follow each other by numbers that order nothing.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "shim/driver.h"
#include "shim/kernels/function.h"
#include "shim/kernels/images.h"
#include "shim/report/site.h"

#define FUNCTIONS 2000

struct driver drv;
static _Atomic unsigned made, dropped;

static CUresult param_info(CUfunction function, size_t index, size_t *ret_offset, size_t *ret_bytes)
{
	*ret_offset = 0;
	*ret_bytes = 8;
	return index ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

uint64_t images_origin(CUfunction function)
{
	return 0;
}

const char *site_intern(const char *text)
{
	return text;
}

static CUfunction nth(unsigned number)
{
	return (CUfunction)(uintptr_t)(0x1000 + number * 16);
}

static void wait_until(const _Atomic unsigned *reached, unsigned number)
{
	while (atomic_load_explicit(reached, memory_order_relaxed) < number)
		sched_yield();
}

static void *make_room(void *unused)
{
	for (unsigned number = 1; number <= FUNCTIONS; number++) {
		const struct function_info *info = function_info(nth(number));
		if (!info || !function_variants(info)) {
			fprintf(stderr, "nothing is known of function %u\n", number);
			return (void *)"failed";
		}
		atomic_store_explicit(&made, number, memory_order_relaxed);
		wait_until(&dropped, number);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;
	void *failed;
	drv.cuFuncGetParamInfo = param_info;
	if (pthread_create(&thread, NULL, make_room, NULL))
		return 2;
	for (unsigned number = 1; number <= FUNCTIONS; number++) {
		wait_until(&made, number);
		function_forget();
		if (!function_info(nth(number)))
			return 1;
		atomic_store_explicit(&dropped, number, memory_order_relaxed);
	}
	pthread_join(thread, &failed);
	return failed != NULL;
}
