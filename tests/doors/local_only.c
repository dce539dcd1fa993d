#include "check.h"

OFFER int local_only(void);
int local_only(void)
{
	return 1;
}
