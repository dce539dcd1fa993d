/*
 * What is kept of an image. Its size is in its own headers. Memory of the program is read by process_vm_readv() alone, which answers EFAULT
 * where a load would end the process: headers may lie, and a library may be closed while its image is being read.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/fatbin.h"
#include "shim/kernels/image.h"

#define PAGE 4096
#define TEXT_PAGES 16
#define LEAD_BYTES 4096
#define MAX_PHDRS 64

static struct link_map *(*_Atomic find_object)(const void *address);
static _Atomic size_t copied_bytes; /* by all images */

void image_set_object_finder(struct link_map *(*object_at)(const void *address))
{
	atomic_store(&find_object, object_at);
}

static bool peek(const void *from, void *to, size_t bytes)
{
	struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};
	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

/* Bytes of a text without its end, at most `limit`; `limit` + 1 where it goes on. Partial reads end between parts, so a part is no more than a page. */
static size_t text_bytes(const char *text, size_t limit)
{
	char buffer[TEXT_PAGES * PAGE];
	size_t done = 0;
	while (done <= limit) {
		struct iovec here = {buffer, sizeof buffer}, there[TEXT_PAGES];
		uintptr_t at = (uintptr_t)text + done;
		for (int i = 0; i < TEXT_PAGES; i++) {
			size_t part = PAGE - at % PAGE;
			there[i] = (struct iovec){(void *)at, part};
			at += part;
		}
		ssize_t got = process_vm_readv(getpid(), &here, 1, there, TEXT_PAGES, 0);
		if (got <= 0)
			return done;
		const char *end = memchr(buffer, 0, (size_t)got);
		if (end)
			return done + (size_t)(end - buffer);
		done += (size_t)got;
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
	if (!peek(image, &header, sizeof header))
		return 0;
	uint64_t end = sizeof header, count = header.e_shnum;
	/* From 0xff00 sections on, their number stands in the first one. */
	if (!count && header.e_shoff && peek(image + header.e_shoff, &section, sizeof section))
		count = section.sh_size;
	reach(&end, header.e_phoff, (uint64_t)header.e_phnum * header.e_phentsize);
	if (count > UINT32_MAX || header.e_shentsize < sizeof section)
		return end;
	reach(&end, header.e_shoff, count * header.e_shentsize);
	for (uint64_t i = 0; i < count; i++) {
		if (!peek(image + header.e_shoff + i * header.e_shentsize, &section, sizeof section))
			return 0;
		if (section.sh_type != SHT_NOBITS)
			reach(&end, section.sh_offset, section.sh_size);
	}
	return end;
}

/* Program headers of the object that the loader has here. Returns how many. */
static size_t program_headers(const struct link_map *object, ElfW(Phdr) * ret_headers)
{
	ElfW(Ehdr) header;
	const void *table = NULL;
	size_t count = 0;
	if (!*object->l_name) { /* the program itself; it may be loaded where it was linked to, and says nothing of that */
		table = (const void *)getauxval(AT_PHDR);
		count = getauxval(AT_PHNUM);
	} else if (peek((const void *)object->l_addr, &header, sizeof header) &&
	           !memcmp(header.e_ident, ELFMAG, SELFMAG)) {
		table = (const char *)object->l_addr + header.e_phoff;
		count = header.e_phnum;
	}
	count = count < MAX_PHDRS ? count : MAX_PHDRS;
	return table && peek(table, ret_headers, count * sizeof *ret_headers) ? count : 0;
}

/* The object that holds all these bytes in a part that its file backs and nobody writes; NULL: none. */
static const struct link_map *holding_object(const uint8_t *bytes, size_t length)
{
	struct link_map *(*finder)(const void *) = atomic_load(&find_object);
	const struct link_map *object = finder ? finder(bytes) : NULL;
	ElfW(Phdr) headers[MAX_PHDRS];
	size_t count = object ? program_headers(object, headers) : 0;
	for (size_t i = 0; i < count; i++) {
		const uint8_t *start = (const uint8_t *)(object->l_addr + headers[i].p_vaddr);
		if (headers[i].p_type == PT_LOAD && !(headers[i].p_flags & PF_W) && bytes >= start &&
		    (size_t)(bytes - start) <= headers[i].p_filesz &&
		    length <= headers[i].p_filesz - (size_t)(bytes - start))
			return object;
	}
	return NULL;
}

/* Not of the whole image: that would read the file at each load. Its first page holds sizes and packed code. */
static uint64_t lead_of(const uint8_t *bytes, size_t length)
{
	uint8_t lead[LEAD_BYTES];
	uint64_t hash = 0xcbf29ce484222325u;
	size_t count = length < sizeof lead ? length : sizeof lead;
	if (!peek(bytes, lead, count))
		return 0;
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ lead[i]) * 0x100000001b3u;
	return hash | 1;
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
	if (bytes && peek(image->bytes, bytes, image->length)) {
		image->bytes = bytes;
		image->copied = true;
		image->reason = PATHS_CLEAR;
		return;
	}
	image->reason = bytes ? PATHS_DAMAGED : PATHS_UNKEPT;
	free(bytes);
	atomic_fetch_sub(&copied_bytes, image->length);
}

/* By its first four bytes; a wrapper's image is what it points to. Sets form, bytes and length. False: nothing that could be read. */
static bool measure(struct image *image, const void *given)
{
	uint8_t lead[16] = {0};
	uint64_t length;
	if (!peek(given, lead, 4))
		return false;
	if (elf_u32(lead) == FATBIN_WRAPPER_MAGIC) {
		if (!peek(given, lead, sizeof lead))
			return false;
		given = (const void *)(uintptr_t)elf_u64(lead + 8);
		if (!peek(given, lead, 4))
			return false;
	}
	image->bytes = given;
	if (elf_u32(lead) == FATBIN_CONTAINER_MAGIC) {
		image->form = IMAGE_FATBIN;
		if (!peek(given, lead, sizeof lead) ||
		    __builtin_add_overflow(elf_u64(lead + 8), elf_u16(lead + 6), &length))
			return false;
	} else if (!memcmp(lead, ELFMAG, SELFMAG)) {
		image->form = IMAGE_CUBIN;
		length = cubin_bytes(given);
	} else {
		image->form = IMAGE_PTX;
		length = text_bytes(given, IMAGE_COPY_BYTES);
	}
	image->length = length;
	return length;
}

struct image *image_keep(const void *given)
{
	struct image *image = calloc(1, sizeof *image);
	if (!image)
		return NULL;
	image->references = 1;
	if (!measure(image, given)) {
		image->reason = PATHS_DAMAGED;
		return image;
	}
	image->object = holding_object(image->bytes, image->length);
	if (image->object)
		image->lead = lead_of(image->bytes, image->length);
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
	if (image->copied) {
		atomic_fetch_sub(&copied_bytes, image->length);
		free((void *)(uintptr_t)image->bytes);
	}
	free(image);
}

bool image_present(const struct image *image)
{
	return image->copied || (image->object && holding_object(image->bytes, image->length) == image->object &&
	                         lead_of(image->bytes, image->length) == image->lead);
}

int image_read(const struct image *image, size_t offset, void *to, size_t bytes)
{
	if (offset > image->length || bytes > image->length - offset)
		return -EINVAL;
	if (!image->copied)
		return peek(image->bytes + offset, to, bytes) ? 0 : -EFAULT;
	memcpy(to, image->bytes + offset, bytes);
	return 0;
}
