/* A library that owns a range: what it launches may write there. */
#include "tests/twins/again_owner.h"

CUresult launch_as_owner(CUfunction function, CUstream stream, void **params)
{
	CUresult result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
	return result; /* no tail call: its frame is what says who launched */
}
