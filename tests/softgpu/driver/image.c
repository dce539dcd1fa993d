/* From an image to PTX text. */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "tests/softgpu/driver/module.h"
#include "tests/softgpu/driver/probe.h"

enum { WRAPPER_MAGIC = 0x466243b1 };
#define FATBIN_MAGIC 0xba55ed50u

struct wrapper {
	uint32_t magic, version;
	const void *data, *file;
};

/* Behind blanks and comments stands a directive. */
static bool begins_like_ptx(const char *text)
{
	for (;;) {
		text += strspn(text, " \t\r\n\f\v");
		if (text[0] == '/' && text[1] == '/')
			text += strcspn(text, "\n");
		else if (text[0] == '/' && text[1] == '*' && strstr(text + 2, "*/") != NULL)
			text = strstr(text + 2, "*/") + 2;
		else
			return *text == '.';
	}
}

CUresult sg_image_text(const void *image, struct sg_text *ret_text)
{
	struct wrapper wrapper;
	uint32_t magic;

	if (image == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	/* A text may be shorter than four bytes: look no further than its end. */
	if (strnlen(image, sizeof(magic)) < sizeof(magic) && ((const unsigned char *)image)[0] != 0x7f) {
		if (((const unsigned char *)image)[0] < 0x80)
			return CUDA_ERROR_INVALID_IMAGE;
	}
	memcpy(&magic, image, sizeof(magic));
	if (magic == WRAPPER_MAGIC) {
		memcpy(&wrapper, image, sizeof(wrapper));
		if (wrapper.data == NULL)
			return CUDA_ERROR_INVALID_IMAGE;
		image = wrapper.data;
		memcpy(&magic, image, sizeof(magic));
	}
	if (magic == FATBIN_MAGIC)
		return sg_fatbin_text(image, ret_text);
	if (memcmp(image, "\177ELF", 4) == 0) {
		/* Without a section it is no cubin at all. */
		Elf64_Ehdr header;
		if (((const unsigned char *)image)[EI_CLASS] == ELFCLASS64) {
			memcpy(&header, image, sizeof(header));
			if (header.e_machine != EM_CUDA)
				return CUDA_ERROR_INVALID_IMAGE;
		}
		sg_say("a cubin is machine code, which is not run here: load PTX");
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	*ret_text = (struct sg_text){.text = image, .bytes = strlen(image)};
	return begins_like_ptx(image) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult sg_status_of(enum ptx_status status)
{
	switch (status) {
	case PTX_OK:
		return CUDA_SUCCESS;
	case PTX_INVALID:
		return CUDA_ERROR_INVALID_PTX;
	case PTX_UNSUPPORTED_VERSION:
		return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
	case PTX_UNSUPPORTED:
		return CUDA_ERROR_NOT_SUPPORTED;
	case PTX_OUT_OF_MEMORY:
		return CUDA_ERROR_OUT_OF_MEMORY;
	case PTX_FAULT_ADDRESS:
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	case PTX_FAULT_ALIGN:
		return CUDA_ERROR_MISALIGNED_ADDRESS;
	case PTX_FAULT_LIMIT:
		return CUDA_ERROR_LAUNCH_TIMEOUT;
	case PTX_FAULT_ASSERT:
		return CUDA_ERROR_ASSERT;
	case PTX_BAD_LAUNCH:
		return CUDA_ERROR_INVALID_VALUE;
	case PTX_FAULT_TRAP:
	case PTX_FAULT_BARRIER:
		break;
	}
	return CUDA_ERROR_LAUNCH_FAILED;
}

CUresult sg_image_load(const char *text, size_t bytes, const struct ptx_memory *memory, char *log, size_t log_bytes,
                       struct ptx_module **ret_module)
{
	return sg_status_of(ptx_load(text, bytes, memory, log, log_bytes, ret_module));
}

void sg_jit_log(unsigned count, const CUjit_option *options, void **values, const char *error)
{
	char *buffer[2] = {NULL, NULL};
	size_t *size[2] = {NULL, NULL};
	size_t room[2] = {0, 0};

	/* A size option's value is the size itself, stored in the pointer, and is replaced by what was written. */
	for (unsigned i = 0; options != NULL && values != NULL && i < count; i++) {
		int which = options[i] == CU_JIT_ERROR_LOG_BUFFER || options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER || options[i] == CU_JIT_INFO_LOG_BUFFER)
			buffer[which] = values[i];
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES || options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) {
			room[which] = (size_t)(uintptr_t)values[i] & UINT32_MAX;
			size[which] = (size_t *)&values[i];
		}
	}
	for (int which = 0; which < 2; which++) {
		if (buffer[which] == NULL || size[which] == NULL || room[which] == 0)
			continue;
		int written = snprintf(buffer[which], room[which], "%s", which == 1 ? error : "");
		*size[which] = (size_t)written < room[which] ? (size_t)written : room[which] - 1;
	}
}
