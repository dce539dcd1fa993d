/* The private folder of one run: the status page that the shim counts on, and the notes of the start-up module. */
#ifndef CUCONST_TOOLS_PAGE_H
#define CUCONST_TOOLS_PAGE_H

#include <stdint.h>

#include "shim/verdict/status.h"

struct page {
	char *folder; /* absolute, mode 0700 */
	char *status; /* path of the status page, mode 0600 */
	char *notes;  /* path of the notes, mode 0600: one byte for each PAGE_NOTE_... */
	struct status_page *shared;
};

/* The start-up module appends these bytes (cuconst/startup/sitecustomize.py). */
#define PAGE_NOTE_STARTED 's'  /* a Python process has loaded the start-up module */
#define PAGE_NOTE_EXPORTED 'e' /* an object that was handed out was protected */

/* Creates it in $TMPDIR or /tmp. Returns 0 or negative errno; *ret_page is untouched on failure. */
int page_create(struct page *ret_page);

/* How often a note was written. */
uint64_t page_notes(const struct page *page, char note);

/* Removes the files and the folder. Safe for a zeroed page, and to call twice. */
void page_destroy(struct page *page);

#endif
