#include "tools/summary.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "shim/report/library_file.h"
#include "tools/tool.h"

/* A process that wrote into one of the logs. */
struct writer {
	char *key; /* first member: compared by compare_keys() */
	bool ended;
};

/* What a process folded at one site so far: the shim mentions a running total, more than once. */
struct fold {
	char *key;
	uint64_t folded;
};

struct node {
	char *key;
	struct place place;
};

struct summary {
	void *nodes, *writers, *folds; /* trees of tsearch() */
	struct place **places;
	size_t place_count, room;
	size_t writer_count, ended_count;
	struct names unseen;
	struct summary_ends ends;
};

static const char *const kind_names[SUMMARY_KINDS] = {"violation", "inconclusive", "freed", "ended"};
static const char *const action_names[SUMMARY_ACTIONS] = {"logged", "denied", "stopped"};

static void *must(void *memory)
{
	if (!memory) {
		tool_say("out of memory");
		exit(TOOL_OS_ERROR);
	}
	return memory;
}

/* All things in the trees begin with their key. */
static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The thing of this key, made of `bytes` zero bytes when it is new. Takes the key over. */
static void *find(void **tree, char *key, size_t bytes, bool *ret_new)
{
	void *found = tfind(&key, tree, compare_keys);
	char **thing;

	*ret_new = !found;
	if (found) {
		free(key);
		return *(void **)found;
	}
	thing = must(calloc(1, bytes));
	*thing = key;
	must(tsearch(thing, tree, compare_keys));
	return thing;
}

static void names_add(struct names *names, const char *text)
{
	if (!text || !*text)
		return;
	for (size_t i = 0; i < names->count; i++) {
		if (strcmp(names->text[i], text) == 0)
			return;
	}
	if (names->count == SUMMARY_NAMES)
		names->more++;
	else
		names->text[names->count++] = must(strdup(text));
}

static void names_free(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->text[i]);
}

static const char *text_of(const struct json *record, const char *name)
{
	return json_string(json_member(record, name), "");
}

/* An index in a list of names, or `count`. */
static size_t index_of(const char *text, const char *const *list, size_t count)
{
	size_t i = 0;

	while (i < count && strcmp(text, list[i]) != 0)
		i++;
	return i;
}

/* As site_user_frame() of the shim decides. */
static const struct json *user_frame(const struct json *record)
{
	const struct json *list = json_member(record, "python");
	const struct json *first = list && list->type == JSON_ARRAY ? list->first : NULL;

	for (const struct json *frame = first; frame; frame = frame->next) {
		if (!library_file(text_of(frame, "file")))
			return frame;
	}
	return first;
}

static char *frame_text(const struct json *frame)
{
	const char *function = text_of(frame, "function");
	unsigned long long line = json_unsigned(json_member(frame, "line"), 0);

	if (line == 0)
		return tool_format("%s%s%s", text_of(frame, "file"), *function ? " in " : "", function);
	return tool_format("%s:%llu%s%s", text_of(frame, "file"), line, *function ? " in " : "", function);
}

/* The call a user would know: the outermost one. */
static const char *call_of(const struct json *record)
{
	const char *outer = text_of(record, "outer_api");

	return *outer ? outer : text_of(record, "api");
}

static struct place *place_at(struct summary *summary, char *title)
{
	bool new;
	struct node *node = find(&summary->nodes, title, sizeof(*node), &new);

	if (new) {
		node->place.title = node->key;
		if (summary->place_count == summary->room) {
			summary->room = summary->room ? summary->room * 2 : 64;
			summary->places = must(realloc(summary->places, summary->room * sizeof(struct place *)));
		}
		summary->places[summary->place_count++] = &node->place;
	}
	return &node->place;
}

static void add_time(struct place *place, const char *time)
{
	size_t size = strlen(time) + 1;

	if (size == 1 || size > sizeof(place->first))
		return;
	/* ISO 8601 in UTC: the order of the text is the order of time. */
	if (!*place->first || strcmp(time, place->first) < 0)
		memcpy(place->first, time, size);
	if (strcmp(time, place->last) > 0)
		memcpy(place->last, time, size);
}

static const char *kernel_name(const struct json *kernel)
{
	return json_string(json_member(kernel, "demangled"), text_of(kernel, "name"));
}

static void add_candidates(struct place *place, const struct json *list)
{
	const struct json *first = list && list->type == JSON_ARRAY ? list->first : NULL;

	for (const struct json *kernel = first; kernel; kernel = kernel->next)
		names_add(&place->candidates, kernel_name(kernel));
}

