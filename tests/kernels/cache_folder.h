/* The folder that a test of the results on disk keeps for itself. */
#ifndef CUCONST_TESTS_KERNELS_CACHE_FOLDER_H
#define CUCONST_TESTS_KERNELS_CACHE_FOLDER_H

#include <dirent.h>
#include <stdio.h>

/* The path of the only file in a folder, valid until the next call; "" where there is none. */
static inline const char *only_file_in(const char *folder)
{
	static char path[512];
	DIR *dir = opendir(folder);
	path[0] = 0;
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (*entry->d_name != '.')
			snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
	if (dir)
		closedir(dir);
	return path;
}

#endif
