/*
 * Host time of one launch: of a kernel that gets an address in memory that is not protected, and the same one with an
 * address in a protected range, which strict replaces by its twin. Prints one line, medians in ns; asserts nothing
 * about time. Argument: the name of the mode.
 */
#include <time.h>

#include "vmm.h"

#define BATCH 100
#define SAMPLES 400

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

static CUfunction kernel_of(const char *path)
{
	static char text[1 << 16];
	CUmodule loaded;
	CUfunction function;
	FILE *file = fopen(path, "r");
	EXPECT(file && fread(text, 1, sizeof text - 1, file) > 0);
	fclose(file);
	CHECK(cuModuleLoadData(&loaded, text));
	CHECK(cuModuleGetFunction(&function, loaded, "read_or_store"));
	return function;
}

/* In turns, so that both meet the same clocks. */
static void measure(CUfunction function, CUdeviceptr at[2], CUdeviceptr sum, double ret[2])
{
	static double ns[2][SAMPLES];
	int count = 4, store = 0;

	for (int sample = 0; sample < SAMPLES; sample++)
		for (int which = 0; which < 2; which++) {
			void *params[] = {&at[which], &sum, &count, &store};
			double began = now();
			for (int i = 0; i < BATCH; i++)
				CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
			ns[which][sample] = (now() - began) / BATCH;
			CHECK(cuStreamSynchronize(stream));
		}
	for (int which = 0; which < 2; which++) {
		qsort(ns[which], SAMPLES, sizeof(double), by_value);
		ret[which] = ns[which][SAMPLES / 2];
	}
}

int main(int argc, char **argv)
{
	CUdeviceptr at[2];
	double ns[2];

	start();
	CUfunction function = kernel_of(getenv("SWAP_PTX"));
	at[0] = p;
	at[1] = allocate(1);
	protect(at[1], 65536, "w");
	measure(function, at, q, ns);
	printf("%s: %.0f ns a launch with an unprotected address, %.0f with a protected one: %+.0f ns; %llu checks on the device\n",
	       argc > 1 ? argv[1] : "", ns[0], ns[1], ns[1] - ns[0], (unsigned long long)stats().verified);
	return 0;
}