/* Lines of the source that hold the guilty stores, where the image told them. */
static void add_stores(struct place *place, const struct json *list)
{
	const struct json *first = list && list->type == JSON_ARRAY ? list->first : NULL;

	for (const struct json *store = first; store; store = store->next) {
		if (!*text_of(store, "file"))
			continue;
		char *text = tool_format("%s:%llu (%s)", text_of(store, "file"),
		                         (unsigned long long)json_unsigned(json_member(store, "line"), 0),
		                         text_of(store, "kind"));
		names_add(&place->stores, text);
		free(text);
	}
}

static void add_event(struct summary *summary, const struct json *record, enum summary_kind kind)
{
	const struct json *frame = user_frame(record);
	const struct json *kernel = json_member(record, "kernel");
	const struct json *range = json_member(record, "range");
	const struct json *site = json_member(range, "site");
	const struct json *rank = json_member(record, "rank");
	const char *library = text_of(record, "library");
	const char *note = text_of(record, "outer_note");
	struct place *place = place_at(
		summary, frame ? frame_text(frame) : tool_format("%s, %s", *library ? library : "?", call_of(record)));
	size_t action = index_of(text_of(record, "action"), action_names, SUMMARY_ACTIONS);
	char *text;

	place->kinds[kind]++;
	if (kind == SUMMARY_VIOLATION && action < SUMMARY_ACTIONS)
		place->actions[action]++;
	add_time(place, text_of(record, "time"));
	text = *note ? tool_format("%s(%s)", call_of(record), note) : tool_format("%s", call_of(record));
	names_add(&place->calls, text);
	free(text);
	names_add(&place->kernels, kernel_name(kernel));
	add_candidates(place, json_member(record, "candidates"));
	add_stores(place, json_member(record, "stores"));
	names_add(&place->labels, text_of(range, "label"));
	names_add(&place->libraries, library);
	if (site && site->type == JSON_OBJECT) {
		text = frame_text(site);
		names_add(&place->sites, text);
		free(text);
	}
	if (rank && rank->type == JSON_NUMBER)
		names_add(&place->ranks, rank->text);
}

/* A site without a Python frame is folded without its library: found again by its call. */
static struct place *place_of_call(struct summary *summary, const char *call, const char *label)
{
	for (size_t i = 0; i < summary->place_count; i++) {
		struct place *place = summary->places[i];
		const char *tail = strrchr(place->title, ',');

		if (!tail || strcmp(tail + 1 + strspn(tail + 1, " "), call) != 0)
			continue;
		if (index_of(label, (const char *const *)place->labels.text, place->labels.count) < place->labels.count)
			return place;
	}
	return place_at(summary,
	                *call ? tool_format("?, %s", call) : tool_format("other places, too many to be told apart"));
}

static void add_folded(struct summary *summary, const struct json *record)
{
	const struct json *site = json_member(record, "site");
	const char *label = text_of(record, "label");
	uint64_t folded = json_unsigned(json_member(record, "folded"), 0), more;
	size_t kind = index_of(text_of(record, "of"), kind_names, SUMMARY_KINDS);
	size_t action = index_of(text_of(record, "action"), action_names, SUMMARY_ACTIONS);
	char *where = site && site->type == JSON_OBJECT ? frame_text(site) : NULL;
	struct place *place;
	struct fold *fold;
	bool new;

	fold = find(&summary->folds,
	            tool_format("%s|%llu|%s|%s|%s|%s|%s|%s|%llu|%s", text_of(record, "host"),
	                        (unsigned long long)json_unsigned(json_member(record, "pid"), 0), text_of(record, "of"),
	                        text_of(record, "action"), text_of(record, "api"), text_of(record, "outer_api"),
	                        text_of(record, "kernel"), label,
	                        (unsigned long long)json_unsigned(json_member(record, "handle"), 0), where ? where : ""),
	            sizeof(*fold), &new);
	/* A total that went down is another process with the same number. */
	more = folded >= fold->folded ? folded - fold->folded : folded;
	fold->folded = folded;
	place = where ? place_at(summary, where) : place_of_call(summary, call_of(record), label);
	/* Sites beyond the shim's table are folded together, whatever they were: most likely what the tool is for. */
	place->kinds[kind < SUMMARY_KINDS ? kind : SUMMARY_VIOLATION] += more;
	if (kind >= SUMMARY_KINDS || kind == SUMMARY_VIOLATION)
		place->actions[action < SUMMARY_ACTIONS ? action : SUMMARY_LOGGED] += more;
	place->folded += more;
	names_add(&place->labels, label);
	names_add(&place->calls, call_of(record));
	add_time(place, text_of(record, "time"));
}

