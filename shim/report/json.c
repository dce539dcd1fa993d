#include "shim/report/json.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/report/demangle.h"
#include "shim/report/native.h"
#include "shim/report/stores.h"
#include "shim/verdict/options.h"

/* The most that is read of a text, in bytes. Escaped, a byte takes six at most: together they stay below JSON_SIZE. */
#define NAME_LIMIT 512
#define PATH_LIMIT 512
#define WORD_LIMIT 128
#define LABEL_LIMIT 256
#define BLIND_LIMIT 2048
#define TAIL_ROOM 64 /* for what closes a record after its lists */

static const char *const kind_names[] = {
	[REPORT_VIOLATION] = "violation",
	[REPORT_INCONCLUSIVE] = "inconclusive",
	[REPORT_FREED] = "freed",
	[REPORT_ENDED] = "ended",
};

static const char *const evidence_names[] = {
	[EVIDENCE_NONE] = NULL,
	[EVIDENCE_WRITTEN] = "written",
	[EVIDENCE_CHANGED] = "changed",
};

static const char *const action_names[] = {
	[ACTION_LOGGED] = "logged",
	[ACTION_DENIED] = "denied",
	[ACTION_STOPPED] = "stopped",
	[ACTION_NONE] = "none",
};

const char *json_kind_name(enum report_kind kind)
{
	return kind_names[kind];
}

const char *json_action_name(enum report_action action)
{
	return action_names[action];
}

/* Starts a member, with its comma. */
static void key(struct buffer *buf, const char *name)
{
	if (buf->length && buf->text[buf->length - 1] != '{')
		buffer_string(buf, ",");
	buffer_string(buf, "\"");
	buffer_string(buf, name);
	buffer_string(buf, "\":");
}

static void put_string(struct buffer *buf, const char *name, const char *text, size_t limit)
{
	key(buf, name);
	buffer_json_string(buf, text, limit);
}

static void put_number(struct buffer *buf, const char *name, uint64_t value)
{
	key(buf, name);
	buffer_unsigned(buf, value);
}

static void put_bool(struct buffer *buf, const char *name, bool value)
{
	key(buf, name);
	buffer_string(buf, value ? "true" : "false");
}

static void put_null(struct buffer *buf, const char *name)
{
	key(buf, name);
	buffer_string(buf, "null");
}

/* A number that is unknown when negative. */
static void put_index(struct buffer *buf, const char *name, int value)
{
	key(buf, name);
	if (value < 0)
		buffer_string(buf, "null");
	else
		buffer_unsigned(buf, (uint64_t)value);
}

static void put_address(struct buffer *buf, const char *name, uint64_t value)
{
	key(buf, name);
	buffer_string(buf, "\"");
	buffer_hex(buf, value);
	buffer_string(buf, "\"");
}

/* ISO 8601 in UTC with microseconds. Not gmtime_r(): that takes a lock which a fork may have left held. */
static void put_time(struct buffer *buf)
{
	struct timespec now = {0};
	uint64_t days, seconds, era, day, year, month, shifted;

	clock_gettime(CLOCK_REALTIME, &now);
	days = (uint64_t)now.tv_sec / 86400;
	seconds = (uint64_t)now.tv_sec % 86400;
	/*
	 * The civil calendar in years that begin in March, so that the leap day is the last: 400 years are 146097 days.
	 */
	days += 719468;
	era = days / 146097;
	day = days % 146097;
	year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	day -= 365 * year + year / 4 - year / 100;
	shifted = (5 * day + 2) / 153;
	day -= (153 * shifted + 2) / 5;
	month = shifted < 10 ? shifted + 3 : shifted - 9;
	key(buf, "time");
	buffer_string(buf, "\"");
	buffer_padded(buf, era * 400 + year + (month <= 2), 4);
	buffer_string(buf, "-");
	buffer_padded(buf, month, 2);
	buffer_string(buf, "-");
	buffer_padded(buf, day + 1, 2);
	buffer_string(buf, "T");
	buffer_padded(buf, seconds / 3600, 2);
	buffer_string(buf, ":");
	buffer_padded(buf, seconds / 60 % 60, 2);
	buffer_string(buf, ":");
	buffer_padded(buf, seconds % 60, 2);
	buffer_string(buf, ".");
	buffer_padded(buf, (uint64_t)now.tv_nsec / 1000, 6);
	buffer_string(buf, "Z\"");
}

static void start(struct buffer *buf, uint64_t seq, const char *kind)
{
	buffer_string(buf, "{");
	put_number(buf, "schema", JSON_SCHEMA);
	put_number(buf, "seq", seq);
	put_time(buf);
	put_string(buf, "host", output_host(), WORD_LIMIT);
	put_number(buf, "pid", (uint64_t)getpid());
	put_number(buf, "tid", (uint64_t)syscall(SYS_gettid));
	put_index(buf, "rank", output_rank());
	put_string(buf, "mode", options_mode_name(options_get()->mode), WORD_LIMIT);
	put_string(buf, "kind", kind, WORD_LIMIT);
}

