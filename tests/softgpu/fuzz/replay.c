/* The fuzzer's corpus as a plain test: every file of the folders named goes through the fuzzer's entry. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static int replay(const char *folder, const char *name)
{
	char path[4096];
	static uint8_t bytes[1 << 20];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "rb");
	if (!file) {
		perror(path);
		return -1;
	}
	size_t count = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	/* A crash must leave the name behind. */
	fprintf(stderr, "%s\n", path);
	return LLVMFuzzerTestOneInput(bytes, count);
}

int main(int argc, char **argv)
{
	unsigned files = 0;

	for (int n = 1; n < argc; n++) {
		DIR *folder = opendir(argv[n]);

		if (!folder) {
			perror(argv[n]);
			return 1;
		}
		for (struct dirent *entry; (entry = readdir(folder));) {
			if (entry->d_name[0] == '.')
				continue;
			if (replay(argv[n], entry->d_name))
				return 1;
			files++;
		}
		closedir(folder);
	}
	if (!files) {
		fprintf(stderr, "no files\n");
		return 1;
	}
	printf("%u files\n", files);
	return 0;
}
