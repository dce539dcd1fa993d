/*
 * Memory between processes. cuMemCreate's can be exported as a descriptor: it is a memfd of its own, named by device,
 * so that an importer knows it again. cuMemAlloc's lies in the device's one memfd, which the other process opens by way
 * of /proc: what a CUipcMemHandle holds says where. No process may do so that could not read the exporter's memory
 * anyway.
 */
#include "tests/softgpu/driver/share.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/softgpu/driver/memory.h"
#include "tests/softgpu/driver/vmm.h"

#define NAME_OF_MEMORY "softgpu-device-"

enum { HOST_PAGE = 4096 };

int sg_share_create(int device, size_t bytes)
{
	char name[32];

	snprintf(name, sizeof(name), NAME_OF_MEMORY "%d", device);
	int fd = memfd_create(name, MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Is the descriptor's file a memfd whose name starts so? What follows goes to `rest`. */
static bool is_memfd(int fd, const char *start, char *rest, size_t room)
{
	char path[64], target[128];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return false;
	target[length] = '\0';
	size_t head = strlen("/memfd:");
	if (strncmp(target, "/memfd:", head) != 0 || strncmp(target + head, start, strlen(start)) != 0)
		return false;
	snprintf(rest, room, "%s", target + head + strlen(start));
	return true;
}

CUresult sg_cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                         CUmemAllocationHandleType handleType, unsigned long long flags)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	const struct sg_physical *physical = sg_physical_of(handle);
	if (shareableHandle != NULL && physical != NULL && physical->handles > 0 && physical->fd >= 0 && flags == 0 &&
	    handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
		int fd = fcntl(physical->fd, F_DUPFD_CLOEXEC, 0);
		status = fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
		if (fd >= 0)
			*(int *)shareableHandle = fd;
	}
	sg_unlock();
	return status;
}