/* The members of one Python frame, without braces. */
static void put_frame(struct buffer *buf, const struct site_frame *frame)
{
	put_string(buf, "file", frame->file, PATH_LIMIT);
	put_string(buf, "function", frame->function, LABEL_LIMIT);
	put_number(buf, "line", frame->line > 0 ? (uint64_t)frame->line : 0);
}

/* A Python frame as an object; null when there is none: `frame` is NULL or has no file. */
static void put_site(struct buffer *buf, const struct site_frame *frame)
{
	if (!frame || !frame->file) {
		put_null(buf, "site");
		return;
	}
	key(buf, "site");
	buffer_string(buf, "{");
	put_frame(buf, frame);
	buffer_string(buf, "}");
}

static void put_kernel(struct buffer *buf, const struct report_kernel *kernel)
{
	char text[NAME_LIMIT];

	put_string(buf, "name", kernel->name, NAME_LIMIT);
	put_string(buf, "demangled", demangle(kernel->name, text, sizeof(text)) ? text : kernel->name, NAME_LIMIT);
	put_index(buf, "argument", kernel->argument);
	put_number(buf, "offset", kernel->offset);
	put_address(buf, "value", kernel->value);
	put_string(buf, "api", kernel->api, WORD_LIMIT);
	put_string(buf, "verdict", kernel->code.verdict, WORD_LIMIT);
	put_string(buf, "reason", kernel->code.reason, WORD_LIMIT);
}

static void put_range(struct buffer *buf, const struct range *range, int device)
{
	if (!range) {
		put_null(buf, "range");
		return;
	}
	key(buf, "range");
	buffer_string(buf, "{");
	put_string(buf, "label", range->label, LABEL_LIMIT);
	put_address(buf, "start", range->start);
	put_address(buf, "end", range->end);
	put_number(buf, "bytes", range->end - range->start);
	put_index(buf, "device", device);
	put_number(buf, "handle", range->handle);
	put_site(buf, &(struct site_frame){range->site.file, range->site.function, range->site.line});
	buffer_string(buf, "}");
}

static void put_written(struct buffer *buf, const struct report_event *event)
{
	if (event->written_end <= event->written_start) {
		put_null(buf, "written");
		return;
	}
	key(buf, "written");
	buffer_string(buf, "{");
	put_address(buf, "start", event->written_start);
	put_address(buf, "end", event->written_end);
	put_number(buf, "bytes", event->written_bytes);
	put_bool(buf, "exact", event->written_exact);
	buffer_string(buf, "}");
}

/*
 * Lists come last and are cut where the room ends: an item that did not fit is taken back, and the record says "cut".
 * TAIL_ROOM is kept for closing.
 */
struct list {
	struct buffer *buf;
	size_t mark; /* before the current item */
	bool cut, any;
};

static void item_start(struct list *list)
{
	list->mark = list->buf->length;
	if (list->any)
		buffer_string(list->buf, ",");
	buffer_string(list->buf, "{");
}

/* False: no room, stop. */
static bool item_end(struct list *list)
{
	buffer_string(list->buf, "}");
	if (list->buf->full) {
		buffer_rewind(list->buf, list->mark);
		list->cut = true;
		return false;
	}
	list->any = true;
	return true;
}

static void put_python(struct list *list, const struct site *site)
{
	for (int i = 0; site && i < site->python_count; i++) {
		item_start(list);
		put_frame(list->buf, &site->python[i]);
		if (!item_end(list))
			return;
	}
	list->cut |= site && site->python_cut;
}

static void put_native(struct list *list, const struct site *site)
{
	for (int i = 0; site && i < site->native_count; i++) {
		struct native_frame frame = {0};

		if (!native_resolve(site->native[i], true, &frame))
			frame.offset = (uintptr_t)site->native[i];
		item_start(list);
		put_string(list->buf, "library", frame.path, PATH_LIMIT);
		put_address(list->buf, "offset", frame.offset);
		put_string(list->buf, "symbol", frame.symbol, NAME_LIMIT);
		if (!item_end(list))
			return;
	}
}

static void put_candidates(struct list *list, const struct report_kernel *kernels, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		item_start(list);
		put_kernel(list->buf, &kernels[i]);
		put_site(list->buf, site_user_frame(&kernels[i].site));
		if (!item_end(list))
			return;
	}
}

static void put_stores(struct list *list, const struct report_kernel *kernel)
{
	const struct store_site *stores[STORES_LISTED];
	size_t count = kernel ? stores_of(&kernel->code, stores) : 0;

	for (size_t i = 0; i < count && i < STORES_LISTED; i++) {
		item_start(list);
		put_string(list->buf, "kind", stores[i]->kind, WORD_LIMIT);
		put_index(list->buf, "offset", store_is_ptx(stores[i]) ? -1 : (int)stores[i]->offset);
		put_index(list->buf, "ptx_line", store_is_ptx(stores[i]) ? (int)stores[i]->offset : -1);
		put_string(list->buf, "file", stores[i]->file, PATH_LIMIT);
		put_index(list->buf, "line", stores[i]->file ? (int)stores[i]->line : -1);
		if (!item_end(list))
			return;
	}
	list->cut |= count > STORES_LISTED;
}

