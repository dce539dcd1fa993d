/* cuconst report: what logs say, gathered by the place in the program. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/json.h"
#include "tools/lines.h"
#include "tools/summary.h"
#include "tools/tool.h"

static const char help[] =
	"usage: cuconst report [options] LOG ...\n"
	"\n"
	"Summarises logs of `cuconst run --log FILE` by the place in the program that wrote; - is standard input.\n"
	"Lines that cannot be read, the last line of a process that was killed, and records of another version are\n"
	"counted and said.\n"
	"\n"
	"  --exit-code   exit with 86 if there are violations\n"
	"  -h, --help    this text\n"
	"\n"
	"Exit codes: 0, or 66 when a file could not be read or is no log (the others are still summarised), 64 wrong command line.\n";

/* What was read and could not be used. */
struct reading {
	struct summary *summary;
	unsigned long records, garbage, other_schema, cut;
	char *first_garbage; /* where the first bad line is, and why */
	bool unreadable;     /* a log could not be opened or read, or is none */
};

static void note_garbage(struct reading *reading, const char *name, const struct lines *lines, const char *why)
{
	reading->garbage++;
	if (!reading->first_garbage)
		reading->first_garbage = tool_format("%s:%lu: %s", name, lines->number, why);
}

static void take_line(struct reading *reading, const char *name, const struct lines *lines)
{
	struct json_document *document;
	const char *why = "nested too deeply";
	int code;

	if (lines->too_long) {
		note_garbage(reading, name, lines, "longer than any record");
		return;
	}
	if (lines->length == 0)
		return;
	code = json_read(lines->text, lines->length, &document, &why);
	if (code < 0) {
		if (lines->cut && code == -EINVAL)
			reading->cut++;
		else
			note_garbage(reading, name, lines, code == -ENOMEM ? "out of memory" : why);
		return;
	}
	switch (summary_add(reading->summary, json_root(document))) {
	case SUMMARY_TAKEN:
		reading->records++;
		break;
	case SUMMARY_OTHER_SCHEMA:
		reading->other_schema++;
		break;
	case SUMMARY_NO_RECORD:
		note_garbage(reading, name, lines, "not a record");
		break;
	}
	json_free(document);
}

static void read_log(struct reading *reading, const char *name, char *room)
{
	bool standard = strcmp(name, "-") == 0;
	struct lines lines = {.file = standard ? stdin : fopen(name, "re"), .text = room};
	unsigned long garbage = reading->garbage, good = reading->records + reading->other_schema;

	if (!lines.file) {
		tool_say("%s: %s", name, strerror(errno));
		reading->unreadable = true;
		return;
	}
	errno = 0;
	while (lines_next(&lines))
		take_line(reading, name, &lines);
	if (ferror(lines.file)) {
		tool_say("%s: %s", name, strerror(errno));
		reading->unreadable = true;
	} else if (reading->garbage > garbage && reading->records + reading->other_schema == good) {
		tool_say("%s: no line is a record: is it what `cuconst run --log FILE` wrote?", name);
		reading->unreadable = true;
	}
	if (!standard)
		fclose(lines.file);
}

/* Logs hold what programs called themselves: nothing of it may steer a terminal. */
static void put_safe(const char *text)
{
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte < 0x20 || byte == 0x7f)
			printf("\\x%02x", byte);
		else if (byte == 0xc2 && (unsigned char)text[1] < 0xa0 && text[1])
			printf("\\x%02x", (unsigned char)*++text); /* U+0080 to U+009F */
		else
			putchar(byte);
	}
}

static void put_names(const char *title, const struct names *names)
{
	if (!names->count)
		return;
	printf("    %-13s", title);
	for (size_t i = 0; i < names->count; i++) {
		fputs(i ? "; " : "", stdout);
		put_safe(names->text[i]);
	}
	puts(names->more ? "; ..." : "");
}

static void put_counts(const struct place *place)
{
	static const char *const words[SUMMARY_KINDS][2] = {
		{"violation", "violations"},
		{"inconclusive check", "inconclusive checks"},
		{"free of protected memory", "frees of protected memory"},
		{"protection ended unverified", "protections ended unverified"},
	};
	const char *comma = "";

	for (int kind = 0; kind < SUMMARY_KINDS; kind++) {
		if (!place->kinds[kind])
			continue;
		printf("%s%" PRIu64 " %s", comma, place->kinds[kind], words[kind][place->kinds[kind] != 1]);
		comma = ", ";
	}
}

