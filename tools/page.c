#include "tools/page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/locate.h"
#include "tools/tool.h"

static int create_file(const char *path, size_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0 && bytes && ftruncate(fd, (off_t)bytes) != 0) {
		int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

static int fill(struct page *page)
{
	int fd = create_file(page->notes, 0);
	void *memory;

	if (fd < 0)
		return -errno;
	close(fd);
	fd = create_file(page->status, sizeof(*page->shared));
	if (fd < 0)
		return -errno;
	memory = mmap(NULL, sizeof(*page->shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (memory == MAP_FAILED)
		return -errno;
	page->shared = memory;
	page->shared->version = STATUS_VERSION;
	page->shared->magic = STATUS_MAGIC;
	return 0;
}

int page_create(struct page *ret_page)
{
	const char *temp = getenv("TMPDIR");
	char *base = locate_absolute(temp && *temp ? temp : "/tmp");
	struct page page = {.folder = tool_format("%s/cuconst.XXXXXX", base)};
	int code;

	free(base);
	if (!mkdtemp(page.folder)) {
		code = -errno;
		free(page.folder);
		return code;
	}
	page.status = tool_format("%s/status", page.folder);
	page.notes = tool_format("%s/notes", page.folder);
	code = fill(&page);
	if (code < 0) {
		page_destroy(&page);
		return code;
	}
	*ret_page = page;
	return 0;
}

uint64_t page_notes(const struct page *page, char note)
{
	FILE *file = page->notes ? fopen(page->notes, "re") : NULL;
	uint64_t count = 0;
	int byte;

	if (!file)
		return 0;
	while ((byte = getc(file)) != EOF)
		count += byte == note;
	fclose(file);
	return count;
}

void page_destroy(struct page *page)
{
	if (page->shared)
		munmap(page->shared, sizeof(*page->shared));
	if (page->status)
		unlink(page->status);
	if (page->notes)
		unlink(page->notes);
	if (page->folder)
		rmdir(page->folder);
	free(page->status);
	free(page->notes);
	free(page->folder);
	memset(page, 0, sizeof(*page));
}
