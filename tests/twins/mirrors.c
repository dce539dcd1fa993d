/*
 * Scenes about twins and the memory they mirror: it is free in time, nothing is left behind, however it came and
 * whatever fails.
 */
#include <link.h>

#include "vmm.h"

/* Memory is free at the very call that freed it without a twin, whichever call that is. */
static void frees_in_time(const char *mode)
{
	size_t before = free_memory();
	CUdeviceptr at = allocate(4), second;
	CUmemGenericAllocationHandle handle;

	view(at, 4 * GRAIN);
	EXPECT(free_memory() == before - 4 * GRAIN);
	CHECK(cuMemUnmap(at, 4 * GRAIN));
	EXPECT(free_memory() == before);
	CHECK(cuMemAddressFree(at, 4 * GRAIN));

	/* Held by a handle beyond the mapping. */
	handle = create(2);
	at = reserve(2);
	CHECK(cuMemMap(at, 2 * GRAIN, 0, handle, 0));
	let_write(at, 2);
	view(at, 2 * GRAIN);
	CHECK(cuMemUnmap(at, 2 * GRAIN));
	EXPECT(free_memory() == before - 2 * GRAIN);
	CHECK(cuMemRelease(handle));
	EXPECT(free_memory() == before);
	CHECK(cuMemAddressFree(at, 2 * GRAIN));

	/* Mapped twice by the program, with a view of each. */
	handle = create(2);
	at = reserve(2);
	second = reserve(2);
	CHECK(cuMemMap(at, 2 * GRAIN, 0, handle, 0));
	CHECK(cuMemMap(second, 2 * GRAIN, 0, handle, 0));
	CHECK(cuMemRelease(handle));
	let_write(at, 2);
	let_write(second, 2);
	CUdeviceptr twin = view(at, 2 * GRAIN), other = view(second, 2 * GRAIN);
	CHECK(cuMemsetD32(at, 13, 1));
	EXPECT(twin != other && word_at(twin) == 13 && word_at(other) == 13);
	CHECK(cuMemUnmap(at, 2 * GRAIN));
	EXPECT(free_memory() == before - 2 * GRAIN && word_at(other) == 13);
	CHECK(cuMemUnmap(second, 2 * GRAIN));
	EXPECT(free_memory() == before);
	CHECK(cuMemAddressFree(at, 2 * GRAIN));
	CHECK(cuMemAddressFree(second, 2 * GRAIN));
}

