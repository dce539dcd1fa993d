#include "tools/target.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SCRIPT_DEPTH 4
#define SCRIPT_LINE 256

static bool runs_with_other_rights(int fd, const struct stat *st)
{
	if ((st->st_mode & S_ISUID) && st->st_uid != geteuid())
		return true;
	if ((st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st->st_gid != getegid())
		return true;
	return geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static enum target_kind check_elf(int fd, const Elf64_Ehdr *header, size_t length)
{
	if (length < sizeof(*header))
		return TARGET_UNREADABLE;
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64)
		return TARGET_FOREIGN;
	if (header->e_phentsize != sizeof(Elf64_Phdr))
		return TARGET_UNREADABLE;
	for (unsigned i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr program;
		off_t at = (off_t)(header->e_phoff + (uint64_t)i * sizeof(program));

		if (pread(fd, &program, sizeof(program), at) != (ssize_t)sizeof(program))
			return TARGET_UNREADABLE;
		if (program.p_type == PT_INTERP)
			return TARGET_REACHABLE;
	}
	return TARGET_STATIC;
}

/* The interpreter of a `#!` line, in place. NULL when the line is empty. */
static char *script_interpreter(char *line)
{
	char *start = line + 2;

	start += strspn(start, " \t");
	start[strcspn(start, " \t\r\n")] = '\0';
	return *start ? start : NULL;
}

enum target_kind target_check(const char *path)
{
	char line[SCRIPT_LINE + 1];
	enum target_kind kind = TARGET_UNREADABLE;
	const char *next = path;

	for (int depth = 0; depth <= SCRIPT_DEPTH && next; depth++) {
		union {
			Elf64_Ehdr elf;
			char text[SCRIPT_LINE];
		} head = {.text = {0}};
		struct stat st;
		ssize_t length;
		int fd = open(next, O_RDONLY | O_CLOEXEC);

		next = NULL;
		if (fd < 0)
			return TARGET_UNREADABLE;
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (length = pread(fd, &head, sizeof(head), 0)) > 2) {
			if (memcmp(head.text, "#!", 2) == 0) {
				memcpy(line, head.text, SCRIPT_LINE);
				line[SCRIPT_LINE] = '\0';
				next = script_interpreter(line);
			} else if (memcmp(head.text, ELFMAG, SELFMAG) == 0) {
				kind = runs_with_other_rights(fd, &st) ? TARGET_SECURE
				                                       : check_elf(fd, &head.elf, (size_t)length);
			}
		}
		close(fd);
	}
	return kind;
}

const char *target_reason(enum target_kind kind)
{
	switch (kind) {
	case TARGET_STATIC:
		return "statically linked: no library can be preloaded into it";
	case TARGET_FOREIGN:
		return "not a 64-bit x86-64 program: libcuconst.so cannot be loaded into it";
	case TARGET_SECURE:
		return "setuid, setgid or has file capabilities: the loader ignores LD_PRELOAD for it";
	case TARGET_REACHABLE:
	case TARGET_UNREADABLE:
		break;
	}
	return NULL;
}
