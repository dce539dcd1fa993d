/* Scenes about CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: a library that asks before it writes can know. */
#include "vmm.h"

static unsigned flags_of(CUdeviceptr at)
{
	unsigned flags = 77;
	CHECK(cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at));
	return flags;
}

static unsigned flags_among(CUdeviceptr at)
{
	unsigned flags = 77, type = 77;
	int ordinal = 77;
	CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS,
	                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
	void *data[] = {&type, &flags, &ordinal};
	CHECK(cuPointerGetAttributes(3, attributes, data, at));
	EXPECT(type == CU_MEMORYTYPE_DEVICE && ordinal == 0);
	return flags;
}

/* Argument: the flags of protected memory in this mode. */
static void of_a_range(const char *argument)
{
	unsigned wanted = (unsigned)atoi(argument);
	CUdeviceptr mapped = allocate(1);

	EXPECT(flags_of(p + 64) == 3 && flags_among(p + 64) == 3);
	cuconst_handle handle = protect(p + 64, 128, "p"), other = protect(mapped, GRAIN, "mapped");
	EXPECT(flags_of(p + 64) == wanted && flags_among(p + 64) == wanted);
	EXPECT(flags_of(p + 191) == wanted && flags_among(p + 191) == wanted);
	EXPECT(flags_of(mapped + 5) == wanted);
	EXPECT(flags_of(p + 63) == 3 && flags_among(p + 192) == 3 && flags_of(q) == 3);
	CHECK(cuconst_unprotect(handle));
	CHECK(cuconst_unprotect(other));
	EXPECT(flags_of(p + 64) == 3 && flags_among(p + 64) == 3 && flags_of(mapped) == 3);
}

static void of_a_view(const char *argument)
{
	CUdeviceptr at = allocate(1), twin = view(at, 64);

	EXPECT(flags_of(twin) == 1 && flags_among(twin) == 1 && flags_of(at) == 3);
}

/* This very program is the owner: it is told what it may do. */
static void of_an_owner(const char *argument)
{
	struct cuconst_protect_info info = {.size = sizeof info, .owner = "attributes"};
	cuconst_handle handle;

	CHECK(cuconst_protect(p, SIZE, "p", 0, &info, &handle));
	EXPECT(flags_of(p) == 3 && flags_among(p) == 3);
}

/* Wrong questions get the driver's answers, and memory that nobody knows is not looked at. */
static void wrong(const char *argument)
{
	unsigned flags = 77;
	CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_ACCESS_FLAGS;
	void *data[] = {&flags};

	protect(p, SIZE, "p");
	EXPECT(cuPointerGetAttribute(NULL, attribute, p) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuPointerGetAttribute(&flags, attribute, 0) == CUDA_ERROR_INVALID_VALUE && flags == 77);
	EXPECT(cuPointerGetAttributes(0, &attribute, data, p) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuPointerGetAttributes(1, NULL, data, p) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuPointerGetAttributes(1, &attribute, NULL, p) == CUDA_ERROR_INVALID_VALUE);
	CHECK(cuPointerGetAttributes(1, &attribute, data, 4096));
	EXPECT(flags == 0);
}

static const struct scene scenes[] = {
	{"of_a_range", of_a_range},
	{"of_a_view", of_a_view},
	{"of_an_owner", of_an_owner},
	{"wrong", wrong},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	start();
	return scene_main(argc, argv, scenes);
}
