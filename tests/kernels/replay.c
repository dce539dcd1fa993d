/* replay FOLDER: the kept corpus of the fuzzer, once through. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/kernels/file.h"
#include "tests/kernels/image.h"

int main(int argc, char **argv)
{
	DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
	if (!folder)
		return 1;
	unsigned files = 0;
	for (struct dirent *entry; (entry = readdir(folder));) {
		char path[4096];
		size_t bytes;
		if (*entry->d_name == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
		uint8_t *image = read_whole(path, &bytes);
		if (!image)
			return 1;
		analyse_image(image, bytes);
		free(image);
		files++;
	}
	closedir(folder);
	printf("%u files\n", files);
	return !files;
}
