/*
 * Every kernel of ptx/: a line `//= NAME: SLOT ... : REASON` says what is expected. A slot is none, load or store, with '!' when it is the
 * only base of a store and '~' when it is compared.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/paths.h"
#include "tests/kernels/ptx_text.h"

static char *read_file(const char *path, size_t *ret_bytes)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;
	ssize_t length;

	cr_assert(file, "%s", path);
	length = getdelim(&text, &room, '\0', file);
	cr_assert(length > 0, "%s", path);
	fclose(file);
	*ret_bytes = (size_t)length;
	return text;
}

static int check_file(const char *path)
{
	size_t bytes;
	char *text = read_file(path, &bytes);
	int count = 0;

	for (const char *at = strstr(text, "//= "); at; at = strstr(at, "//= ")) {
		char name[512], expected[4096], found[4096];
		struct kernel_paths paths;

		cr_assert_eq(sscanf(at, "//= %511[^:]:%4095[^\n]", name, expected), 2);
		cr_assert_eq(paths_of_ptx(text, bytes, name, &paths), 0, "%s: %s", path, name);
		ptx_paths_spell(&paths, found, sizeof(found));
		cr_expect_str_eq(found, expected + strspn(expected, " "), "%s: %s:%s, but found %s (line %u)", path, name, expected, found,
		                 paths.reason_offset);
		free(paths.slots);
		free(paths.stores);
		at += 4;
		count++;
	}
	free(text);
	return count;
}

Test(ptx, table, .timeout = 60)
{
	const char *folder = getenv("KERNELS_PTX");
	DIR *directory = folder ? opendir(folder) : NULL;
	int kernels = 0, hand = 0;

	cr_assert(directory);
	for (struct dirent *entry; (entry = readdir(directory));) {
		char path[1024];

		if (!strstr(entry->d_name, ".ptx"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		kernels += check_file(path);
		if (strcmp(entry->d_name, "hand.ptx") == 0)
			hand = check_file(path);
	}
	closedir(directory);
	cr_assert_geq(hand, 110);
	cr_assert_geq(kernels, hand + 40);
}
