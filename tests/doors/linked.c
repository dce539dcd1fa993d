/* A program linked with -lcuda, as Triton's launchers are; and what it finds by dlsym in its own scope. */
#include "check.h"

int caller_run(const char *how);

int main(void)
{
	int calls = caller_run("linked");
	void *driver = open_driver();
	CHECK_EQUAL(check_counts(fake_of(driver)), calls);
	CHECK(is_hook(dlsym(RTLD_DEFAULT, "cuMemcpyHtoD_v2")));
	CHECK(is_hook(dlsym(RTLD_NEXT, "cuMemcpyHtoD_v2")));
	CHECK(is_hook(dlsym(driver, "cuMemcpyHtoD_v2")));
	CHECK(is_driver(dlsym(RTLD_DEFAULT, "cuDeviceGetCount")));
	return 0;
}
