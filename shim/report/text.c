#include "shim/report/text.h"

#include <string.h>

#include "shim/report/demangle.h"
#include "shim/report/json.h"
#include "shim/report/native.h"
#include "shim/report/stores.h"
#include "shim/verdict/options.h"

#define NAME_LIMIT 200
#define PATH_LIMIT 400
#define CANDIDATES 8 /* more than these are only counted here; the log has them all */

enum phrase {
	PHRASE_VIOLATION,
	PHRASE_DENIED,
	PHRASE_STOPPED,
	PHRASE_STOPPED_BEFORE,
	PHRASE_INCONCLUSIVE,
	PHRASE_FREED,
	PHRASE_ENDED,
	PHRASE_FOLDED,
	PHRASE_SUMMARY
};

/*
 * The first line of every text is "cuconst: WORD: SUBJECT VERB OBJECT TAIL". Tests and people's scripts compare these:
 * change them with the schema. SUBJECT is who wrote (put_writer), OBJECT is `N bytes of read-only "label"`
 * (put_object).
 */
static const struct {
	const char *word, *verb, *tail;
	const char *color;
} phrases[] = {
	[PHRASE_VIOLATION] = {"violation", "wrote", "", "\033[1;31m"},
	[PHRASE_DENIED] = {"denied", "would write", "", "\033[1;31m"},
	[PHRASE_STOPPED] = {"stopped", "wrote", "", "\033[1;31m"},
	[PHRASE_STOPPED_BEFORE] = {"stopped", "would write", "", "\033[1;31m"},
	[PHRASE_INCONCLUSIVE] = {"inconclusive", "may have written", "", "\033[1;33m"},
	[PHRASE_FREED] = {"freed", "freed", "", "\033[1;33m"},
	[PHRASE_ENDED] = {"ended", "ended", " unchecked", "\033[1;33m"},
	[PHRASE_FOLDED] = {"folded", "", "", "\033[1;36m"},
	[PHRASE_SUMMARY] = {"summary", "", "", "\033[1;36m"},
};

static enum phrase event_phrase(const struct report_event *event)
{
	switch (event->kind) {
	case REPORT_INCONCLUSIVE:
		return PHRASE_INCONCLUSIVE;
	case REPORT_FREED:
		return PHRASE_FREED;
	case REPORT_ENDED:
		return PHRASE_ENDED;
	case REPORT_VIOLATION:
		break;
	}
	if (event->action == ACTION_DENIED)
		return PHRASE_DENIED;
	if (event->action != ACTION_STOPPED)
		return PHRASE_VIOLATION;
	/* What is written by contract is stopped before the call. */
	return event->evidence == EVIDENCE_WRITTEN ? PHRASE_STOPPED_BEFORE : PHRASE_STOPPED;
}

static void put_start(struct buffer *buf, enum phrase phrase, bool color)
{
	buffer_string(buf, "cuconst: ");
	if (color)
		buffer_string(buf, phrases[phrase].color);
	buffer_string(buf, phrases[phrase].word);
	buffer_string(buf, color ? ":\033[0m " : ": ");
}

static void put_count(struct buffer *buf, uint64_t count, const char *noun)
{
	buffer_unsigned(buf, count);
	buffer_string(buf, " ");
	buffer_string(buf, noun);
	if (count != 1)
		buffer_string(buf, "s");
}

static void put_kernel_name(struct buffer *buf, const char *name)
{
	char text[NAME_LIMIT + 8];

	if (!name) {
		buffer_string(buf, "an unknown kernel");
		return;
	}
	buffer_string(buf, "kernel ");
	buffer_plain(buf, demangle_short(name, text, sizeof(text)) ? text : name, NAME_LIMIT);
}

static void put_argument(struct buffer *buf, const struct report_kernel *kernel)
{
	if (kernel->argument < 0)
		return;
	buffer_string(buf, ", argument ");
	buffer_unsigned(buf, (uint64_t)kernel->argument);
}

