#include "shim/report/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "registry/lock.h"
#include "shim/report/buffer.h"
#include "shim/report/fold.h"
#include "shim/report/json.h"
#include "shim/report/output.h"
#include "shim/report/text.h"
#include "shim/verdict/options.h"
#include "shim/verdict/status.h"
#include "shim/verdict/suppress.h"

#define NOTES 32
#define NOTE_SIZE 1024
#define CLOSE_WAIT_MS 2000 /* stderr may be a pipe that nobody reads */

static struct {
	struct lock lock; /* held while the outputs are opened, nothing else; the log's own is taken under it */
	_Atomic bool open;
	bool suppressions; /* loaded; survives a fork */
	_Atomic bool text; /* events go to stderr */
	_Atomic bool said; /* something was recorded: the last text line is due */
	_Atomic bool closed;
	_Atomic unsigned writing; /* threads that are recording */
	_Atomic uint64_t seq;
} state = {.lock = LOCK_INITIALIZER(LOCK_REPORT)};

static const char *_Atomic notes[NOTES];

/* False when this note was made before, or too many were. */
static bool note_is_new(const char *format)
{
	for (size_t i = 0; i < NOTES; i++) {
		const char *seen = NULL;

		if (atomic_compare_exchange_strong(&notes[i], &seen, format))
			return true;
		if (seen == format || !strcmp(seen, format))
			return false;
	}
	return false;
}

static void note_line(const char *text)
{
	char line[NOTE_SIZE + 16];
	struct buffer buf = buffer_over(line, sizeof(line));

	buffer_string(&buf, "cuconst: ");
	buffer_string(&buf, text);
	buffer_string(&buf, "\n");
	output_stderr(buf.text, buf.length);
}

void report_note(const char *format, ...)
{
	int saved = errno;
	char text[NOTE_SIZE];
	va_list args;

	if (note_is_new(format)) {
		va_start(args, format);
		vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		note_line(text);
	}
	errno = saved;
}

/* Each complaint about the file is said: report_note() would take them for one. */
static void complain_suppression(const char *message, void *data)
{
	char text[NOTE_SIZE];
	struct buffer buf = buffer_over(text, sizeof(text) - 1);

	buffer_string(&buf, "suppressions: ");
	buffer_string(&buf, message);
	text[buf.length] = '\0';
	note_line(text);
}

static void open_outputs(void)
{
	const struct options *opt = options_get();
	const char *path;
	int error;

	atomic_store(&state.text, opt->text);
	if (opt->log) {
		error = output_log_open(opt->log, &path);
		if (error) {
			report_note("log %s cannot be opened (%s): records go to stderr only", path,
			            strerrordesc_np(-error));
			atomic_store(&state.text, true);
		} else {
			atomic_fetch_add(&status_page()->logs, 1);
		}
	}
	if (!opt->suppressions || state.suppressions)
		return;
	state.suppressions = true;
	error = suppress_load(opt->suppressions, complain_suppression, NULL);
	if (error)
		report_note("suppressions %s cannot be read (%s): nothing is suppressed", opt->suppressions,
		            strerrordesc_np(-error));
}

void report_open(void)
{
	int saved = errno;

	if (atomic_load_explicit(&state.open, memory_order_acquire))
		return;
	lock_acquire(&state.lock);
	if (!atomic_load_explicit(&state.open, memory_order_relaxed)) {
		open_outputs();
		atomic_store_explicit(&state.open, true, memory_order_release);
	}
	lock_release(&state.lock);
	errno = saved;
}

/*
 * A launch by the runtime has no hook that would name it (doors/names.def), as each launch would pay for that: its stack
 * tells. `room` for the event with the name.
 */
static const struct report_event *with_name(const struct report_event *event, struct report_event *room)
{
	const struct site *site = report_event_site(event);
	const char *name = NULL;

	if (!event->outer_api && event->api && !strncmp(event->api, "cuLaunch", 8) && site && options_get()->names)
		name = site_runtime(site);
	if (!name)
		return event;
	*room = *event;
	room->outer_api = name;
	return room;
}

bool report_suppressed(const struct report_event *event)
{
	int saved = errno;
	struct report_event room;
	bool suppressed;

	report_open();
	suppressed = suppress_test(with_name(event, &room));
	errno = saved;
	return suppressed;
}