/* The same memory under a handle of its own; the caller's descriptor stays the caller's. */
CUresult sg_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                           CUmemAllocationHandleType shHandleType)
{
	int given = (int)(intptr_t)osHandle;
	char device[16];
	struct stat file;

	if (handle == NULL || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_memfd(given, NAME_OF_MEMORY, device, sizeof(device)) || fstat(given, &file) != 0)
		return CUDA_ERROR_UNKNOWN;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                            .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = atoi(device)}};
	if (!sg_is_device(prop.location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	int fd = fcntl(given, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	sg_lock();
	CUmemGenericAllocationHandle fresh = sg_physical_adopt(&prop, fd, (size_t)file.st_size, true);
	if (fresh != 0)
		*handle = fresh;
	sg_unlock();
	if (fresh == 0)
		close(fd);
	return fresh != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What a CUipcMemHandle holds. */
struct ticket {
	char magic[8];
	int pid, fd, device;
	uint64_t id, offset, bytes; /* of the allocation, in the exporter's memfd */
};
_Static_assert(sizeof(struct ticket) <= sizeof(CUipcMemHandle), "a handle has no room for more");

static const char magic[8] = "softgpu";

/* What this process opened: the same handle again gives the same address. */
struct opened {
	struct ticket ticket;
	uint64_t address, reserved;
	size_t reserved_bytes;
	unsigned times;
	struct opened *next;
};

static struct opened *all_opened;

CUresult sg_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	const struct sg_allocation *memory = sg_allocation_at(dptr);
	if (pHandle != NULL && memory != NULL && memory->kind == SG_MEMORY_DEVICE) {
		struct ticket ticket = {
			.pid = getpid(), .device = memory->device, .id = memory->id, .bytes = memory->bytes};
		memcpy(ticket.magic, magic, sizeof(magic));
		ticket.fd = sg_arena_file(memory->address, &ticket.offset);
		memset(pHandle, 0, sizeof(*pHandle));
		memcpy(pHandle, &ticket, sizeof(ticket));
		status = CUDA_SUCCESS;
	}
	sg_unlock();
	return status;
}

/* The exporter's memfd, or -1 when it is gone, or not what the handle says. */
static int open_file_of(const struct ticket *ticket)
{
	char path[64], rest[64];
	struct stat file;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", ticket->pid, ticket->fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (is_memfd(fd, "softgpu", rest, sizeof(rest)) && fstat(fd, &file) == 0 &&
	    ticket->offset <= (uint64_t)file.st_size && ticket->bytes <= (uint64_t)file.st_size - ticket->offset)
		return fd;
	close(fd);
	return -1;
}

/* Maps the whole host pages that the allocation touches; only its own bytes become accessible. */
static CUresult map_ticket(const struct ticket *ticket, int fd, struct opened *opened)
{
	uint64_t skip = ticket->offset % HOST_PAGE;
	size_t bytes = (skip + ticket->bytes + HOST_PAGE - 1) & ~(size_t)(HOST_PAGE - 1);

	opened->reserved_bytes = (bytes + SG_PAGE - 1) & ~(size_t)(SG_PAGE - 1);
	if (!sg_space_take(opened->reserved_bytes, SG_PAGE, 0, &opened->reserved))
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct sg_allocation fresh = {.address = opened->reserved + skip,
	                              .bytes = ticket->bytes,
	                              .kind = SG_MEMORY_OPENED,
	                              .access = SG_ACCESS_WRITE,
	                              .device = ticket->device,
	                              .context = NULL};
	if (sg_arena_map(opened->reserved, bytes, fd, ticket->offset - skip) &&
	    sg_arena_protect(opened->reserved, bytes, SG_ACCESS_WRITE)) {
		sg_arena_mark(opened->reserved, bytes, SG_ACCESS_NONE);
		if (sg_allocation_add(&fresh) != NULL) {
			opened->address = fresh.address;
			return CUDA_SUCCESS;
		}
	}
	sg_arena_unmap(opened->reserved, opened->reserved_bytes);
	sg_space_give(opened->reserved, opened->reserved_bytes);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult open_ticket(const struct ticket *ticket, CUdeviceptr *ret_address)
{
	for (struct opened *known = all_opened; known != NULL; known = known->next)
		if (memcmp(&known->ticket, ticket, sizeof(*ticket)) == 0) {
			known->times++;
			*ret_address = known->address;
			return CUDA_SUCCESS;
		}
	int fd = open_file_of(ticket);
	if (fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct opened *fresh = calloc(1, sizeof(*fresh));
	CUresult status = fresh == NULL ? CUDA_ERROR_OUT_OF_MEMORY : map_ticket(ticket, fd, fresh);
	close(fd);
	if (status != CUDA_SUCCESS) {
		free(fresh);
		return status;
	}
	fresh->ticket = *ticket;
	fresh->times = 1;
	fresh->next = all_opened;
	all_opened = fresh;
	*ret_address = fresh->address;
	return CUDA_SUCCESS;
}

CUresult sg_cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	struct ticket ticket;

	memcpy(&ticket, &handle, sizeof(ticket));
	if (pdptr == NULL || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
	    memcmp(ticket.magic, magic, sizeof(magic)) != 0 || !sg_is_device(ticket.device) || ticket.bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (ticket.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	sg_lock();
	CUresult status = open_ticket(&ticket, pdptr);
	sg_unlock();
	return status;
}

CUresult sg_cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	return sg_cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

CUresult sg_cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	sg_lock();
	/* Work under way must not lose its memory. */
	sg_drain_all();
	struct opened **link = &all_opened;
	while (*link != NULL && (*link)->address != dptr)
		link = &(*link)->next;
	struct opened *found = *link;
	if (found != NULL && --found->times == 0) {
		*link = found->next;
		sg_allocation_remove(sg_allocation_of(found->address));
		sg_arena_unmap(found->reserved, found->reserved_bytes);
		sg_space_give(found->reserved, found->reserved_bytes);
		free(found);
	}
	sg_unlock();
	return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