static void put_outer(struct buffer *buf, const char *outer_api, const char *outer_note)
{
	buffer_plain(buf, outer_api, NAME_LIMIT);
	if (!outer_note)
		return;
	buffer_string(buf, "(");
	buffer_plain(buf, outer_note, NAME_LIMIT);
	buffer_string(buf, ")");
}

/* cudaLaunchKernel and its kin say less than the kernel's own name. */
static bool is_launch(const char *api)
{
	return strstr(api, "cudaLaunch") != NULL;
}

/*
 * cuconst_check(), cuconst_unprotect() or a look before a launch or at exit found a change that no call is to be blamed
 * for.
 */
static bool found_by_check(const struct report_event *event)
{
	return !event->kernel && event->api && !strncmp(event->api, "cuconst_", 8);
}

static void put_finder(struct buffer *buf, const char *api)
{
	if (!strcmp(api, "cuconst_before_launch")) {
		buffer_string(buf, ", found before a launch");
	} else if (!strcmp(api, "cuconst_at_exit")) {
		buffer_string(buf, ", found at exit");
	} else {
		buffer_string(buf, ", found by ");
		buffer_string(buf, api);
	}
}

/*
 * `cuMemcpyDtoD_v2`, `kernel k (cuLaunchKernel, argument 0)`, `cuGraphLaunch (memset node)`; below a library call
 * `cufftExecC2C(idata=odata) (kernel k, cuLaunchKernel, argument 0)`, `cudaMemcpy (cuMemcpyHtoD_v2)`.
 */
static void put_writer(struct buffer *buf, const struct report_event *event)
{
	const struct report_kernel *kernel = event->kernel;
	const char *api = kernel && !event->api ? kernel->api : event->api;

	if (event->fault && !kernel) {
		buffer_string(buf, "one of ");
		put_count(buf, event->candidate_count, "kernel argument");
		return;
	}
	if (found_by_check(event)) {
		buffer_string(buf, "an unknown writer");
		return;
	}
	if (event->outer_api && !(kernel && is_launch(event->outer_api))) {
		put_outer(buf, event->outer_api, event->outer_note);
		/* Refused by the library's own contract: there is nothing beneath it. */
		if (!kernel && api && !strcmp(api, event->outer_api))
			return;
		buffer_string(buf, " (");
		if (kernel) {
			put_kernel_name(buf, kernel->name);
			buffer_string(buf, ", ");
		}
	} else if (kernel) {
		put_kernel_name(buf, kernel->name);
		buffer_string(buf, " (");
	}
	buffer_plain(buf, api ? api : "an unknown call", NAME_LIMIT);
	if (kernel)
		put_argument(buf, kernel);
	if (event->graph_node) {
		buffer_string(buf, kernel || event->outer_api ? ", " : " (");
		buffer_plain(buf, event->graph_node, NAME_LIMIT);
		buffer_string(buf, " node");
	}
	if (kernel || event->outer_api || event->graph_node)
		buffer_string(buf, ")");
}

static void put_quoted(struct buffer *buf, const char *label)
{
	buffer_string(buf, "\"");
	buffer_plain(buf, label, NAME_LIMIT);
	buffer_string(buf, "\"");
}

static void put_label(struct buffer *buf, const char *label)
{
	buffer_string(buf, "read-only ");
	if (label && *label)
		put_quoted(buf, label);
	else
		buffer_string(buf, "memory");
}

static void put_object(struct buffer *buf, const struct report_event *event)
{
	if (event->kind == REPORT_ENDED)
		buffer_string(buf, "the protection of ");
	if (event->written_bytes) {
		if (!event->written_exact)
			buffer_string(buf, "up to ");
		put_count(buf, event->written_bytes, "byte");
		buffer_string(buf, " of ");
	}
	put_label(buf, event->range ? event->range->label : NULL);
}

static void put_frame(struct buffer *buf, const struct site_frame *frame)
{
	buffer_plain(buf, frame->file, PATH_LIMIT);
	if (frame->line > 0) {
		buffer_string(buf, ":");
		buffer_unsigned(buf, (uint64_t)frame->line);
	}
	if (frame->function) {
		buffer_string(buf, " in ");
		buffer_plain(buf, frame->function, NAME_LIMIT);
	}
}

