#ifndef CUCONST_TESTS_KERNELS_FILE_H
#define CUCONST_TESTS_KERNELS_FILE_H

#include <stdio.h>
#include <stdlib.h>

/* The whole file, allocated exactly as long as it is, so that a sanitizer sees the first byte read past it. NULL on any trouble. */
static inline void *read_whole(const char *path, size_t *ret_bytes)
{
	FILE *file = fopen(path, "rb");
	if (!file)
		return NULL;
	long end = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
	void *bytes = end > 0 ? malloc((size_t)end) : NULL;
	rewind(file);
	if (bytes && fread(bytes, 1, (size_t)end, file) != (size_t)end) {
		free(bytes);
		bytes = NULL;
	}
	fclose(file);
	if (bytes)
		*ret_bytes = (size_t)end;
	return bytes;
}

#endif
