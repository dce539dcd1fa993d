/* For plain programs: they run under every sanitizer. */
#ifndef CUCONST_TESTS_UNIT_IMAGES_CHECK_H
#define CUCONST_TESTS_UNIT_IMAGES_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(what)                                                                                                   \
	do {                                                                                                           \
		if (!(what)) {                                                                                         \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                     \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* A file and a zero behind it; the caller frees. */
static inline uint8_t *read_all(const char *path, size_t *ret_bytes)
{
	FILE *file = fopen(path, "rb");
	EXPECT(file);
	EXPECT(!fseek(file, 0, SEEK_END));
	size_t bytes = (size_t)ftell(file);
	rewind(file);
	uint8_t *data = calloc(1, bytes + 1);
	EXPECT(data && fread(data, 1, bytes, file) == bytes);
	fclose(file);
	if (ret_bytes)
		*ret_bytes = bytes;
	return data;
}

#endif
