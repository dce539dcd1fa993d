/* Zeroed memory by the page, for nodes and slots. Private to registry/. */
#ifndef CUCONST_REGISTRY_PAGES_H
#define CUCONST_REGISTRY_PAGES_H

#include <stddef.h>

/*
 * `bytes` of zeroed memory, aligned to a page and, from PAGES_HUGE on, to PAGES_HUGE; NULL: no memory. Pages nobody
 * touches cost nothing. Large ones ask for huge pages: at 10^6 ranges most of a lookup would be page walks.
 */
void *pages_map(size_t bytes);

void pages_unmap(void *memory, size_t bytes);

#define PAGES_HUGE ((size_t)2 << 20)

#endif
