/*
 * Records for machines: one line of JSON each; LOG.md documents every field. Thread-safe: works on its arguments only.
 */
#ifndef CUCONST_REPORT_JSON_H
#define CUCONST_REPORT_JSON_H

#include "shim/report/buffer.h"
#include "shim/report/fold.h"
#include "shim/report/output.h"
#include "shim/report/report.h"

/* Holds every record's fixed part, even of text that is all escapes; what is left is for lists, which are cut. */
#define JSON_SIZE 24576
#define JSON_SCHEMA 1

/*
 * `seq` is the record's number in this process. Each appends one whole line; `buf` must be empty and JSON_SIZE large.
 */
void json_event(struct buffer *buf, uint64_t seq, const struct report_event *event);
void json_folded(struct buffer *buf, uint64_t seq, const struct fold_site *site);
void json_summary(struct buffer *buf, uint64_t seq, const struct report_summary *summary, uint64_t folded,
                  const struct output_trouble *trouble);

/* Shared with the text. Never NULL. */
const char *json_kind_name(enum report_kind kind);
const char *json_action_name(enum report_action action);

#endif
