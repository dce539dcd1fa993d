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
#include "tests/kernels/file.h"
#include "tests/kernels/ptx_text.h"

static int check_file(const char *path)
{
	size_t bytes;
	char *text = read_whole(path, &bytes);
	struct ptx_module *module;
	int count = 0;

	cr_assert(text, "%s", path);
	cr_assert_eq(ptx_module_open(text, bytes, &module), 0);
	/* Not terminated: expectations are followed by text. */
	for (char *at = memmem(text, bytes, "//= ", 4); at; at = memmem(at, bytes - (size_t)(at - text), "//= ", 4)) {
		char name[512], expected[4096], found[4096];
		struct kernel_paths paths;

		cr_assert_eq(sscanf(at, "//= %511[^:]:%4095[^\n]", name, expected), 2);
		cr_assert_eq(paths_of_ptx(text, bytes, name, &paths), 0, "%s: %s", path, name);
		ptx_paths_spell(&paths, found, sizeof(found));
		cr_expect_str_eq(found, expected + strspn(expected, " "), "%s: %s:%s, but found %s (line %u)", path,
		                 name, expected, found, paths.reason_offset);
		kernel_paths_free(&paths);
		/* One that has told of others before. */
		cr_assert_eq(ptx_module_paths(module, name, NULL, &paths), 0, "%s: %s", path, name);
		ptx_paths_spell(&paths, found, sizeof(found));
		cr_expect_str_eq(found, expected + strspn(expected, " "), "%s: %s in a module", path, name);
		kernel_paths_free(&paths);
		at += 4;
		count++;
	}
	ptx_module_close(module);
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
