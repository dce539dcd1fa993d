/*
 * What is kept of an image. Its size is in its own headers. Memory of the program is read by peek() alone, which has an answer where a load would end the
 * process: headers may lie, and a library may be closed while its image is being read.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/fatbin.h"
#include "shim/kernels/image.h"
#include "shim/report/peek.h"

#define PAGE 4096
#define TEXT_PAGES 16

static _Atomic size_t copied_bytes; /* by all images */

static bool peek_at(const void *from, void *to, size_t bytes)
{
	return peek((uintptr_t)from, to, bytes);
}

/*
 * Bytes of a text without its end, at most `limit`; `limit` + 1 where it goes on. Most texts are short: one page first, then more at a time, and again one by one
 * where the last of them is not there.
 */
static size_t text_bytes(const char *text, size_t limit)
{
	char buffer[TEXT_PAGES * PAGE];
	size_t done = 0, pages = 1;
	bool grows = true;
	while (done <= limit) {
		size_t part = pages * PAGE - ((uintptr_t)text + done) % PAGE;
		if (!peek_at(text + done, buffer, part)) {
			if (pages == 1)
				return done;
			pages = 1;
			grows = false;
			continue;
		}
		const char *end = memchr(buffer, 0, part);
		if (end)
			return done + (size_t)(end - buffer);
		done += part;
		if (grows && pages < TEXT_PAGES)
			pages *= 2;
	}
	return limit + 1;
}

static void reach(uint64_t *end, uint64_t offset, uint64_t bytes)
{
	uint64_t to;
	if (__builtin_add_overflow(offset, bytes, &to))
		to = UINT64_MAX;
	*end = to > *end ? to : *end;
}

/* Where the last part of a cubin ends, by its headers. 0: they cannot be read. */
static uint64_t cubin_bytes(const uint8_t *image)
{
	Elf64_Ehdr header;
	Elf64_Shdr section;
	if (!peek_at(image, &header, sizeof header))
		return 0;
	uint64_t end = sizeof header, count = header.e_shnum;
	/* From 0xff00 sections on, their number stands in the first one. */
	if (!count && header.e_shoff && peek_at(image + header.e_shoff, &section, sizeof section))
		count = section.sh_size;
	reach(&end, header.e_phoff, (uint64_t)header.e_phnum * header.e_phentsize);
	if (count > UINT32_MAX || header.e_shentsize < sizeof section)
		return end;
	reach(&end, header.e_shoff, count * header.e_shentsize);
	for (uint64_t i = 0; i < count; i++) {
		if (!peek_at(image + header.e_shoff + i * header.e_shentsize, &section, sizeof section))
			return 0;
		if (section.sh_type != SHT_NOBITS)
			reach(&end, section.sh_offset, section.sh_size);
	}
	return end;
}

static bool take_room(size_t bytes)
{
	if (bytes > IMAGE_COPY_BYTES)
		return false;
	if (atomic_fetch_add(&copied_bytes, bytes) + bytes <= IMAGE_COPIES_BYTES)
		return true;
	atomic_fetch_sub(&copied_bytes, bytes);
	return false;
}

static void copy(struct image *image)
{
	image->reason = PATHS_UNKEPT;
	if (!take_room(image->length))
		return;
	uint8_t *bytes = malloc(image->length + 1);
	if (bytes && peek_at(image->bytes, bytes, image->length)) {
		image->bytes = bytes;
		image->copied = true;
		image->reason = PATHS_CLEAR;
		return;
	}
	image->reason = bytes ? PATHS_DAMAGED : PATHS_UNKEPT;
	free(bytes);
	atomic_fetch_sub(&copied_bytes, image->length);
}

/* The first bytes, or the first four where not all can be read: the others are zero. */
static bool peek_lead(const void *from, uint8_t *ret_lead, size_t bytes)
{
	memset(ret_lead, 0, bytes);
	return peek_at(from, ret_lead, bytes) || (memset(ret_lead, 0, bytes), peek_at(from, ret_lead, 4));
}

/* By its first bytes, `lead`. Sets form and length. False: nothing that could be read. */
static bool measure(struct image *image, const uint8_t *lead)
{
	uint64_t length;
	if (elf_u32(lead) == FATBIN_CONTAINER_MAGIC) {
		image->form = IMAGE_FATBIN;
		if (__builtin_add_overflow(elf_u64(lead + 8), elf_u16(lead + 6), &length))
			return false;
	} else if (!memcmp(lead, ELFMAG, SELFMAG)) {
		image->form = IMAGE_CUBIN;
		length = cubin_bytes(image->bytes);
	} else {
		image->form = IMAGE_PTX;
		length = text_bytes((const char *)image->bytes, IMAGE_COPY_BYTES);
	}
	image->length = length;
	return length;
}