static void put_place(const struct place *place)
{
	static const char *const words[SUMMARY_ACTIONS] = {"logged", "denied", "stopped"};
	const char *comma = "";

	put_counts(place);
	fputs(" at ", stdout);
	put_safe(place->title);
	putchar('\n');
	put_names("wrote into", &place->labels);
	put_names("protected at", &place->sites);
	put_names("call", &place->calls);
	put_names("kernel", &place->kernels);
	put_names("stores at", &place->stores);
	put_names("or one of", &place->candidates);
	put_names("library", &place->libraries);
	if (place->kinds[SUMMARY_VIOLATION]) {
		printf("    %-13s", "action");
		for (int action = 0; action < SUMMARY_ACTIONS; action++) {
			if (place->actions[action]) {
				printf("%s%s %" PRIu64, comma, words[action], place->actions[action]);
				comma = ", ";
			}
		}
		puts(*comma ? "" : "not given");
	}
	if (place->folded)
		printf("    %-13s%" PRIu64 " of these have no record of their own\n", "folded", place->folded);
	put_names("rank", &place->ranks);
	if (*place->first) {
		printf("    %-13s", "time");
		put_safe(place->first);
		if (strcmp(place->first, place->last) != 0) {
			fputs(" to ", stdout);
			put_safe(place->last);
		}
		putchar('\n');
	}
	putchar('\n');
}

static void put_head(const struct reading *reading, int logs)
{
	uint64_t violations = summary_total(reading->summary, SUMMARY_VIOLATION);
	uint64_t frees = summary_total(reading->summary, SUMMARY_FREED);
	size_t seen, ended;

	summary_processes(reading->summary, &seen, &ended);
	printf("%" PRIu64 " violation%s (%" PRIu64 " denied), %" PRIu64 " inconclusive, %" PRIu64 " free%s, %" PRIu64
	       " ended unverified\n",
	       violations, violations == 1 ? "" : "s", summary_denied(reading->summary),
	       summary_total(reading->summary, SUMMARY_INCONCLUSIVE), frees, frees == 1 ? "" : "s",
	       summary_total(reading->summary, SUMMARY_ENDED));
	printf("%d log%s, %lu record%s, %zu process%s", logs, logs == 1 ? "" : "s", reading->records,
	       reading->records == 1 ? "" : "s", seen, seen == 1 ? "" : "es");
	if (ended < seen)
		printf(", %zu without a last line (killed, or still running)", seen - ended);
	fputs("\n\n", stdout);
}

static void put_tail(const struct reading *reading)
{
	const struct names *unseen = summary_unseen(reading->summary);
	const struct summary_ends *ends = summary_ends(reading->summary);

	if (ends->suppressed)
		printf("%" PRIu64 " suppressed\n", ends->suppressed);
	if (ends->unverified)
		printf("%" PRIu64 " checks could not be made, or had not come back at the end\n", ends->unverified);
	if (ends->lost)
		printf("%" PRIu64 " records are missing: they could not be written into the log\n", ends->lost);
	for (size_t i = 0; i < unseen->count; i++) {
		fputs("not seen in a run: ", stdout);
		put_safe(unseen->text[i]);
		putchar('\n');
	}
	if (reading->cut)
		printf("%lu last line%s cut off: the process was killed while writing, or is still writing\n",
		       reading->cut, reading->cut == 1 ? " is" : "s are");
	if (reading->other_schema)
		printf("%lu record%s of another schema version than %d %s left out: use the cuconst that wrote the log\n",
		       reading->other_schema, reading->other_schema == 1 ? "" : "s", SUMMARY_SCHEMA,
		       reading->other_schema == 1 ? "was" : "were");
	if (reading->garbage) {
		printf("%lu line%s could not be read; the first: ", reading->garbage, reading->garbage == 1 ? "" : "s");
		put_safe(reading->first_garbage);
		putchar('\n');
	}
}

static void put_all(const struct reading *reading, int logs)
{
	size_t count;
	struct place *const *places = summary_places(reading->summary, &count);

	put_head(reading, logs);
	for (size_t i = 0; i < count; i++)
		put_place(places[i]);
	put_tail(reading);
}

static int report_logs(char **names, int count, bool exit_code)
{
	struct reading reading = {.summary = summary_create()};
	char *room = malloc(LINES_MAX + 1);
	bool violations;

	if (!room) {
		tool_say("out of memory");
		return TOOL_OS_ERROR;
	}
	for (int i = 0; i < count; i++)
		read_log(&reading, names[i], room);
	put_all(&reading, count);
	violations = summary_total(reading.summary, SUMMARY_VIOLATION) > 0;
	summary_destroy(reading.summary);
	free(reading.first_garbage);
	free(room);
	if (fflush(stdout) != 0) {
		tool_say("the summary could not be written: %s", strerror(errno));
		return TOOL_OS_ERROR;
	}
	if (exit_code && violations)
		return TOOL_EXITCODE;
	return reading.unreadable ? TOOL_NO_INPUT : TOOL_OK;
}

int report_command(int argc, char **argv)
{
	static const struct option options[] = {
		{"exit-code", no_argument, NULL, 'e'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	bool exit_code = false;
	int answer;

	opterr = 0;
	optind = 0;
	while ((answer = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (answer == 'h') {
			fputs(help, stdout);
			return TOOL_OK;
		}
		if (answer != 'e')
			return tool_usage("report", "%s: unknown option, or one that takes no value", argv[optind - 1]);
		exit_code = true;
	}
	if (optind == argc)
		return tool_usage("report", "no log: cuconst report LOG ...");
	return report_logs(argv + optind, argc - optind, exit_code);
}
