/*
 * Device memory: one memfd and one big reservation of addresses in this process, so that a device address is a host
 * address.
 *
 *     reservation:  | heap of device 0 | heap of device 1 | ... | addresses of cuMemAddressReserve |
 *     memfd:        | heap of device 0 | heap of device 1 | ... | physical memory of cuMemCreate   |
 *
 * The heaps are mapped for good; a piece of physical memory is mapped where cuMemMap says, at several addresses if
 * asked (aliases). Beside it lies a table with a word for each 512-byte granule: how many bytes at its start are live,
 * and which device may read and write them. It is what a kernel's every access is checked against, without a lock.
 */
#ifndef SOFTGPU_ARENA_H
#define SOFTGPU_ARENA_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SG_GRANULE = 512, SG_PAGE = 2 << 20 };

/* Who may do what: for each device two bits, as in CUmemAccess_flags. These are the same for all devices. */
enum { SG_ACCESS_NONE = 0, SG_ACCESS_READ = 0x5555, SG_ACCESS_WRITE = 0xffff };
/* Instead of a device: whichever has the access. */
enum { SG_ANY_DEVICE = -1 };

static inline unsigned sg_access_of(uint16_t access, int device)
{
	return access >> 2 * device & 3;
}

static inline bool sg_access_allows(uint16_t access, int device, bool write)
{
	unsigned wanted = write ? 0xaaaa : 0x5555;

	return (access & (device == SG_ANY_DEVICE ? wanted : wanted & 3u << 2 * device)) != 0;
}

/* Once, by cuInit; the lock is held. */
CUresult sg_arena_create(void);
/* How many devices there are and how much memory each has: SOFTGPU_DEVICES, SOFTGPU_MEMORY. */
int sg_device_count(void);
uint64_t sg_device_memory(void);

/*
 * Thread-safe without the lock. Is the address inside the reservation; on which device's heap (-1: none); may a device
 * access the bytes?
 */
bool sg_arena_holds(uint64_t address);
int sg_arena_device(uint64_t address);
bool sg_arena_check(uint64_t address, size_t bytes, int device, bool write);

/* With the lock held, all that follow. `address` is a multiple of SG_GRANULE in sg_arena_mark. */
void sg_arena_mark(uint64_t address, size_t bytes, uint16_t access);
/* The heap of a device: SG_GRANULE aligned, pieces from 2 MiB on 2 MiB aligned. Marks nothing. */
bool sg_heap_take(int device, size_t bytes, uint64_t *ret_address);
void sg_heap_give(int device, uint64_t address, size_t bytes);
/* The descriptor that holds the heaps, and where the address lies in its file. */
int sg_arena_file(uint64_t address, uint64_t *ret_offset);
/* Free bytes of a device, heap and physical memory together. */
uint64_t sg_device_free(int device);

/* Addresses and physical memory of virtual memory management; sizes are multiples of SG_PAGE. */
bool sg_space_take(size_t bytes, uint64_t align, uint64_t wanted, uint64_t *ret_address);
void sg_space_give(uint64_t address, size_t bytes);
bool sg_physical_take(int device, size_t bytes, uint64_t *ret_offset);
void sg_physical_give(int device, uint64_t offset, size_t bytes);
/* Memory of the device that lies in another file. */
void sg_physical_count(int device, int64_t bytes);
/*
 * Maps physical memory, that of another file unless `file` is -1, no access yet; sets the access of whole pages; takes
 * the mapping away.
 */
bool sg_arena_map(uint64_t address, size_t bytes, int file, uint64_t offset);
bool sg_arena_protect(uint64_t address, size_t bytes, uint16_t access);
void sg_arena_unmap(uint64_t address, size_t bytes);

#endif