static void put_lists(struct buffer *buf, const struct report_event *event, const struct site *site)
{
	struct list list = {.buf = buf};
	size_t size = buf->size;
	static const char *const names[] = {"python", "stores", "native", "candidates"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		key(buf, names[i]);
		buffer_string(buf, "[");
		buf->size = size - TAIL_ROOM;
		list.any = false;
		if (i == 0)
			put_python(&list, site);
		else if (i == 1)
			put_stores(&list, event->kernel);
		else if (i == 2)
			put_native(&list, site);
		else
			put_candidates(&list, event->candidates, event->candidate_count);
		buf->size = size;
		buffer_string(buf, "]");
	}
	put_bool(buf, "cut", list.cut);
}

void json_event(struct buffer *buf, uint64_t seq, const struct report_event *event)
{
	const struct site *site = report_event_site(event);

	start(buf, seq, json_kind_name(event->kind));
	put_string(buf, "evidence", evidence_names[event->evidence], WORD_LIMIT);
	put_string(buf, "action", json_action_name(event->action), WORD_LIMIT);
	put_string(buf, "api", event->api, WORD_LIMIT);
	put_string(buf, "outer_api", event->outer_api, WORD_LIMIT);
	put_string(buf, "outer_note", event->outer_note, WORD_LIMIT);
	if (event->kernel) {
		key(buf, "kernel");
		buffer_string(buf, "{");
		put_kernel(buf, event->kernel);
		buffer_string(buf, "}");
	} else {
		put_null(buf, "kernel");
	}
	put_written(buf, event);
	put_range(buf, event->range, event->device);
	put_address(buf, "stream", event->stream);
	if (event->graph)
		put_address(buf, "graph", event->graph);
	else
		put_null(buf, "graph");
	put_string(buf, "graph_node", event->graph_node, WORD_LIMIT);
	put_string(buf, "library", site ? site_library(site) : NULL, LABEL_LIMIT);
	put_number(buf, "unverified_launches", event->unverified_launches);
	if (event->inside_outer && event->action == ACTION_DENIED)
		put_number(buf, "earlier_launches", event->earlier_launches);
	else
		put_null(buf, "earlier_launches");
	key(buf, "result");
	buffer_signed(buf, event->result);
	put_string(buf, "fault", event->fault, WORD_LIMIT);
	put_lists(buf, event, site);
	buffer_string(buf, "}\n");
}

void json_folded(struct buffer *buf, uint64_t seq, const struct fold_site *site)
{
	start(buf, seq, "folded");
	put_string(buf, "of", site->other ? NULL : json_kind_name(site->kind), WORD_LIMIT);
	put_string(buf, "action", site->other ? NULL : json_action_name(site->action), WORD_LIMIT);
	put_string(buf, "api", site->api, WORD_LIMIT);
	put_string(buf, "outer_api", site->outer_api, WORD_LIMIT);
	put_string(buf, "kernel", site->kernel, NAME_LIMIT);
	put_string(buf, "label", site->other ? NULL : site->label, LABEL_LIMIT);
	put_number(buf, "handle", site->handle);
	put_site(buf, &site->frame);
	put_number(buf, "count", site->count);
	put_number(buf, "folded", site->count > options_get()->site_limit ? site->count - options_get()->site_limit : 0);
	buffer_string(buf, "}\n");
}

static void put_loss(struct buffer *buf, const char *lost, const char *why, uint64_t count, int error)
{
	put_number(buf, lost, count);
	put_string(buf, why, count ? strerrordesc_np(error) : NULL, WORD_LIMIT);
}

void json_summary(struct buffer *buf, uint64_t seq, const struct report_summary *summary, uint64_t folded,
                  const struct output_trouble *trouble)
{
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{"ranges_ever", summary->ranges_ever},
		{"ranges_live", summary->ranges_live},
		{"bytes_live", summary->bytes_live},
		{"calls", summary->calls},
		{"launches", summary->launches},
		{"graph_launches", summary->graph_launches},
		{"checked", summary->checked},
		{"verified", summary->verified},
		{"violations", summary->violations},
		{"denied", summary->denied},
		{"inconclusive", summary->inconclusive},
		{"unverified", summary->unverified},
		{"suppressed", summary->suppressed},
		{"clean", summary->clean},
		{"near", summary->near},
		{"unknown", summary->unknown},
		{"stores", summary->stores},
		{"ended_unverified", summary->ended_unverified},
		{"folded", folded},
	};

	start(buf, seq, "summary");
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		put_number(buf, counts[i].name, counts[i].value);
	put_loss(buf, "log_lost", "log_error", trouble->log_lost, trouble->log_errno);
	put_loss(buf, "text_lost", "text_error", trouble->text_lost, trouble->text_errno);
	put_string(buf, "not_seen", summary->blind, BLIND_LIMIT);
	buffer_string(buf, "}\n");
}