static void count(const struct report_event *event)
{
	struct status_page *page = status_page();

	if (event->kind == REPORT_VIOLATION)
		atomic_fetch_add(&page->violations, 1);
	if (event->kind == REPORT_VIOLATION && event->action == ACTION_DENIED)
		atomic_fetch_add(&page->denied, 1);
	if (event->kind == REPORT_INCONCLUSIVE)
		atomic_fetch_add(&page->inconclusive, 1);
}

/* The two forms in turn, each with its buffer on the stack only while it is written. */
static __attribute__((noinline)) void write_json(const struct report_event *event, const struct fold_site *folded)
{
	char line[JSON_SIZE];
	struct buffer buf = buffer_over(line, sizeof(line));
	uint64_t seq;

	if (!output_log_is_open())
		return;
	seq = atomic_fetch_add(&state.seq, 1) + 1;
	if (event)
		json_event(&buf, seq, event);
	else
		json_folded(&buf, seq, folded);
	output_log(buf.text, buf.length);
}

static __attribute__((noinline)) void write_text(const struct report_event *event, const struct fold_site *folded)
{
	char text[TEXT_SIZE];
	struct buffer buf = buffer_over(text, sizeof(text));

	if (!atomic_load(&state.text))
		return;
	if (event)
		text_event(&buf, event, options_get()->color);
	else
		text_folded(&buf, folded, options_get()->color);
	output_stderr(buf.text, buf.length);
}

bool report_emit(const struct report_event *event)
{
	int saved = errno;
	struct report_event room;
	struct fold_site folded;

	report_open();
	event = with_name(event, &room);
	if (suppress_match(event)) {
		errno = saved;
		return false;
	}
	atomic_fetch_add(&state.writing, 1);
	count(event);
	atomic_store(&state.said, true);
	switch (fold_count(event, options_get()->site_limit, &folded)) {
	case FOLD_WRITE:
		write_json(event, NULL);
		write_text(event, NULL);
		break;
	case FOLD_MENTION:
		write_json(NULL, &folded);
		write_text(NULL, &folded);
		break;
	case FOLD_DROP:
		break;
	}
	atomic_fetch_sub(&state.writing, 1);
	errno = saved;
	return true;
}

static void write_summary(const struct report_summary *summary)
{
	char line[JSON_SIZE];
	struct buffer buf = buffer_over(line, sizeof(line));
	struct output_trouble trouble = output_trouble();

	if (output_log_is_open()) {
		json_summary(&buf, atomic_fetch_add(&state.seq, 1) + 1, summary, fold_total(), &trouble);
		output_log(buf.text, buf.length);
		trouble = output_trouble();
		buffer_rewind(&buf, 0);
	}
	/* A program that protects nothing and loses nothing sees no line of ours. */
	if (!atomic_load(&state.said) && !summary->ranges_ever && !trouble.log_lost)
		return;
	if (!atomic_load(&state.text) && !trouble.log_lost)
		return;
	text_summary(&buf, summary, fold_total(), &trouble, options_get()->color);
	output_stderr(buf.text, buf.length);
}

/*
 * A thread whose record is folded may be at the end of the process before the one whose record is not: the last line
 * waits for it, not for ever.
 */
static void wait_for_records(void)
{
	for (int i = 0; i < CLOSE_WAIT_MS * 10 && atomic_load(&state.writing); i++)
		nanosleep(&(struct timespec){0, 100000}, NULL);
}

void report_close(const struct report_summary *summary)
{
	int saved = errno;
	struct fold_site folded;
	unsigned index = 0;

	/* A child of fork that recorded nothing has opened nothing, and has nothing to sum up. */
	if (atomic_load(&state.open) && !atomic_exchange(&state.closed, true)) {
		wait_for_records();
		while (fold_next(&index, options_get()->site_limit, &folded))
			write_json(NULL, &folded);
		write_summary(summary);
	}
	errno = saved;
}

void report_postfork_child(void)
{
	int saved = errno;

	/* The log is opened by the first record: most children only call exec. */
	state.lock = (struct lock)LOCK_INITIALIZER(LOCK_REPORT);
	atomic_store(&state.open, false);
	atomic_store(&state.said, false);
	atomic_store(&state.closed, false);
	atomic_store(&state.seq, 0);
	atomic_store(&state.writing, 0);
	output_postfork_child();
	fold_postfork_child();
	suppress_postfork_child();
	errno = saved;
}
