/*
 * Per-site limits: the first records of a site are written in full, the rest is counted.
 *
 * A site is (kind, action, API, kernel name, range label or, without one, handle, and the user's Python frame or,
 * without one, native frames). The table is fixed: when it is full, new sites share one entry, "other", so memory is
 * bounded and no count is lost. Thread-safe; a mutex is held for the look-up only.
 */
#ifndef CUCONST_REPORT_FOLD_H
#define CUCONST_REPORT_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/report/report.h"

#define FOLD_SITES 1024
#define FOLD_LABEL 128

struct fold_site {
	uint64_t key;
	uint64_t count;     /* events so far, written in full or not */
	uint64_t mentioned; /* the count that the last "folded" record said */
	enum report_kind kind;
	enum report_action action;
	bool other; /* the entry that sites beyond the table share: the facts below are empty */
	const char *api, *outer_api, *outer_note;
	const char *kernel; /* raw name */
	uint64_t handle;
	char label[FOLD_LABEL];  /* cut */
	struct site_frame frame; /* file NULL: none */
};

enum fold_answer {
	FOLD_WRITE,   /* write the event in full */
	FOLD_MENTION, /* a power of ten was reached: write *ret_site */
	FOLD_DROP,    /* only counted */
};

enum fold_answer fold_count(const struct report_event *event, uint64_t limit, struct fold_site *ret_site);

/*
 * The next site at or after *index whose count has grown past its last mention; marks it mentioned. False at the end.
 * For report_close().
 */
bool fold_next(unsigned *index, uint64_t limit, struct fold_site *ret_site);

/* Events that were not written in full. */
uint64_t fold_total(void);

void fold_postfork_child(void);

#endif