/* A wrapper's image is what it points to. */
static bool find_image(struct image *image, const void *given, uint8_t *ret_lead, bool *ret_wrapped)
{
	uint8_t wrapper[16];
	if (!peek_lead(given, wrapper, sizeof wrapper))
		return false;
	*ret_wrapped = elf_u32(wrapper) == FATBIN_WRAPPER_MAGIC;
	image->bytes = *ret_wrapped ? (const uint8_t *)(uintptr_t)elf_u64(wrapper + 8) : given;
	if (peek_at(image->bytes, ret_lead, IMAGE_LEAD_BYTES))
		return true;
	memset(ret_lead, 0, IMAGE_LEAD_BYTES);
	return peek_lead(image->bytes, ret_lead, sizeof wrapper);
}

struct image *image_keep(const void *given)
{
	uint8_t lead[IMAGE_LEAD_BYTES];
	bool wrapped;
	struct image *image = calloc(1, sizeof *image);
	if (!image)
		return NULL;
	image->references = 1;
	if (!find_image(image, given, lead, &wrapped) || !measure(image, lead)) {
		image->reason = PATHS_DAMAGED;
		return image;
	}
	/* What a runtime registers is a constant, whatever segment a linker script put it into: large libraries have theirs behind the data. */
	image->object = image_holder(image->bytes, image->length, wrapped);
	if (image->object)
		image->lead = image_lead(lead, image->length);
	else
		copy(image);
	return image;
}

/* The whole file and a zero behind it. NULL with a reason: it cannot be read or kept. */
static uint8_t *read_file(const char *path, size_t *ret_bytes, enum paths_reason *ret_reason)
{
	struct stat info;
	uint8_t *bytes = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	*ret_reason = PATHS_UNSEEN;
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &info) && S_ISREG(info.st_mode)) {
		*ret_reason = PATHS_UNKEPT;
		if ((uint64_t)info.st_size <= IMAGE_COPY_BYTES)
			bytes = malloc((size_t)info.st_size + 1);
	}
	for (off_t done = 0; bytes && done < info.st_size;) {
		ssize_t part = read(fd, bytes + done, (size_t)(info.st_size - done));
		if (part < 0 && errno == EINTR)
			continue;
		if (part <= 0) {
			free(bytes);
			bytes = NULL;
			*ret_reason = PATHS_UNSEEN;
		}
		done += part;
	}
	close(fd);
	if (bytes)
		bytes[info.st_size] = 0;
	*ret_bytes = bytes ? (size_t)info.st_size : 0;
	return bytes;
}

struct image *image_keep_file(const char *path)
{
	struct image *image = calloc(1, sizeof *image);
	size_t length;
	if (!image)
		return NULL;
	image->references = 1;
	uint8_t *bytes = read_file(path, &length, &image->reason);
	if (!bytes)
		return image;
	if (length < 4 || !take_room(length)) {
		image->reason = length < 4 ? PATHS_DAMAGED : PATHS_UNKEPT;
		free(bytes);
		return image;
	}
	image->form = elf_u32(bytes) == FATBIN_CONTAINER_MAGIC ? IMAGE_FATBIN
	              : !memcmp(bytes, ELFMAG, SELFMAG)        ? IMAGE_CUBIN
	                                                       : IMAGE_PTX;
	image->bytes = bytes;
	image->length = length;
	image->copied = true;
	image->reason = PATHS_CLEAR;
	return image;
}

void image_get(struct image *image)
{
	atomic_fetch_add(&image->references, 1);
}

void image_put(struct image *image)
{
	if (atomic_fetch_sub(&image->references, 1) != 1)
		return;
	image_code_forget(image);
	if (image->copied) {
		atomic_fetch_sub(&copied_bytes, image->length);
		free((void *)(uintptr_t)image->bytes);
	}
	free(image);
}

int image_read(const struct image *image, size_t offset, void *to, size_t bytes)
{
	if (offset > image->length || bytes > image->length - offset)
		return -EINVAL;
	if (!image->copied)
		return peek_at(image->bytes + offset, to, bytes) ? 0 : -EFAULT;
	memcpy(to, image->bytes + offset, bytes);
	return 0;
}
