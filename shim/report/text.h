/* Records for people, on stderr. Thread-safe: works on its arguments only. */
#ifndef CUCONST_REPORT_TEXT_H
#define CUCONST_REPORT_TEXT_H

#include <stdbool.h>

#include "shim/report/buffer.h"
#include "shim/report/fold.h"
#include "shim/report/output.h"
#include "shim/report/report.h"

/* Longest text of one event; labels, names and lists are cut to fit. */
#define TEXT_SIZE 8192

/* Each appends whole lines and always ends with a newline. */
void text_event(struct buffer *buf, const struct report_event *event, bool color);
void text_folded(struct buffer *buf, const struct fold_site *site, bool color);
void text_summary(struct buffer *buf, const struct report_summary *summary, uint64_t folded,
                  const struct output_trouble *trouble, bool color);

#endif
