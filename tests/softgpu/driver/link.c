/* cuLink*: what is added is PTX text, and what comes out is one PTX text, an image like any other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/module.h"

enum { LOG_BYTES = 4096 };

/* A CUlinkState. */
struct sg_link {
	char *text; /* all that was added so far; ends with a zero */
	size_t bytes;
	bool complete;
	/* The options of cuLinkCreate; their values are the application's, and must live as long as the link. */
	unsigned option_count;
	CUjit_option *options;
	void **values;
};

static struct sg_link *link_of(CUlinkState handle)
{
	return sg_is(handle, SG_LINK) ? (struct sg_link *)handle : NULL;
}

CUresult sg_cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
	if (stateOut == NULL || (numOptions > 0 && (options == NULL || optionValues == NULL)))
		return CUDA_ERROR_INVALID_VALUE;
	struct sg_link *link = calloc(1, sizeof(*link));
	CUjit_option *copy = calloc(numOptions + 1, sizeof(*copy));
	sg_lock();
	bool added = link != NULL && copy != NULL && sg_add(link, SG_LINK);
	sg_unlock();
	if (!added) {
		free(link);
		free(copy);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (numOptions > 0)
		memcpy(copy, options, numOptions * sizeof(*copy));
	link->option_count = numOptions;
	link->options = copy;
	link->values = optionValues;
	*stateOut = (CUlinkState)link;
	return CUDA_SUCCESS;
}

/* The directives that a text begins with stand once in the result: behind the first text they are blanks. */
static void blank_header(char *text)
{
	static const char *const directives[] = {".version", ".target", ".address_size"};

	for (size_t i = 0; i < sizeof(directives) / sizeof(*directives); i++) {
		char *at = strstr(text, directives[i]);
		for (; at != NULL && *at != '\n' && *at != '\0'; at++)
			*at = ' ';
	}
}

static CUresult append(struct sg_link *link, const char *text, size_t bytes)
{
	char *bigger = realloc(link->text, link->bytes + bytes + 2);

	if (bigger == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(bigger + link->bytes, text, bytes);
	memcpy(bigger + link->bytes + bytes, "\n", 2);
	if (link->bytes > 0)
		blank_header(bigger + link->bytes);
	link->text = bigger;
	link->bytes += bytes + 1;
	return CUDA_SUCCESS;
}

CUresult sg_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                             unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	char log[LOG_BYTES] = "";
	struct sg_text text = {.text = NULL};

	(void)name;
	if (data == NULL || size == 0 || (unsigned)type >= CU_JIT_NUM_INPUT_TYPES ||
	    (numOptions > 0 && (options == NULL || optionValues == NULL)))
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	CUresult status = sg_image_text(data, &text);
	if (status != CUDA_SUCCESS)
		return status;
	if (type == CU_JIT_INPUT_PTX && text.bytes > size)
		text.bytes = size;
	/* A text that is no PTX is refused here, where the real linker compiles it. */
	status = sg_image_check(text.text, text.bytes, log, sizeof(log));
	sg_lock();
	struct sg_link *link = link_of(state);
	if (link == NULL)
		status = CUDA_ERROR_INVALID_HANDLE;
	else if (status != CUDA_SUCCESS)
		sg_jit_log(link->option_count, link->options, link->values, log);
	else if (link->complete)
		status = CUDA_ERROR_INVALID_VALUE;
	else
		status = append(link, text.text, text.bytes);
	sg_unlock();
	free(text.owned);
	return status;
}

CUresult sg_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
                             CUjit_option *options, void **optionValues)
{
	if (path == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	char *text = sg_read_file(path);
	if (text == NULL)
		return CUDA_ERROR_FILE_NOT_FOUND;
	CUresult status =
		sg_cuLinkAddData_v2(state, type, text, strlen(text) + 1, path, numOptions, options, optionValues);
	free(text);
	return status;
}

CUresult sg_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
	static const char empty[] = ".version 7.0\n.target sm_70\n.address_size 64\n";
	CUresult status = CUDA_SUCCESS;

	if (cubinOut == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_lock();
	struct sg_link *link = link_of(state);
	if (link == NULL)
		status = CUDA_ERROR_INVALID_HANDLE;
	else if (link->complete)
		status = CUDA_ERROR_INVALID_VALUE;
	else if (link->text == NULL)
		status = append(link, empty, sizeof(empty) - 1);
	if (status == CUDA_SUCCESS) {
		link->complete = true;
		sg_jit_log(link->option_count, link->options, link->values, "");
		*cubinOut = link->text;
		if (sizeOut != NULL)
			*sizeOut = link->bytes + 1;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuLinkDestroy(CUlinkState state)
{
	sg_lock();
	struct sg_link *link = link_of(state);
	if (link != NULL)
		sg_remove(link);
	sg_unlock();
	if (link == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	free(link->text);
	free(link->options);
	free(link);
	return CUDA_SUCCESS;
}

/* The first versions differ in the type of a size alone. */
CUresult sg_cuLinkCreate(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
	return sg_cuLinkCreate_v2(numOptions, options, optionValues, stateOut);
}

CUresult sg_cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                          unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	return sg_cuLinkAddData_v2(state, type, data, size, name, numOptions, options, optionValues);
}

CUresult sg_cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
                          CUjit_option *options, void **optionValues)
{
	return sg_cuLinkAddFile_v2(state, type, path, numOptions, options, optionValues);
}
