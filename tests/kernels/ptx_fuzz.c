/*
 * libFuzzer harness for paths_of_ptx() and paths_for_ptx(), and the replay of its corpus (with -DREPLAY: files as arguments).
 *
 *     clang -g -O1 -D_GNU_SOURCE -I. -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all tests/kernels/ptx_fuzz.c \
 *         shim/kernels/ptx_*.c and the files of machine code in shim/kernels/meson.build
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/paths.h"
#include "shim/kernels/ptx_list.h"
#include "tests/kernels/fuzz_values.h"

struct text {
	const char *bytes;
	size_t length;
	int kernels;
};

static void ask_for_values(const struct text *text, const char *kernel)
{
	struct fuzz_values room;
	struct paths_values values = fuzz_values(&room, (const uint8_t *)text->bytes, text->length);
	struct kernel_paths paths;
	bool better = false;
	int answer = paths_for_ptx(text->bytes, text->length, kernel, &values, &paths, &better);

	fuzz_check(answer, better, &paths);
}

static int ask(void *ctx, const char *name, size_t length)
{
	struct text *text = ctx;
	struct kernel_paths paths;
	char *kernel = strndup(name, length);
	int answer = kernel ? paths_of_ptx(text->bytes, text->length, kernel, &paths) : -1;

	/* They take some runs each. */
	if (answer == 0 && text->kernels == 0)
		ask_for_values(text, kernel);
	free(kernel);
	if (answer == 0) {
		if (paths.reason > PATHS_LIMIT)
			abort();
		kernel_paths_free(&paths);
	}
	/* A few are enough: the next input is to have its turn. */
	return ++text->kernels == 4;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct text text = {.bytes = (const char *)bytes, .length = length};

	ptx_kernels(text.bytes, length, ask, &text, NULL);
	return 0;
}

#ifdef REPLAY
#include "tests/kernels/file.h"

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		size_t length;
		uint8_t *bytes = read_whole(argv[i], &length);

		if (!bytes) {
			fprintf(stderr, "%s cannot be read\n", argv[i]);
			return 1;
		}
		LLVMFuzzerTestOneInput(bytes, length);
		free(bytes);
	}
	printf("%d inputs\n", argc - 1);
	return argc < 100;
}
#endif
