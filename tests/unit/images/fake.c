#include "tests/unit/images/fake.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include "shim/kernels/function.h"
#include "tests/unit/images/check.h"

#define HANDLES 4096

struct driver drv;
const char *code_folder;
static unsigned device_machines[8];
static size_t device_count;

/* -1: not a handle of that kind. */
static int number(const void *handle, uintptr_t base)
{
	uintptr_t at = (uintptr_t)handle;
	return at >= base && at < base + 16 * HANDLES ? (int)((at - base) / 16) : -1;
}

static CUresult func_get_module(CUmodule *module, CUfunction function)
{
	int n = number(function, 0x30000);
	if (n < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	*module = MODULE(n);
	return CUDA_SUCCESS;
}

static CUresult func_get_name(const char **name, CUfunction function)
{
	*name = "which";
	return number(function, 0x30000) < 0 ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

static CUresult param_info(size_t index, size_t *offset, size_t *bytes)
{
	if (index >= 4)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = 8 * index;
	*bytes = 8;
	return CUDA_SUCCESS;
}

static CUresult func_get_param_info(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
	return number(function, 0x30000) < 0 ? CUDA_ERROR_INVALID_HANDLE : param_info(index, offset, bytes);
}

static CUresult kernel_get_library(CUlibrary *library, CUkernel kernel)
{
	int n = number(kernel, 0x40000);
	if (n < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	*library = LIBRARY(n);
	return CUDA_SUCCESS;
}

static CUresult kernel_get_name(const char **name, CUkernel kernel)
{
	*name = "which";
	return number(kernel, 0x40000) < 0 ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

static CUresult kernel_get_param_info(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
	return number(kernel, 0x40000) < 0 ? CUDA_ERROR_INVALID_HANDLE : param_info(index, offset, bytes);
}

static CUresult kernel_get_function(CUfunction *function, CUkernel kernel)
{
	int n = number(kernel, 0x40000);
	if (n < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	*function = FUNCTION(n);
	return CUDA_SUCCESS;
}

static CUresult library_get_kernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	int n = number(library, 0x20000);
	EXPECT(n >= 0);
	*kernel = KERNEL(n);
	return strcmp(name, "which") ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

static CUresult get_current(CUcontext *context)
{
	*context = CONTEXT;
	return CUDA_SUCCESS;
}

static CUresult device_get_count(int *count)
{
	*count = (int)device_count;
	return CUDA_SUCCESS;
}

static CUresult device_get(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return CUDA_SUCCESS;
}

static CUresult device_get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	unsigned machine = device_machines[device];
	*value = (int)(attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? machine / 10 : machine % 10);
	return CUDA_SUCCESS;
}

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
	static __thread CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
	CUstreamCaptureMode old = current;
	current = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

static struct link_map *object_at(const void *address)
{
	Dl_info info;
	struct link_map *map;
	return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

void fake_machines(const unsigned *machines, size_t count)
{
	memcpy(device_machines, machines, count * sizeof *machines);
	device_count = count;
}

void fake_start(const unsigned *machines, size_t count)
{
	fake_machines(machines, count);
	drv.cuFuncGetModule = func_get_module;
	drv.cuFuncGetName = func_get_name;
	drv.cuFuncGetParamInfo = func_get_param_info;
	drv.cuKernelGetLibrary = kernel_get_library;
	drv.cuKernelGetName = kernel_get_name;
	drv.cuKernelGetParamInfo = kernel_get_param_info;
	drv.cuKernelGetFunction = kernel_get_function;
	drv.cuLibraryGetKernel = library_get_kernel;
	drv.cuCtxGetCurrent = get_current;
	drv.cuDeviceGetCount = device_get_count;
	drv.cuDeviceGet = device_get;
	drv.cuDeviceGetAttribute = device_get_attribute;
	drv.cuThreadExchangeStreamCaptureMode = exchange_mode;
	images_start(object_at, dlsym);
}

void fake_unload_module(unsigned n)
{
	function_forget();
	images_ended(MODULE(n), images_ending(MODULE(n)));
}

void fake_unload_library(unsigned n)
{
	function_forget();
	images_ended(LIBRARY(n), images_ending(LIBRARY(n)));
}

int stored_slot(const struct kernel_paths *paths)
{
	int slot = -1;
	EXPECT(paths);
	if (paths->reason != PATHS_CLEAR || paths->slot_count != 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		if (paths->slots[i].use != SLOT_STORE)
			continue;
		if (slot >= 0)
			return -1;
		slot = i;
	}
	return slot;
}

const uint8_t *which_cubin(unsigned slot, size_t *ret_bytes)
{
	static uint8_t *cubins[4];
	static size_t bytes[4];
	char path[4096];
	EXPECT(slot < 4);
	if (!cubins[slot]) {
		snprintf(path, sizeof path, "%s/which_%u.cubin", code_folder, slot);
		cubins[slot] = read_all(path, &bytes[slot]);
	}
	*ret_bytes = bytes[slot];
	return cubins[slot];
}

char *which_ptx(unsigned slot)
{
	char *text = NULL;
	EXPECT(asprintf(&text,
	                ".version 7.0\n.target sm_50\n.address_size 64\n"
	                ".visible .entry which(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)\n"
	                "{\n.reg .b64 %%a;\nld.param.u64 %%a, [p%u];\nst.global.u64 [%%a], 7;\nret;\n}\n",
	                slot) > 0);
	return text;
}

/* Literals alone: any decoder must take them. Returns how many bytes it takes. */
static size_t pack_lz4(uint8_t *to, const uint8_t *code, size_t bytes)
{
	uint8_t *at = to;
	*at++ = bytes >= 15 ? 0xf0 : (uint8_t)(bytes << 4);
	if (bytes >= 15) {
		size_t more = bytes - 15;
		for (; more >= 255; more -= 255)
			*at++ = 255;
		*at++ = (uint8_t)more;
	}
	memcpy(at, code, bytes);
	return (size_t)(at - to) + bytes;
}

/* A frame of raw blocks, with the size of its content. */
static size_t pack_zstd(uint8_t *to, const uint8_t *code, size_t bytes)
{
	static const uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd, 0xa0};
	const size_t block = 100000;
	uint8_t *at = to;
	memcpy(at, magic, sizeof magic);
	at += sizeof magic;
	const uint32_t size = (uint32_t)bytes;
	memcpy(at, &size, 4);
	at += 4;
	for (size_t done = 0; done < bytes || !done;) {
		size_t part = bytes - done < block ? bytes - done : block;
		uint32_t header = (uint32_t)part << 3 | (done + part == bytes);
		memcpy(at, &header, 3);
		memcpy(at + 3, code + done, part);
		at += 3 + part;
		done += part;
		if (!bytes)
			break;
	}
	return (size_t)(at - to);
}

static void put(uint8_t *at, uint64_t value, size_t bytes)
{
	memcpy(at, &value, bytes);
}

uint8_t *make_fatbin(const struct entry *entries, size_t count, size_t *ret_bytes)
{
	size_t room = 16, at = 16;
	for (size_t i = 0; i < count; i++)
		room += 64 + 2 * entries[i].bytes + 64;
	uint8_t *fatbin = calloc(1, room);
	EXPECT(fatbin);
	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = &entries[i];
		uint8_t *header = fatbin + at;
		static const uint64_t flags[] = {0, 0x2000, 0x8000};
		size_t packed = entry->bytes;
		if (entry->packing == PLAIN)
			memcpy(header + 64, entry->code, entry->bytes);
		else
			packed = (entry->packing == LZ4 ? pack_lz4 : pack_zstd)(header + 64, entry->code, entry->bytes);
		size_t padded = (packed + 7) / 8 * 8;
		put(header, entry->kind, 2);
		put(header + 2, 0x0101, 2);
		put(header + 4, 64, 4);
		put(header + 8, padded, 8);
		put(header + 16, entry->packing == PLAIN ? 0 : packed, 4);
		put(header + 28, entry->sm, 4);
		put(header + 40, 0x11 | entry->flags | flags[entry->packing], 8);
		put(header + 56, entry->packing == PLAIN ? 0 : entry->bytes, 8);
		at += 64 + padded;
	}
	EXPECT(at <= room);
	put(fatbin, 0xba55ed50, 4);
	put(fatbin + 4, 1, 2);
	put(fatbin + 6, 16, 2);
	put(fatbin + 8, at - 16, 8);
	*ret_bytes = at;
	return fatbin;
}