/* Where the call came from: the user's Python line, else the first native frame that is not plumbing. */
static void put_place(struct buffer *buf, const struct site *site)
{
	const struct site_frame *frame = site ? site_user_frame(site) : NULL;
	struct native_frame native;

	if (frame) {
		put_frame(buf, frame);
		return;
	}
	for (int i = 0; site && i < site->native_count; i++) {
		if (!native_resolve(site->native[i], false, &native) || native_is_plumbing(native_base_name(native.path)))
			continue;
		native_resolve(site->native[i], true, &native);
		buffer_plain(buf, native_base_name(native.path), PATH_LIMIT);
		buffer_string(buf, "+");
		buffer_hex(buf, native.offset);
		if (native.symbol) {
			buffer_string(buf, " in ");
			buffer_plain(buf, native.symbol, NAME_LIMIT);
		}
		return;
	}
	buffer_string(buf, "unknown place");
}

static void put_extent(struct buffer *buf, const struct report_event *event)
{
	enum phrase phrase = event_phrase(event);

	if (event->written_end <= event->written_start)
		return;
	if (phrase == PHRASE_DENIED || phrase == PHRASE_STOPPED_BEFORE)
		buffer_string(buf, "; kept bytes ");
	else
		buffer_string(buf, event->evidence == EVIDENCE_CHANGED ? "; changed bytes " : "; written bytes ");
	buffer_unsigned(buf, event->written_start - event->range->start);
	buffer_string(buf, "..");
	buffer_unsigned(buf, event->written_end - 1 - event->range->start);
	buffer_string(buf, event->written_exact ? " (exact)" : " (to 4 KiB)");
}

static void put_range(struct buffer *buf, const struct report_event *event)
{
	const struct range *range = event->range;

	buffer_string(buf, "  into ");
	if (range->label[0]) {
		put_quoted(buf, range->label);
		buffer_string(buf, " ");
	}
	buffer_string(buf, "[");
	buffer_hex(buf, range->start);
	buffer_string(buf, ", ");
	buffer_hex(buf, range->end);
	buffer_string(buf, ") ");
	put_count(buf, range->end - range->start, "byte");
	if (event->device >= 0) {
		buffer_string(buf, " on device ");
		buffer_unsigned(buf, (uint64_t)event->device);
	}
	if (range->site.file) {
		struct site_frame frame = {range->site.file, range->site.function, range->site.line};

		buffer_string(buf, ", protected at ");
		put_frame(buf, &frame);
	}
	put_extent(buf, event);
	buffer_string(buf, "\n");
}

static void put_store(struct buffer *buf, const struct store_site *store)
{
	buffer_plain(buf, store->kind, NAME_LIMIT);
	buffer_string(buf, store_is_ptx(store) ? " in line " : " at ");
	if (store_is_ptx(store))
		buffer_unsigned(buf, store->offset);
	else
		buffer_hex(buf, store->offset);
	if (store_is_ptx(store))
		buffer_string(buf, " of its PTX");
	if (!store->file)
		return;
	buffer_string(buf, " (");
	buffer_plain(buf, store->file, PATH_LIMIT);
	buffer_string(buf, ":");
	buffer_unsigned(buf, store->line);
	buffer_string(buf, ")");
}

/* Where the address points, when that is not into the range. */
static void put_beside(struct buffer *buf, const struct report_kernel *kernel, const struct range *range)
{
	if (kernel->value >= range->start && kernel->value < range->end)
		return;
	buffer_string(buf, "; the argument points ");
	if (kernel->value < range->start) {
		put_count(buf, range->start - kernel->value, "byte");
		buffer_string(buf, " before the range");
	} else if (kernel->value == range->end) {
		buffer_string(buf, "to the range's end");
	} else {
		put_count(buf, kernel->value - range->end, "byte");
		buffer_string(buf, " behind the range");
	}
}

