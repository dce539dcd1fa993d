/* Runs with stderr in a file, and reads files: helpers of the tests here. */
#ifndef CUCONST_TESTS_CAPTURE_H
#define CUCONST_TESTS_CAPTURE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file's bytes, terminated, in static memory of 4 MiB; "" when there is none. */
static inline const char *slurp(const char *path)
{
	static char text[4 << 20];
	int fd = open(path, O_RDONLY);
	ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	cr_assert(got >= 0 && got < (ssize_t)sizeof(text) - 1);
	text[got] = '\0';
	return text;
}

/* A fresh folder; its name in static memory. */
static inline const char *scratch(void)
{
	static char path[] = "/tmp/cuconst-report-XXXXXX";

	cr_assert_not_null(mkdtemp(path));
	return path;
}

static inline char *in_folder(const char *folder, const char *name)
{
	char *path;

	cr_assert_gt(asprintf(&path, "%s/%s", folder, name), 0);
	return path;
}

/* From here on stderr goes into this file. */
static inline void stderr_to(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	close(fd);
}

static inline size_t count_lines(const char *text)
{
	size_t lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static inline size_t count_text(const char *text, const char *part)
{
	size_t found = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		found++;
	return found;
}

#endif
