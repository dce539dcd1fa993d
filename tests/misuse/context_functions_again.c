/*
 * A context takes its functions along: a handle that comes again, in the next context, is another function with fewer
 * parameters.
 *
 * expect log exit 0 ""
 * expect deny exit 0 ""
 * expect strict exit 0 ""
 */
#include "misuse.h"

#define FUNCTIONS 64

/* In a context of its own: loads a module of functions with these parameters, and launches each. */
static void use(const char *parameters, void **values)
{
	static char text[FUNCTIONS * 128];
	CUcontext own;
	CUmodule loaded;
	int used = sprintf(text, ".version 7.0\n.target sm_60\n.address_size 64\n");
	for (int i = 0; i < FUNCTIONS; i++)
		used += sprintf(text + used, ".visible .entry f%d(%s)\n{\n\tret;\n}\n", i, parameters);
	CHECK(cuCtxCreate(&own, NULL, 0, 0));
	CHECK(cuModuleLoadData(&loaded, text));
	for (int i = 0; i < FUNCTIONS; i++) {
		CUfunction function;
		char name[16];
		sprintf(name, "f%d", i);
		CHECK(cuModuleGetFunction(&function, loaded, name));
		CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, values, NULL));
	}
	CHECK(cuCtxDestroy(own));
}

int main(void)
{
	uint64_t value = 0;
	void *four[] = {&value, &value, &value, &value};
	/* The list of one parameter, and what happens to lie behind it. */
	void *one[] = {&value, (void *)16, (void *)16, (void *)16};
	start();
	protect(p, SIZE, "p");
	use(".param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d", four);
	for (int i = 0; i < 8; i++)
		use(".param .u64 a", one);
	return 0;
}