/* What the kernel's code says. */
static void put_how(struct buffer *buf, const struct report_event *event)
{
	const struct report_kernel *kernel = event->kernel;
	const struct store_site *stores[STORES_LISTED];
	size_t count;

	if (!kernel || !kernel->code.verdict)
		return;
	count = stores_of(&kernel->code, stores);
	buffer_string(buf, "  how  ");
	if (kernel->code.reason) {
		buffer_string(buf, "its code ");
		buffer_plain(buf, kernel->code.reason, NAME_LIMIT);
	} else {
		buffer_string(buf, "it stores through that argument");
	}
	if (count) {
		buffer_string(buf, ": ");
		put_store(buf, stores[0]);
	}
	if (count > 1) {
		buffer_string(buf, " and ");
		buffer_unsigned(buf, count - 1);
		buffer_string(buf, " more");
	}
	if (event->range)
		put_beside(buf, kernel, event->range);
	buffer_string(buf, "\n");
}

static void put_candidates(struct buffer *buf, const struct report_event *event)
{
	for (size_t i = 0; i < event->candidate_count && i < CANDIDATES; i++) {
		const struct report_kernel *kernel = &event->candidates[i];

		buffer_string(buf, "  or   ");
		put_kernel_name(buf, kernel->name);
		buffer_string(buf, " (");
		buffer_plain(buf, kernel->api ? kernel->api : "graph", NAME_LIMIT);
		put_argument(buf, kernel);
		buffer_string(buf, kernel->code.verdict && !strcmp(kernel->code.verdict, "near")
		                           ? "), which stores beside it, at "
		                           : ") at ");
		put_place(buf, &kernel->site);
		buffer_string(buf, "\n");
	}
	if (event->candidate_count > CANDIDATES) {
		buffer_string(buf, "  or   ");
		buffer_unsigned(buf, event->candidate_count - CANDIDATES);
		buffer_string(buf, " more\n");
	}
	if (event->unverified_launches) {
		if (event->unverified_launches == 1) {
			buffer_string(buf, "  or   an earlier launch that was not checked\n");
		} else {
			buffer_string(buf, "  or   one of ");
			buffer_unsigned(buf, event->unverified_launches);
			buffer_string(buf, " earlier launches that were not checked\n");
		}
	}
}

/* What a refusal leaves half-done. */
static void put_earlier(struct buffer *buf, const struct report_event *event)
{
	if (event->action != ACTION_DENIED || !event->inside_outer || !event->earlier_launches)
		return;
	buffer_string(buf, ", after ");
	buffer_unsigned(buf, event->earlier_launches);
	buffer_string(buf, event->earlier_launches == 1 ? " launch of that call" : " launches of that call");
}

/* The store did not come to pass. */
static void put_fault(struct buffer *buf, const struct report_event *event)
{
	buffer_string(buf, ", which the GPU refused: CUDA error ");
	buffer_unsigned(buf, (uint64_t)event->result);
	if (strncmp(event->fault, "cuconst_", 8)) {
		buffer_string(buf, " from ");
		buffer_plain(buf, event->fault, NAME_LIMIT);
	} else {
		put_finder(buf, event->fault);
	}
}

/* However full it is, the text ends with a newline. */
static void put_end(struct buffer *buf)
{
	if (!buf->full)
		return;
	buffer_rewind(buf, buf->length < buf->size - 5 ? buf->length : buf->size - 5);
	buffer_string(buf, "...\n");
}

void text_event(struct buffer *buf, const struct report_event *event, bool color)
{
	const struct site *site = report_event_site(event);
	enum phrase phrase = event_phrase(event);

	put_start(buf, phrase, color);
	put_writer(buf, event);
	buffer_string(buf, " ");
	buffer_string(buf, phrases[phrase].verb);
	buffer_string(buf, " ");
	put_object(buf, event);
	buffer_string(buf, phrases[phrase].tail);
	if (event->fault)
		put_fault(buf, event);
	else if (found_by_check(event))
		put_finder(buf, event->api);
	buffer_string(buf, "\n  at   ");
	put_place(buf, site);
	buffer_string(buf, "\n");
	if (event->range)
		put_range(buf, event);
	put_how(buf, event);
	put_candidates(buf, event);
	buffer_string(buf, "  by   library ");
	buffer_plain(buf, site ? site_library(site) : "?", NAME_LIMIT);
	buffer_string(buf, "; action: ");
	buffer_string(buf, json_action_name(event->action));
	buffer_string(buf, " (mode ");
	buffer_string(buf, options_mode_name(options_get()->mode));
	buffer_string(buf, ")");
	put_earlier(buf, event);
	buffer_string(buf, "\n");
	put_end(buf);
}

