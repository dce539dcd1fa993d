#include "tests/softgpu/driver/arena.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/softgpu/driver/core.h"
#include "tests/softgpu/driver/ranges.h"

#define SPACE_BYTES (UINT64_C(256) << 30)

/* A table entry: how many bytes of the granule are live, 0 to 512, and in the upper half who may access them. */
enum { LIVE = 0x3ff, ACCESS_SHIFT = 16 };

static uint64_t base, end, space; /* the reservation, and where the addresses of virtual memory management start in it */
static uint64_t memory;           /* bytes of a device */
static int devices, fd = -1;
static _Atomic uint32_t *granules;
static struct sg_ranges heaps[SG_DEVICES_MAX], addresses, physical;
static uint64_t physical_used[SG_DEVICES_MAX];

int sg_device_count(void)
{
	return devices;
}

uint64_t sg_device_memory(void)
{
	return memory;
}

bool sg_arena_holds(uint64_t address)
{
	return address >= base && address < end;
}

int sg_arena_device(uint64_t address)
{
	return address >= base && address < space ? (int)((address - base) / memory) : -1;
}

bool sg_arena_check(uint64_t address, size_t bytes, int device, bool write)
{
	if (!sg_arena_holds(address) || bytes > end - address)
		return false;
	while (bytes > 0) {
		uint32_t entry = atomic_load_explicit(&granules[(address - base) / SG_GRANULE], memory_order_relaxed);
		size_t offset = address % SG_GRANULE, part = SG_GRANULE - offset < bytes ? SG_GRANULE - offset : bytes;
		if (offset + part > (entry & LIVE) || !sg_access_allows((uint16_t)(entry >> ACCESS_SHIFT), device, write))
			return false;
		address += part;
		bytes -= part;
	}
	return true;
}

void sg_arena_mark(uint64_t address, size_t bytes, uint16_t access)
{
	uint32_t who = (uint32_t)access << ACCESS_SHIFT;

	for (size_t i = (address - base) / SG_GRANULE; bytes > 0; i++) {
		size_t part = bytes < SG_GRANULE ? bytes : SG_GRANULE;
		atomic_store_explicit(&granules[i], access == SG_ACCESS_NONE ? 0 : (uint32_t)part | who,
		                      memory_order_relaxed);
		bytes -= part;
	}
}

/*
 * The address is fixed, so that runs can be compared. The first choice is free in an ordinary process and one of the
 * few places where ThreadSanitizer lets programs map; AddressSanitizer lives there, and leaves room at the second; the
 * last leaves it to the kernel.
 */
static bool reserve(uint64_t bytes)
{
	static const uint64_t choices[] = {UINT64_C(0x1000000000), UINT64_C(0x200000000000), 0};

	for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++) {
		void *wanted = (void *)(uintptr_t)choices[i];
		void *got = mmap(wanted, bytes, PROT_NONE,
		                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (wanted != NULL ? MAP_FIXED_NOREPLACE : 0),
		                 -1, 0);
		if (got == MAP_FAILED)
			continue;
		if (wanted == NULL || got == wanted) {
			base = (uint64_t)(uintptr_t)got;
			return true;
		}
		munmap(got, bytes);
	}
	return false;
}

static bool create_lists(void)
{
	for (int i = 0; i < devices; i++)
		if (!sg_ranges_init(&heaps[i], base + (uint64_t)i * memory, memory))
			return false;
	return sg_ranges_init(&addresses, space, SPACE_BYTES) &&
	       sg_ranges_init(&physical, (uint64_t)devices * memory, (uint64_t)devices * memory);
}

