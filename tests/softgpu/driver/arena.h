/*
 * Device memory: one memfd and one big reservation of addresses in this process, so that a device address is a host
 * address.
 *
 *     reservation:  | heap of device 0 | heap of device 1 | ... | addresses of cuMemAddressReserve |
 *     memfd:        | heap of device 0 | heap of device 1 | ... | physical memory of cuMemCreate   |
 *
 * The heaps are mapped for good; a piece of physical memory is mapped where cuMemMap says, at several addresses if
 * asked (aliases). Beside it lies a table with two bytes for each 512-byte granule: how many bytes at its start may be
 * accessed, and whether they may be written. It is what a kernel's every access is checked against, without a lock.
 */
#ifndef SOFTGPU_ARENA_H
#define SOFTGPU_ARENA_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SG_GRANULE = 512, SG_PAGE = 2 << 20 };

enum sg_access { SG_ACCESS_NONE = 0, SG_ACCESS_READ = 1, SG_ACCESS_WRITE = 3 };

/* Once, by cuInit; the lock is held. */
CUresult sg_arena_create(void);
/* How many devices there are and how much memory each has: SOFTGPU_DEVICES, SOFTGPU_MEMORY. */
int sg_device_count(void);
uint64_t sg_device_memory(void);

/* Thread-safe without the lock. Is the address inside the reservation; on which device's heap (-1: none); may the bytes be accessed? */
bool sg_arena_holds(uint64_t address);
int sg_arena_device(uint64_t address);
bool sg_arena_check(uint64_t address, size_t bytes, bool write);

/* With the lock held, all that follow. `address` is a multiple of SG_GRANULE in sg_arena_mark. */
void sg_arena_mark(uint64_t address, size_t bytes, enum sg_access access);
/* The heap of a device: SG_GRANULE aligned, pieces from 2 MiB on 2 MiB aligned. Marks nothing. */
bool sg_heap_take(int device, size_t bytes, uint64_t *ret_address);
void sg_heap_give(int device, uint64_t address, size_t bytes);
/* Free bytes of a device, heap and physical memory together. */
uint64_t sg_device_free(int device);

/* Addresses and physical memory of virtual memory management; sizes are multiples of SG_PAGE. */
bool sg_space_take(size_t bytes, uint64_t align, uint64_t wanted, uint64_t *ret_address);
void sg_space_give(uint64_t address, size_t bytes);
bool sg_physical_take(int device, size_t bytes, uint64_t *ret_offset);
void sg_physical_give(int device, uint64_t offset, size_t bytes);
/* Maps physical memory, no access yet; sets the access of whole pages; takes the mapping away. */
bool sg_arena_map(uint64_t address, size_t bytes, uint64_t offset);
bool sg_arena_protect(uint64_t address, size_t bytes, enum sg_access access);
void sg_arena_unmap(uint64_t address, size_t bytes);

#endif
