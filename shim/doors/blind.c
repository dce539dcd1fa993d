/*
 * Which loaded objects reach the driver without us: their relocations hold the driver's or libc's own function where
 * ours should be. That is what RTLD_DEEPBIND leaves behind; nothing else tells. A slot that is not bound yet says
 * nothing, so the answer is for the end of a run.
 */
#include <stdio.h>
#include <string.h>

#include "shim/doors/doors.h"
#include "shim/doors/elf_read.h"
#include "shim/doors/resolve.h"

struct blind {
	char *text;
	size_t room, used, count;
};

static void add(struct blind *blind, const char *kind, const char *path)
{
	int length = snprintf(blind->text + blind->used, blind->room - blind->used, "%s%s %s", blind->count ? "; " : "",
	                      kind, door_base_name(path));
	blind->count++;
	/* One that does not fit is counted only. */
	if (length >= 0 && (size_t)length < blind->room - blind->used)
		blind->used += (size_t)length;
	else
		blind->text[blind->used] = '\0';
}

/* An import that went past us. */
static bool bypasses(const char *symbol, const void *bound, void *data)
{
	if (door_driver_name(symbol))
		return door_swap(bound) != NULL;
	return !strcmp(symbol, "dlsym") && bound == __atomic_load_n(&door_real_dlsym, __ATOMIC_RELAXED);
}

static int look_at_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct elf_object object;
	if (info->dlpi_name && *info->dlpi_name && elf_of_phdr(info, &object) && elf_any_import(&object, bypasses, NULL))
		add(data, "RTLD_DEEPBIND library", info->dlpi_name);
	return 0;
}

/*
 * From version 2 on (glibc 2.35) each namespace of dlmopen follows the one before; older headers do not know the
 * member.
 */
struct space {
	struct r_debug base;
	const struct space *next;
};

static const struct space *next_space(const struct space *space)
{
	return space->base.r_version < 2 ? NULL : space->next;
}

size_t door_blind(char *ret_text, size_t room)
{
	struct blind blind = {.text = ret_text, .room = room};
	ret_text[0] = '\0';
	dl_iterate_phdr(look_at_object, &blind);
	/* volatile: the compiler must not hold the object's declared size against us. */
	const void *volatile first = &_r_debug;
	for (const struct space *space = next_space(first); space; space = next_space(space))
		for (const struct link_map *map = space->base.r_map; map; map = map->l_next)
			if (door_is_driver(map))
				add(&blind, "dlmopen namespace with", map->l_name);
	return blind.count;
}