CUresult sg_arena_create(void)
{
	uint64_t wanted = sg_environment("SOFTGPU_DEVICES", 2);

	devices = wanted < SG_DEVICES_MAX ? (int)wanted : SG_DEVICES_MAX;
	if (devices == 0)
		return CUDA_ERROR_NO_DEVICE;
	memory = (sg_environment("SOFTGPU_MEMORY", UINT64_C(8) << 30) + SG_PAGE - 1) & ~(uint64_t)(SG_PAGE - 1);
	if (memory < SG_PAGE || memory > UINT64_C(64) << 30)
		memory = UINT64_C(8) << 30;

	uint64_t heap_bytes = (uint64_t)devices * memory, bytes = heap_bytes + SPACE_BYTES;
	fd = memfd_create("softgpu", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)(2 * heap_bytes)) != 0 || !reserve(bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	space = base + heap_bytes;
	end = base + bytes;
	void *table = mmap(NULL, bytes / SG_GRANULE * sizeof(*granules), PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	void *start = (void *)(uintptr_t)base;
	if (table == MAP_FAILED ||
	    mmap(start, heap_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    !create_lists())
		return CUDA_ERROR_OUT_OF_MEMORY;
	granules = table;
	/*
	 * A child of fork must not write into its parent's device; as on a real GPU the addresses mean nothing there.
	 */
	madvise(start, bytes, MADV_DONTFORK);
	madvise(start, bytes, MADV_DONTDUMP);
	return CUDA_SUCCESS;
}

static size_t rounded(size_t bytes)
{
	return (bytes + SG_GRANULE - 1) & ~(size_t)(SG_GRANULE - 1);
}

bool sg_heap_take(int device, size_t bytes, uint64_t *ret_address)
{
	if (bytes == 0 || bytes > memory || rounded(bytes) > sg_device_free(device))
		return false;
	return sg_ranges_take(&heaps[device], rounded(bytes), bytes >= SG_PAGE ? SG_PAGE : SG_GRANULE, ret_address);
}

void sg_heap_give(int device, uint64_t address, size_t bytes)
{
	sg_ranges_give(&heaps[device], address, rounded(bytes));
	if (bytes >= SG_PAGE)
		madvise((void *)(uintptr_t)address, bytes & ~(size_t)4095, MADV_REMOVE);
}

int sg_arena_file(uint64_t address, uint64_t *ret_offset)
{
	*ret_offset = address - base;
	return fd;
}

uint64_t sg_device_free(int device)
{
	uint64_t used = memory - heaps[device].free_bytes + physical_used[device];

	return used < memory ? memory - used : 0;
}

bool sg_space_take(size_t bytes, uint64_t align, uint64_t wanted, uint64_t *ret_address)
{
	if (wanted != 0 && sg_ranges_take_at(&addresses, wanted, bytes)) {
		*ret_address = wanted;
		return true;
	}
	return sg_ranges_take(&addresses, bytes, align > SG_PAGE ? align : SG_PAGE, ret_address);
}

void sg_space_give(uint64_t address, size_t bytes)
{
	sg_ranges_give(&addresses, address, bytes);
}

bool sg_physical_take(int device, size_t bytes, uint64_t *ret_offset)
{
	if (bytes > sg_device_free(device) || !sg_ranges_take(&physical, bytes, SG_PAGE, ret_offset))
		return false;
	physical_used[device] += bytes;
	return true;
}

void sg_physical_give(int device, uint64_t offset, size_t bytes)
{
	sg_ranges_give(&physical, offset, bytes);
	physical_used[device] -= bytes;
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
}

void sg_physical_count(int device, int64_t bytes)
{
	physical_used[device] += (uint64_t)bytes;
}

bool sg_arena_map(uint64_t address, size_t bytes, int file, uint64_t offset)
{
	void *start = (void *)(uintptr_t)address;

	if (mmap(start, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file < 0 ? fd : file, (off_t)offset) == MAP_FAILED)
		return false;
	madvise(start, bytes, MADV_DONTFORK);
	madvise(start, bytes, MADV_DONTDUMP);
	return true;
}

bool sg_arena_protect(uint64_t address, size_t bytes, uint16_t access)
{
	int protection = sg_access_allows(access, SG_ANY_DEVICE, true)    ? PROT_READ | PROT_WRITE
	                 : sg_access_allows(access, SG_ANY_DEVICE, false) ? PROT_READ
	                                                                  : PROT_NONE;

	if (mprotect((void *)(uintptr_t)address, bytes, protection) != 0)
		return false;
	sg_arena_mark(address, bytes, access);
	return true;
}

void sg_arena_unmap(uint64_t address, size_t bytes)
{
	sg_arena_mark(address, bytes, SG_ACCESS_NONE);
	/* Memory that stayed would hide a fault of the program under test. */
	if (mmap((void *)(uintptr_t)address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
	         -1, 0) == MAP_FAILED)
		abort();
}
