/* The table of live memory: everything an address given to a call may mean. With the lock held throughout. */
#ifndef SOFTGPU_MEMORY_H
#define SOFTGPU_MEMORY_H

#include "tests/softgpu/driver/arena.h"
#include "tests/softgpu/driver/context.h"

enum sg_memory_kind {
	SG_MEMORY_DEVICE,     /* cuMemAlloc */
	SG_MEMORY_POOL,       /* cuMemAllocAsync; given back by cuMemFree or cuMemFreeAsync */
	SG_MEMORY_GRAPH,      /* of an allocation node; given back the same ways while it is out */
	SG_MEMORY_MANAGED,    /* cuMemAllocManaged */
	SG_MEMORY_VARIABLE,   /* a module's .global */
	SG_MEMORY_MAPPING,    /* cuMemMap */
	SG_MEMORY_OPENED,     /* cuIpcOpenMemHandle: of another process */
	SG_MEMORY_HOST,       /* cuMemHostAlloc, cuMemAllocHost */
	SG_MEMORY_REGISTERED, /* cuMemHostRegister */
};

struct sg_block;
struct sg_pool;
struct sg_physical;

/*
 * What was advised about managed memory: kept, answered, and of no effect. For a whole allocation, whatever part was
 * meant.
 */
struct sg_advice {
	bool read_mostly;
	CUmemLocation preferred, prefetched; /* type CU_MEM_LOCATION_TYPE_INVALID: none */
	unsigned accessed_by;                /* bit d: device d; bit SG_DEVICES_MAX: the host */
};

struct sg_allocation {
	uint64_t address;
	size_t bytes; /* as asked for */
	enum sg_memory_kind kind;
	uint16_t access; /* of all devices, see arena.h */
	int device;
	struct sg_context *context; /* NULL for pools and mappings: they belong to a device */
	unsigned flags;
	uint64_t id;
	bool sync_memops;
	struct sg_advice advice;
	struct sg_pool *pool;
	struct sg_block *block; /* of a graph */
	struct sg_physical *physical;
	size_t physical_offset; /* of the mapping in its physical memory */
};

/* The allocation that holds the address, or NULL. */
struct sg_allocation *sg_allocation_at(uint64_t address);
/* The one that starts there. */
struct sg_allocation *sg_allocation_of(uint64_t address);
/* Copies the description into the table and marks device memory accessible; NULL without memory. */
struct sg_allocation *sg_allocation_add(const struct sg_allocation *description);
/* Takes it out of the table and frees the description; the memory stays with the caller. */
void sg_allocation_remove(struct sg_allocation *allocation);
/* How many there are and number i in order of address; the table may not change in between. */
size_t sg_allocation_count(void);
struct sg_allocation *sg_allocation_number(size_t i);

/* Frees what a context owns, at its end. */
void sg_memory_end(struct sg_context *context);
/* A block of a device's heap, known and marked: 0 when there is none left. Zeroed if asked for. */
uint64_t sg_device_take(struct sg_context *context, size_t bytes, enum sg_memory_kind kind, bool zero);
void sg_device_give(struct sg_allocation *allocation);

/* Waits for all work of all contexts: before memory goes away. */
void sg_drain_all(void);
/* Host memory: unmapped if the driver mapped it, and forgotten. */
void sg_host_give(struct sg_allocation *allocation);

enum sg_place {
	SG_PLACE_NOWHERE,  /* not live, or not as long, or not accessible this way: an error */
	SG_PLACE_KNOWN,    /* device, pinned, managed: plain loads and stores are safe */
	SG_PLACE_PAGEABLE, /* ordinary host memory, perhaps */
};
/*
 * Where [address, address + bytes) is, for the context that reaches for it: its device needs the access. NULL: any
 * device with the access will do.
 */
enum sg_place sg_place_of(const struct sg_context *context, uint64_t address, size_t bytes, bool write);

/* For kernels, without the lock. Fits struct ptx_memory: data is the struct sg_context. */
bool sg_kernel_check(void *data, uint64_t address, size_t bytes, bool write);
uint64_t sg_kernel_alloc(void *data, size_t bytes, size_t align);
void sg_kernel_free(void *data, uint64_t address);
void sg_kernel_wrote(void *data, uint64_t address, size_t bytes);
uint64_t sg_kernel_heap_take(void *data, size_t bytes);
bool sg_kernel_heap_give(void *data, uint64_t address);
/* With the lock held: what kernels of the context left on their heap. */
void sg_kernel_heap_end(const struct sg_context *context);

#endif
