/* Look-ups made from a library: their meaning depends on who asks. */
#include "check.h"

OFFER void *next_of(const char *name);
OFFER void *default_of(const char *name);
OFFER int next_marker(void);

/* Defined in each of two libraries of one link order: RTLD_NEXT from the first must find the second's. */
int next_marker(void)
{
	return MARKER;
}

void *next_of(const char *name)
{
	/* Not a tail call: the loader would take our caller for the one who asks. */
	void *volatile found = dlsym(RTLD_NEXT, name);
	return found;
}

void *default_of(const char *name)
{
	void *volatile found = dlsym(RTLD_DEFAULT, name);
	return found;
}