void text_folded(struct buffer *buf, const struct fold_site *site, bool color)
{
	struct report_kernel kernel = {.name = site->kernel, .argument = -1};
	struct report_event event = {
		.api = site->api,
		.outer_api = site->outer_api,
		.outer_note = site->outer_note,
		.kernel = site->kernel ? &kernel : NULL,
	};

	put_start(buf, PHRASE_FOLDED, color);
	buffer_unsigned(buf, site->count);
	if (site->other) {
		buffer_string(buf, " so far at more places than are told apart\n");
		return;
	}
	buffer_string(buf, " so far like this: ");
	put_writer(buf, &event);
	buffer_string(buf, ", ");
	put_label(buf, site->label);
	if (site->frame.file) {
		buffer_string(buf, ", at ");
		put_frame(buf, &site->frame);
	}
	buffer_string(buf, "\n");
	put_end(buf);
}

static void put_loss(struct buffer *buf, const char *where, uint64_t count, int error)
{
	if (!count)
		return;
	buffer_string(buf, "; ");
	put_count(buf, count, "record");
	buffer_string(buf, " lost ");
	buffer_string(buf, where);
	buffer_string(buf, " (");
	buffer_string(buf, strerrordesc_np(error));
	buffer_string(buf, ")");
}

/* Launches by what the kernel's code says, when there were any that concerned a range. */
static void put_verdicts(struct buffer *buf, const struct report_summary *summary)
{
	if (!(summary->clean | summary->near | summary->unknown | summary->stores))
		return;
	buffer_string(buf, "; kernels: ");
	buffer_unsigned(buf, summary->clean);
	buffer_string(buf, " clean, ");
	buffer_unsigned(buf, summary->stores);
	buffer_string(buf, " store, ");
	buffer_unsigned(buf, summary->near);
	buffer_string(buf, " near, ");
	buffer_unsigned(buf, summary->unknown);
	buffer_string(buf, " unknown");
}

void text_summary(struct buffer *buf, const struct report_summary *summary, uint64_t folded,
                  const struct output_trouble *trouble, bool color)
{
	put_start(buf, PHRASE_SUMMARY, color);
	put_count(buf, summary->ranges_ever, "read-only range");
	buffer_string(buf, ", ");
	buffer_unsigned(buf, summary->checked);
	buffer_string(buf, " calls and launches checked, ");
	buffer_unsigned(buf, summary->verified);
	buffer_string(buf, " verified");
	put_verdicts(buf, summary);
	buffer_string(buf, "; ");
	put_count(buf, summary->violations, "violation");
	buffer_string(buf, " (");
	buffer_unsigned(buf, summary->denied);
	buffer_string(buf, " denied), ");
	buffer_unsigned(buf, summary->inconclusive);
	buffer_string(buf, " inconclusive, ");
	buffer_unsigned(buf, summary->unverified);
	buffer_string(buf, " unverified, ");
	buffer_unsigned(buf, summary->suppressed);
	buffer_string(buf, " suppressed, ");
	buffer_unsigned(buf, folded);
	buffer_string(buf, " folded");
	if (summary->ended_unverified) {
		buffer_string(buf, "; ");
		put_count(buf, summary->ended_unverified, "protection");
		buffer_string(buf, " ended unchecked");
	}
	put_loss(buf, "by the log", trouble->log_lost, trouble->log_errno);
	put_loss(buf, "by stderr", trouble->text_lost, trouble->text_errno);
	if (summary->blind) {
		buffer_string(buf, "; not seen: ");
		buffer_plain(buf, summary->blind, 2048);
	}
	buffer_string(buf, "\n");
	put_end(buf);
}
