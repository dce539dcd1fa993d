/*
 * Frame of the programs of this suite: each holds several scenes, of which the first argument names one. A scene works
 * on the buffers of misuse.h, checks with EXPECT what the program itself sees, and ends with 0. What the library said
 * and recorded is judged by the tests.
 */
#ifndef SCENE_H
#define SCENE_H

#include "tests/misuse/misuse.h"

struct scene {
	const char *name;
	void (*play)(const char *argument); /* the second argument of the program, or NULL */
};

__attribute__((unused)) static int scene_main(int argc, char **argv, const struct scene *scenes)
{
	for (; argc > 1 && scenes->name; scenes++)
		if (!strcmp(scenes->name, argv[1])) {
			scenes->play(argv[2]);
			return 0;
		}
	fprintf(stderr, "no such scene\n");
	return 98;
}

/* One range over all of p, judged by calls alone: for scenes about what becomes of the records. */
__attribute__((unused)) static cuconst_handle protect_calls(void)
{
	cuconst_handle handle;
	CHECK(cuconst_protect(p, SIZE, "p", CUCONST_NO_BASELINE, NULL, &handle));
	return handle;
}

__attribute__((unused)) static void violate(int times)
{
	for (int i = 0; i < times; i++)
		CHECK(cuMemsetD8(p, (unsigned char)i, 16));
}

__attribute__((unused)) static struct cuconst_stats stats(void)
{
	struct cuconst_stats now = {.size = sizeof now};
	CHECK(cuconst_stats(&now));
	return now;
}

#endif
