#include <sys/mman.h>

#include "shim/verdict/status.h"
#include "tests/unit/report/capture.h"

static void write_page(const char *path, uint32_t magic, uint32_t version, size_t size)
{
	struct status_page made = {.magic = magic, .version = version};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, &made, sizeof(made)), (ssize_t)sizeof(made));
	cr_assert_eq(ftruncate(fd, (off_t)size), 0);
	close(fd);
}

static uint64_t violations_in(const char *path)
{
	struct status_page read_back;
	int fd = open(path, O_RDONLY);

	cr_assert_eq(read(fd, &read_back, sizeof(read_back)), (ssize_t)sizeof(read_back));
	close(fd);
	return read_back.violations;
}

Test(status, counts_reach_the_launcher)
{
	char *path = in_folder(scratch(), "status");

	write_page(path, STATUS_MAGIC, STATUS_VERSION, sizeof(struct status_page));
	setenv("CUCONST_STATUS", path, 1);
	status_page()->violations += 3;
	cr_assert_eq(status_page(), status_page());
	cr_assert_eq(violations_in(path), 3);
}

Test(status, private_page_without_a_launcher)
{
	unsetenv("CUCONST_STATUS");
	cr_assert_not_null(status_page());
	cr_assert_eq(status_page()->magic, STATUS_MAGIC);
	status_page()->violations++;
	cr_assert_eq(status_page()->violations, 1);
}

static void expect_private(const char *path)
{
	setenv("CUCONST_STATUS", path, 1);
	status_page()->violations++;
	cr_assert_eq(status_page()->violations, 1);
}

Test(status, wrong_magic_is_not_written)
{
	char *path = in_folder(scratch(), "status");

	write_page(path, 0x12345678, STATUS_VERSION, sizeof(struct status_page));
	expect_private(path);
	cr_assert_eq(violations_in(path), 0);
}

Test(status, wrong_version_is_not_written)
{
	char *path = in_folder(scratch(), "status");

	write_page(path, STATUS_MAGIC, STATUS_VERSION + 1, sizeof(struct status_page));
	expect_private(path);
	cr_assert_eq(violations_in(path), 0);
}

Test(status, short_file_is_not_mapped)
{
	char *path = in_folder(scratch(), "status");

	write_page(path, STATUS_MAGIC, STATUS_VERSION, 16); /* touching the rest would be SIGBUS */
	expect_private(path);
}

Test(status, missing_file)
{
	expect_private("/nonexistent/status");
}

Test(status, folder)
{
	expect_private("/tmp");
}

Test(status, fifo_does_not_block)
{
	char *path = in_folder(scratch(), "fifo");

	cr_assert_eq(mkfifo(path, 0600), 0);
	expect_private(path);
}
