/*
 * Records of any number of logs, gathered by the place in the program they came from.
 *
 * A place is the user's own Python line, or, where there was none, the library and the call. The record format is
 * documented in shim/report/LOG.md; a field that is absent or of another type counts as not given, so newer writers are
 * understood.
 */
#ifndef CUCONST_TOOLS_SUMMARY_H
#define CUCONST_TOOLS_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include "tools/json.h"

#define SUMMARY_SCHEMA 1 /* of the records understood */
#define SUMMARY_NAMES 12 /* distinct labels, kernels, ... kept for one place; more are counted */

/* A few distinct texts, in the order met. */
struct names {
	char *text[SUMMARY_NAMES];
	size_t count;
	uint64_t more; /* how often another one was met when it was full */
};

enum summary_kind { SUMMARY_VIOLATION, SUMMARY_INCONCLUSIVE, SUMMARY_FREED, SUMMARY_ENDED, SUMMARY_KINDS };
enum summary_action { SUMMARY_LOGGED, SUMMARY_DENIED, SUMMARY_STOPPED, SUMMARY_ACTIONS };

/* One place. */
struct place {
	char *title;                       /* "train.py:42 in step", or "libfoo.so, cuMemcpyDtoD_v2" */
	uint64_t kinds[SUMMARY_KINDS];     /* events, those folded included */
	uint64_t actions[SUMMARY_ACTIONS]; /* of the violations */
	uint64_t folded;                   /* events without a record of their own */
	char first[40], last[40];          /* times as written; "" when none was */
	struct names calls, kernels, candidates, stores, labels, libraries, sites, ranks;
};

struct summary;

enum summary_answer { SUMMARY_TAKEN, SUMMARY_OTHER_SCHEMA, SUMMARY_NO_RECORD };

/* Ends the tool when there is no memory. */
struct summary *summary_create(void);
void summary_destroy(struct summary *summary);

/* Adds one record. Anything may be handed in. */
enum summary_answer summary_add(struct summary *summary, const struct json *record);

/* The places: most violations first, then by first time. The array is valid until the next summary_add(). */
struct place *const *summary_places(struct summary *summary, size_t *ret_count);

/* Events of one kind in all places. */
uint64_t summary_total(const struct summary *summary, enum summary_kind kind);

uint64_t summary_denied(const struct summary *summary);

/* What the last lines of processes add up to. */
struct summary_ends {
	uint64_t suppressed; /* events that a suppression matched */
	uint64_t unverified; /* checks that could not be made or had not come back */
	uint64_t lost;       /* records that could not be written into the log */
};

const struct summary_ends *summary_ends(const struct summary *summary);

/* What last lines said was not seen in their run; distinct texts. */
const struct names *summary_unseen(const struct summary *summary);

/* Processes that wrote, and those of them whose last line is there: the others were killed or are still running. */
void summary_processes(const struct summary *summary, size_t *ret_seen, size_t *ret_ended);

#endif
