/*
 * Reading the symbol table of a loaded object, without dlsym: no lock, no allocation, dlerror untouched.
 */
#ifndef CUCONST_DOORS_ELF_READ_H
#define CUCONST_DOORS_ELF_READ_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* A loaded object. Valid while the object stays loaded. */
struct elf_object {
	ElfW(Addr) base;
	const ElfW(Dyn) * dynamic;
};

/* The object that dl_iterate_phdr() speaks of; false when it has no dynamic section. */
bool elf_of_phdr(const struct dl_phdr_info *info, struct elf_object *ret_object);
struct elf_object elf_of_map(const struct link_map *map);

/*
 * Address of an exported function or variable, or NULL. Versions are not looked at; IFUNCs and thread-local variables
 * are not found.
 */
void *elf_symbol(const struct elf_object *object, const char *name);

/* The object's DT_SONAME, or "". */
const char *elf_soname(const struct elf_object *object);

/*
 * The word in which `object` holds the address of the imported symbol `name` (GLOB_DAT or JUMP_SLOT), or NULL: does not
 * import it by name. Before lazy binding the word holds an address inside the object itself.
 */
void *const *elf_import(const struct elf_object *object, const char *name);

/* Is there an import, with what it is bound to, of which `fits` says true? Stops there. */
bool elf_any_import(const struct elf_object *object, bool (*fits)(const char *symbol, const void *bound, void *data),
                    void *data);

#endif
