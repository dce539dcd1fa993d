/*
 * Plans and executions, by a kernel of its own as NVIDIA's: one for the output, and for a complex-to-real transform of
 * several dimensions one that uses the input as scratch, which is what cuFFT's contract allows it.
 */
#include "driver.h"

enum { PLANS = 8 };

static struct {
	int rank, elements;
} plans[PLANS];
static int used;

static int make(int *plan, int rank, int elements)
{
	if (used == PLANS)
		abort();
	plans[used].rank = rank;
	plans[used].elements = elements;
	*plan = used++;
	return 0;
}

OFFER int cufftPlan1d(int *plan, int nx, int type, int batch);
int cufftPlan1d(int *plan, int nx, int type, int batch)
{
	return make(plan, 1, nx * batch);
}

OFFER int cufftPlan2d(int *plan, int nx, int ny, int type);
int cufftPlan2d(int *plan, int nx, int ny, int type)
{
	return make(plan, 2, nx * ny);
}

OFFER int cufftExecC2C(int plan, void *in, void *out, int direction);
int cufftExecC2C(int plan, void *in, void *out, int direction)
{
	return fill(out, 9, plans[plan].elements * 2) ? 6 : 0;
}

OFFER int cufftExecC2R(int plan, void *in, void *out);
int cufftExecC2R(int plan, void *in, void *out)
{
	int status = plans[plan].rank > 1 ? fill(in, 8, plans[plan].elements) : CUDA_SUCCESS;
	return status || fill(out, 9, plans[plan].elements) ? 6 : 0;
}