/* Unmapping that the driver refuses leaves memory and views where they were. */
static void failed_unmap(const char *mode)
{
	CUdeviceptr at = allocate(2), twin = view(at, 2 * GRAIN);

	CHECK(cuMemsetD32(at, 21, 2 * GRAIN / 4));
	EXPECT(cuMemUnmap(at, GRAIN) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(view(at, 2 * GRAIN) == twin && word_at(twin) == 21);
	EXPECT(cuMemAddressFree(at, 2 * GRAIN) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(view(at, 2 * GRAIN) == twin && word_at(twin + GRAIN) == 21);
	size_t held = free_memory();
	fail_next("cuMemUnmap",
	          CUDA_ERROR_UNKNOWN); /* the twin's, which comes first: the program's own is not touched by it */
	CHECK(cuMemUnmap(at, 2 * GRAIN));
	CHECK(cuMemAddressFree(at, 2 * GRAIN));
	EXPECT(free_memory() == held + 2 * GRAIN);
}

/*
 * A twin that could not be unmapped keeps memory, and the place: both are had back when it is mapped there again,
 * however often it failed.
 */
static void stuck_twin(const char *mode)
{
	CUdeviceptr at = reserve(8), twin = 0;
	size_t before = free_memory();

	for (int round = 0; round < 3; round++) {
		/* Holes between them: each is unmapped by a call of its own. */
		for (size_t i = 0; i < 6; i += 2)
			map(at + i * GRAIN, 1);
		for (size_t i = 0; i < 6; i += 2) {
			twin = view(at + i * GRAIN, GRAIN) - i * GRAIN;
			CHECK(cuMemsetD32(at + i * GRAIN, (unsigned)round + 40, 1));
			EXPECT(word_at(twin + i * GRAIN) == round + 40);
		}
		for (size_t i = 0; i < 6; i += 2) {
			fail_next("cuMemUnmap", CUDA_ERROR_UNKNOWN);
			CHECK(cuMemUnmap(at + i * GRAIN, GRAIN));
		}
		EXPECT(free_memory() == before - 3 * GRAIN);
	}
	map(at, 6);
	EXPECT(view(at, 6 * GRAIN) == twin && free_memory() == before - 6 * GRAIN);
	fail_next("cuMemUnmap", CUDA_ERROR_UNKNOWN);
	CHECK(cuMemUnmap(at, 6 * GRAIN));
	CHECK(cuMemAddressFree(at, 8 * GRAIN));
	EXPECT(free_memory() == before);
	/* More than anybody keeps a list of. */
	at = reserve(32);
	for (size_t i = 0; i < 32; i += 2)
		map(at + i * GRAIN, 1);
	for (size_t i = 0; i < 32; i += 2)
		view(at + i * GRAIN, GRAIN);
	for (size_t i = 0; i < 32; i += 2) {
		fail_next("cuMemUnmap", CUDA_ERROR_UNKNOWN);
		CHECK(cuMemUnmap(at + i * GRAIN, GRAIN));
	}
	CHECK(cuMemAddressFree(at, 32 * GRAIN));
	EXPECT(free_memory() == before);
}

/* As failed_unmap, but the program's own call fails after the twin has gone. */
static void failed_unmap_late(const char *mode)
{
	CUdeviceptr at = allocate(2), twin = view(at, 2 * GRAIN);

	CHECK(cuMemsetD32(at, 22, 2 * GRAIN / 4));
	fail_nth("cuMemUnmap", 2, CUDA_ERROR_UNKNOWN);
	EXPECT(cuMemUnmap(at, 2 * GRAIN) == CUDA_ERROR_UNKNOWN);
	EXPECT(view(at, 2 * GRAIN) == twin && word_at(twin) == 22 && word_at(twin + GRAIN) == 22);
	give_back(at, 2);
}

/*
 * Memory that is added and cannot be mirrored: no new views of the range (a kernel may walk on into it), old ones stay;
 * mended when it can be, or is gone.
 */
static void broken_growth(const char *mode)
{
	CUdeviceptr at = reserve(4), twin;
	uint64_t none = 77;

	map(at, 1);
	twin = view(at, GRAIN);
	CHECK(cuMemsetD32(at, 31, 1));
	CUmemGenericAllocationHandle handle = create(1);
	CHECK(cuMemMap(at + GRAIN, GRAIN, 0, handle, 0));
	CHECK(cuMemRelease(handle));
	fail_next("cuMemMap", CUDA_ERROR_OUT_OF_MEMORY);
	let_write(at + GRAIN, 1);
	EXPECT(word_at(twin) == 31);
	fail_next("cuMemMap", CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(cuconst_view(at, 4, &none) == CUCONST_ERROR_NO_ROOM && none == 77);
	EXPECT(view(at, 2 * GRAIN) == twin);
	CHECK(cuMemUnmap(at + GRAIN, GRAIN));
	handle = create(1);
	CHECK(cuMemMap(at + GRAIN, GRAIN, 0, handle, 0));
	CHECK(cuMemRelease(handle));
	fail_next("cuMemMap", CUDA_ERROR_OUT_OF_MEMORY);
	let_write(at + GRAIN, 1);
	CHECK(cuMemUnmap(at + GRAIN, GRAIN));
	unsigned long long made = calls("cuMemMap");
	EXPECT(view(at, GRAIN) == twin && calls("cuMemMap") == made && word_at(twin) == 31);
	CHECK(cuMemUnmap(at, GRAIN));
	CHECK(cuMemAddressFree(at, 4 * GRAIN));
}

/*
 * The owner writes, frees and uses its memory again under a view, 10^4 times: nothing is reported, every read is of the
 * newest bytes.
 */
static void owner_recycles(const char *mode)
{
	CUdeviceptr at = reserve(2);

	map(at, 1);
	CUdeviceptr twin = view(at, GRAIN);
	for (int i = 0; i < 10000; i++) {
		CHECK(cuMemsetD32Async(at + 64, (unsigned)i, 16, stream));
		CHECK(cuStreamSynchronize(stream));
		EXPECT(word_at(twin + 64) == i);
		if (i % 10 == 9) {
			CHECK(cuMemUnmap(at, GRAIN));
			map(at, 1);
			EXPECT(view(at, GRAIN) == twin);
		}
	}
	EXPECT(stats().violations == 0 && stats().inconclusive == 0);
}

/* allocate, view, free, 10^5 times: device memory, addresses, and this process's memory stay. */
static void no_leak(const char *mode)
{
	size_t before = 0, resident = 0, rounds = mode ? (size_t)atoi(mode) : 100000;
	long pages = 0;

	for (size_t i = 0; i < rounds; i++) {
		CUdeviceptr at = allocate(1);
		view(at, 4096);
		cuconst_handle handle = 0;
		if (i % 16 == 0)
			CHECK(cuconst_protect(at, 4096, "p", CUCONST_NO_BASELINE, NULL, &handle));
		if (i % 32 == 0)
			CHECK(cuconst_unprotect(handle));
		give_back(at, 1);
		if (i != rounds / 10 && i != rounds - 1)
			continue;
		FILE *file = fopen("/proc/self/statm", "r");
		EXPECT(file && fscanf(file, "%*d %ld", &pages) == 1);
		fclose(file);
		if (i == rounds - 1) {
			EXPECT(free_memory() == before);
			EXPECT((size_t)pages <= resident + 512); /* 2 MiB */
		}
		before = free_memory();
		resident = (size_t)pages;
	}
	EXPECT(calls("cuMemAddressReserve") - calls("cuMemAddressFree") <= 0 && calls("cuMemMap") == calls("cuMemUnmap"));
	EXPECT(stats().ranges == 0);
}

/* A driver function as code finds it that passes the shim by: in the driver's own symbol table. */
static void *bare(const char *name)
{
	const struct link_map *map = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
	const ElfW(Sym) *symbols = NULL;
	const char *strings = NULL;

	EXPECT(map);
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		symbols = entry->d_tag == DT_SYMTAB ? (const void *)entry->d_un.d_ptr : symbols;
		strings = entry->d_tag == DT_STRTAB ? (const char *)entry->d_un.d_ptr : strings;
	}
	EXPECT(symbols && strings);
	/* The table of strings follows that of symbols, with every linker there is. */
	for (const ElfW(Sym) *symbol = symbols; (const char *)symbol < strings; symbol++)
		if (symbol->st_value && !strcmp(strings + symbol->st_name, name))
			return (void *)(map->l_addr + symbol->st_value);
	EXPECT(!"the driver has no such function");
	return NULL;
}

#define BARE(name) ((__typeof__(name) *)bare(#name))

static CUdeviceptr allocate_unseen(size_t mappings)
{
	const CUmemAccessDesc access = {.location = device_memory.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr at;

	CHECK(BARE(cuMemAddressReserve)(&at, mappings * GRAIN, 0, 0, 0));
	for (size_t i = 0; i < mappings; i++) {
		CUmemGenericAllocationHandle handle = create(1);
		CHECK(BARE(cuMemMap)(at + i * GRAIN, GRAIN, 0, handle, 0));
		CHECK(cuMemRelease(handle));
	}
	CHECK(BARE(cuMemSetAccess)(at, mappings * GRAIN, &access, 1));
	return at;
}

/* Memory that no hook saw being mapped is found by its handles, mapping by mapping, and its twin goes with it. */
static void unseen(const char *mode)
{
	CUdeviceptr at = allocate_unseen(3), twin = view(at + GRAIN - 8, 16) - (GRAIN - 8);
	size_t before = free_memory();

	EXPECT(twin != at && view(at, 3 * GRAIN) == twin && view(at + 3 * GRAIN - 1, 1) == twin + 3 * GRAIN - 1);
	CHECK(cuMemsetD32(at, 91, 3 * GRAIN / 4));
	EXPECT(word_at(twin) == 91 && word_at(twin + 3 * GRAIN - 4) == 91);
	CHECK(cuMemUnmap(at, 3 * GRAIN));
	EXPECT(free_memory() == before + 3 * GRAIN);
	CHECK(cuMemAddressFree(at, 3 * GRAIN));
}

/* It went as unseen as it came: what lies at its addresses next has a twin of its own. */
static void unseen_end(const char *mode)
{
	CUdeviceptr at = allocate_unseen(1), twin = view(at, GRAIN);

	CHECK(cuMemsetD32(at, 92, 1));
	EXPECT(word_at(twin) == 92);
	CHECK(BARE(cuMemUnmap)(at, GRAIN));
	CHECK(BARE(cuMemAddressFree)(at, GRAIN));
	CUdeviceptr again;
	CHECK(cuMemAddressReserve(&again, GRAIN, 0, at, 0));
	if (again != at)
		cannot("the driver keeps the addresses for something else");
	map(at, 1);
	CHECK(cuMemsetD32(at, 93, 1));
	EXPECT(word_at(view(at, GRAIN)) == 93);
}

/*
 * twins=all: what cuMemAlloc gives has twins, to the ends of each allocation, though several share a mapping; and large
 * ones end with their memory.
 */
static void served(const char *mode)
{
	uint64_t none = 77;
	CUdeviceptr large, twin = view(p, SIZE), other = view(q, SIZE);
	size_t before = free_memory();

	EXPECT(twin - p == other - q && twin != p);
	CHECK(cuMemsetD32(p, 71, COUNT));
	EXPECT(word_at(twin) == 71 && word_at(twin + SIZE - 4) == 71);
	EXPECT(cuMemsetD32(twin, 1, 1) != CUDA_SUCCESS && word_at(p) == 71);
	EXPECT(cuconst_view(p, SIZE + 1, &none) == CUCONST_ERROR_OUT_OF_RANGE && none == 77);
	EXPECT(!cuconst_view_known(p, SIZE + 1));
	EXPECT(view(twin, 16) == twin);
	CHECK(cuMemAlloc(&large, 8 * GRAIN));
	CHECK(cuMemsetD32(large, 72, 2 * GRAIN));
	CUdeviceptr far = view(large, 8 * GRAIN);
	EXPECT(word_at(far + 8 * GRAIN - 4) == 72);
	CHECK(cuMemFree(large));
	EXPECT(free_memory() == before);
	EXPECT(cuconst_view(large, 16, &none) == CUCONST_ERROR_NOT_DEVICE && none == 77);
	EXPECT(!cuconst_view_known(large, 16));
	/* A piece that is freed and given again: the view shows whose it is now. */
	CHECK(cuMemFree(p));
	EXPECT(cuconst_view(p, SIZE, &none) == CUCONST_ERROR_NOT_DEVICE && none == 77);
	CHECK(cuMemAlloc(&p, SIZE));
	CHECK(cuMemsetD32(p, 73, COUNT));
	EXPECT(word_at(view(p, SIZE)) == 73);
}

static void served_no_leak(const char *mode)
{
	size_t before = 0;

	for (size_t i = 0; i < 2000; i++) {
		CUdeviceptr at;
		CHECK(cuMemAlloc(&at, i % 2 ? 4 * GRAIN : 4096));
		view(at, 4096);
		CHECK(cuMemFree(at));
		if (i == 100)
			before = free_memory();
	}
	EXPECT(free_memory() == before);
}

static const struct scene scenes[] = {
	{"frees_in_time", frees_in_time},
	{"failed_unmap", failed_unmap},
	{"failed_unmap_late", failed_unmap_late},
	{"stuck_twin", stuck_twin},
	{"broken_growth", broken_growth},
	{"owner_recycles", owner_recycles},
	{"no_leak", no_leak},
	{"unseen", unseen},
	{"unseen_end", unseen_end},
	{"served", served},
	{"served_no_leak", served_no_leak},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	start();
	return scene_main(argc, argv, scenes);
}