static void add_end(struct summary *summary, const struct json *record)
{
	names_add(&summary->unseen, text_of(record, "not_seen"));
	summary->ends.suppressed += json_unsigned(json_member(record, "suppressed"), 0);
	summary->ends.unverified += json_unsigned(json_member(record, "unverified"), 0);
	summary->ends.lost += json_unsigned(json_member(record, "log_lost"), 0);
}

static void note_writer(struct summary *summary, const struct json *record, bool ended)
{
	bool new;
	struct writer *writer = find(&summary->writers,
	                             tool_format("%s|%llu", text_of(record, "host"),
	                                         (unsigned long long)json_unsigned(json_member(record, "pid"), 0)),
	                             sizeof(*writer), &new);

	summary->writer_count += new;
	summary->ended_count += ended && !writer->ended;
	writer->ended |= ended;
}

struct summary *summary_create(void)
{
	return must(calloc(1, sizeof(struct summary)));
}

static void free_thing(void *thing)
{
	free(*(char **)thing);
	free(thing);
}

static void free_node(void *thing)
{
	struct node *node = thing;

	names_free(&node->place.calls);
	names_free(&node->place.kernels);
	names_free(&node->place.candidates);
	names_free(&node->place.stores);
	names_free(&node->place.labels);
	names_free(&node->place.libraries);
	names_free(&node->place.sites);
	names_free(&node->place.ranks);
	free_thing(node);
}

void summary_destroy(struct summary *summary)
{
	if (!summary)
		return;
	tdestroy(summary->nodes, free_node);
	tdestroy(summary->writers, free_thing);
	tdestroy(summary->folds, free_thing);
	names_free(&summary->unseen);
	free(summary->places);
	free(summary);
}

enum summary_answer summary_add(struct summary *summary, const struct json *record)
{
	const char *kind = text_of(record, "kind");
	size_t number = index_of(kind, kind_names, SUMMARY_KINDS);

	if (!record || record->type != JSON_OBJECT || !json_member(record, "schema"))
		return SUMMARY_NO_RECORD;
	if (json_unsigned(json_member(record, "schema"), 0) != SUMMARY_SCHEMA)
		return SUMMARY_OTHER_SCHEMA;
	if (number < SUMMARY_KINDS) {
		add_event(summary, record, (enum summary_kind)number);
	} else if (strcmp(kind, "folded") == 0) {
		add_folded(summary, record);
	} else if (strcmp(kind, "summary") == 0) {
		add_end(summary, record);
	} else {
		return SUMMARY_NO_RECORD;
	}
	note_writer(summary, record, strcmp(kind, "summary") == 0);
	return SUMMARY_TAKEN;
}

static int compare_places(const void *a, const void *b)
{
	const struct place *left = *(struct place *const *)a, *right = *(struct place *const *)b;
	int order;

	for (int kind = 0; kind < SUMMARY_KINDS; kind++) {
		if (left->kinds[kind] != right->kinds[kind])
			return left->kinds[kind] > right->kinds[kind] ? -1 : 1;
	}
	order = strcmp(left->first, right->first);
	return order ? order : strcmp(left->title, right->title);
}

struct place *const *summary_places(struct summary *summary, size_t *ret_count)
{
	if (summary->place_count)
		qsort(summary->places, summary->place_count, sizeof(struct place *), compare_places);
	*ret_count = summary->place_count;
	return summary->places;
}

uint64_t summary_total(const struct summary *summary, enum summary_kind kind)
{
	uint64_t total = 0;

	for (size_t i = 0; i < summary->place_count; i++)
		total += summary->places[i]->kinds[kind];
	return total;
}

uint64_t summary_denied(const struct summary *summary)
{
	uint64_t total = 0;

	for (size_t i = 0; i < summary->place_count; i++)
		total += summary->places[i]->actions[SUMMARY_DENIED];
	return total;
}

const struct summary_ends *summary_ends(const struct summary *summary)
{
	return &summary->ends;
}

const struct names *summary_unseen(const struct summary *summary)
{
	return &summary->unseen;
}

void summary_processes(const struct summary *summary, size_t *ret_seen, size_t *ret_ended)
{
	*ret_seen = summary->writer_count;
	*ret_ended = summary->ended_count;
}
