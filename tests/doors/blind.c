/* What passes the hooks by is said: linked with the shim's objects, so that door_blind() can be asked. */
#include "check.h"

#include "shim/doors/doors.h"

static int run(const char *variable, void *library)
{
	int (*caller)(const char *);
	if (!library)
		fprintf(stderr, "%s: %s\n", variable, dlerror());
	CHECK(library);
	*(void **)&caller = dlsym(library, "caller_run");
	CHECK(caller);
	return caller("handle");
}

int main(void)
{
	char text[200], small[24];
	const char *asking = getenv("CALLER_ASKING"), *linked = getenv("CALLER_LINKED");
	CHECK(asking && linked);
	CHECK_EQUAL(door_blind(text, sizeof text), 0);
	CHECK(!*text);
	CHECK(run("seen", dlopen(getenv("CALLER_SEEN"), RTLD_NOW)) > 0);
	CHECK_EQUAL(door_blind(text, sizeof text), 0);
	CHECK(run("asking", dlopen(asking, RTLD_NOW | RTLD_DEEPBIND)) > 0);
	CHECK_EQUAL(door_blind(text, sizeof text), 1);
	CHECK(!strcmp(text, "RTLD_DEEPBIND library libcaller_asking.so"));
	CHECK(run("linked", dlopen(linked, RTLD_NOW | RTLD_DEEPBIND)) > 0);
	CHECK_EQUAL(door_blind(text, sizeof text), 2);
	CHECK(strstr(text, "libcaller_asking.so; RTLD_DEEPBIND library libcaller_now.so"));
	CHECK_EQUAL(door_blind(small, sizeof small), 2);
	CHECK(!*small);
	/* The C library of the new namespace comes with it. */
	CHECK(dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW));
	CHECK_EQUAL(door_blind(text, sizeof text), 3);
	CHECK(strstr(text, "; dlmopen namespace with libcuda.so.1"));
	return 0;
}
