/*
 * cuFFT's contract. Every execution writes `odata`; with idata == odata that is the input too; and multi-dimensional complex-to-real
 * transforms use `idata` as scratch, which a caller who only reads the argument list cannot know. One-dimensional ones leave it alone.
 *
 * The kernels beneath are seen at the driver; what is decided here is what only the contract tells: that the call writes, before it runs.
 */
#include "shim/doors/hook.h"
#include "shim/doors/names.h"
#include "shim/effects/cufft_plans.h"
#include "shim/verdict/judge.h"
#include "shim/verdict/options.h"

#define CUFFT_SUCCESS 0
#define CUFFT_INVALID_VALUE 4

#define REAL(id)                                                                                                       \
	struct name_scope scope;                                                                                       \
	__typeof__(id) *real = name_enter(&scope, NAME_##id, __builtin_return_address(0));                             \
	if (HOOK_UNLIKELY(!real))                                                                                      \
	return NAMES_MISSING_CUFFT

static bool writes(enum name_id id, const char *note, const void *address, uint64_t bytes, void *caller)
{
	return address && judge_library_write(names[id].symbol, note, (uint64_t)address, bytes, caller);
}

/* Judges an execution. True: refused. Leaves the contract's words where a record of a kernel beneath will look for them. */
static bool refuse(const struct name_scope *scope, enum name_id id, int plan, const void *idata, const void *odata,
                   void *caller)
{
	struct plan facts;
	/* An inner call is the outer one's business; names=0 leaves everything to the driver's level. */
	if (!scope->outermost)
		return false;
	plan_get(plan, &facts);
	bool scratch = facts.complex_to_real && facts.rank > 1;
	if (idata == odata) {
		uint64_t bytes = facts.in_bytes > facts.out_bytes ? facts.in_bytes : facts.out_bytes;
		hook_thread.outer.note = "idata=odata";
		return writes(id, "idata=odata", odata, bytes, caller);
	}
	hook_thread.outer.note = scratch ? "idata, odata" : "odata";
	return (scratch && writes(id, "idata", idata, facts.in_bytes, caller)) ||
	       writes(id, "odata", odata, facts.out_bytes, caller);
}

#define EXECUTE(id, idata, odata, ...)                                                                                 \
	REAL(id);                                                                                                      \
	int result = CUFFT_INVALID_VALUE;                                                                              \
	if (!refuse(&scope, NAME_##id, plan, idata, odata, __builtin_return_address(0)))                               \
		result = real(__VA_ARGS__);                                                                            \
	name_leave(&scope);                                                                                            \
	return result

HOOK_EXPORT int cufftExecC2C(int plan, void *idata, void *odata, int direction)
{
	EXECUTE(cufftExecC2C, idata, odata, plan, idata, odata, direction);
}

HOOK_EXPORT int cufftExecZ2Z(int plan, void *idata, void *odata, int direction)
{
	EXECUTE(cufftExecZ2Z, idata, odata, plan, idata, odata, direction);
}

HOOK_EXPORT int cufftExecR2C(int plan, void *idata, void *odata)
{
	EXECUTE(cufftExecR2C, idata, odata, plan, idata, odata);
}

HOOK_EXPORT int cufftExecD2Z(int plan, void *idata, void *odata)
{
	EXECUTE(cufftExecD2Z, idata, odata, plan, idata, odata);
}

HOOK_EXPORT int cufftExecC2R(int plan, void *idata, void *odata)
{
	EXECUTE(cufftExecC2R, idata, odata, plan, idata, odata);
}

HOOK_EXPORT int cufftExecZ2D(int plan, void *idata, void *odata)
{
	EXECUTE(cufftExecZ2D, idata, odata, plan, idata, odata);
}

HOOK_EXPORT int cufftXtExec(int plan, void *input, void *output, int direction)
{
	EXECUTE(cufftXtExec, input, output, plan, input, output, direction);
}

/* Plans: what was asked for is remembered when cuFFT accepted it. */
#define MAKE(id, remember, ...)                                                                                        \
	REAL(id);                                                                                                      \
	int result = real(__VA_ARGS__);                                                                                \
	if (result == CUFFT_SUCCESS)                                                                                   \
		remember;                                                                                              \
	name_leave(&scope);                                                                                            \
	return result

HOOK_EXPORT int cufftCreate(int *handle)
{
	MAKE(cufftCreate, plan_forget(*handle), handle);
}

HOOK_EXPORT int cufftDestroy(int plan)
{
	/* First: another thread may be given the same number as soon as cuFFT has taken it back. */
	plan_forget(plan);
	REAL(cufftDestroy);
	int result = real(plan);
	name_leave(&scope);
	return result;
}

HOOK_EXPORT int cufftPlan1d(int *plan, int nx, int type, int batch)
{
	const long long n[] = {nx};
	MAKE(cufftPlan1d, plan_set(*plan, 1, n, plan_type(type), batch, true), plan, nx, type, batch);
}

HOOK_EXPORT int cufftPlan2d(int *plan, int nx, int ny, int type)
{
	const long long n[] = {nx, ny};
	MAKE(cufftPlan2d, plan_set(*plan, 2, n, plan_type(type), 1, true), plan, nx, ny, type);
}

HOOK_EXPORT int cufftPlan3d(int *plan, int nx, int ny, int nz, int type)
{
	const long long n[] = {nx, ny, nz};
	MAKE(cufftPlan3d, plan_set(*plan, 3, n, plan_type(type), 1, true), plan, nx, ny, nz, type);
}

HOOK_EXPORT int cufftMakePlan1d(int plan, int nx, int type, int batch, size_t *workSize)
{
	const long long n[] = {nx};
	MAKE(cufftMakePlan1d, plan_set(plan, 1, n, plan_type(type), batch, true), plan, nx, type, batch, workSize);
}

HOOK_EXPORT int cufftMakePlan2d(int plan, int nx, int ny, int type, size_t *workSize)
{
	const long long n[] = {nx, ny};
	MAKE(cufftMakePlan2d, plan_set(plan, 2, n, plan_type(type), 1, true), plan, nx, ny, type, workSize);
}

HOOK_EXPORT int cufftMakePlan3d(int plan, int nx, int ny, int nz, int type, size_t *workSize)
{
	const long long n[] = {nx, ny, nz};
	MAKE(cufftMakePlan3d, plan_set(plan, 3, n, plan_type(type), 1, true), plan, nx, ny, nz, type, workSize);
}

/* cuFFT has three dimensions at most. Without embeddings it takes the basic layout and looks at no stride or distance. */
static void set_many(int plan, int rank, const int *n, struct plan_type type, int batch, bool simple)
{
	long long lengths[3] = {0};
	for (int i = 0; i < rank && i < 3; i++)
		lengths[i] = n[i];
	plan_set(plan, rank < 3 ? rank : 3, lengths, type, batch, simple);
}

HOOK_EXPORT int cufftPlanMany(int *plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
                              int ostride, int odist, int type, int batch)
{
	MAKE(cufftPlanMany, set_many(*plan, rank, n, plan_type(type), batch, !inembed && !onembed), plan, rank, n,
	     inembed, istride, idist, onembed, ostride, odist, type, batch);
}

HOOK_EXPORT int cufftMakePlanMany(int plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
                                  int ostride, int odist, int type, int batch, size_t *workSize)
{
	MAKE(cufftMakePlanMany, set_many(plan, rank, n, plan_type(type), batch, !inembed && !onembed), plan, rank, n,
	     inembed, istride, idist, onembed, ostride, odist, type, batch, workSize);
}

HOOK_EXPORT int cufftMakePlanMany64(int plan, int rank, long long *n, long long *inembed, long long istride,
                                    long long idist, long long *onembed, long long ostride, long long odist, int type,
                                    long long batch, size_t *workSize)
{
	MAKE(cufftMakePlanMany64, plan_set(plan, rank, n, plan_type(type), batch, !inembed && !onembed), plan, rank, n,
	     inembed, istride, idist, onembed, ostride, odist, type, batch, workSize);
}

HOOK_EXPORT int cufftXtMakePlanMany(int plan, int rank, long long *n, long long *inembed, long long istride,
                                    long long idist, int inputtype, long long *onembed, long long ostride,
                                    long long odist, int outputtype, long long batch, size_t *workSize, int executiontype)
{
	MAKE(cufftXtMakePlanMany,
	     plan_set(plan, rank, n, plan_type_of_data(inputtype, outputtype), batch, !inembed && !onembed), plan, rank,
	     n, inembed, istride, idist, inputtype, onembed, ostride, odist, outputtype, batch, workSize, executiontype);
}
