#include "shim/verdict/options.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/hook_state.h"
#include "shim/report/buffer.h"
#include "shim/report/output.h"
#include "shim/report/site.h"

#define VALUE_MAX 4096 /* PATH_MAX: the longest value that can be right */
#define NAME_MAX_SHOWN 64

enum type { TYPE_BOOL, TYPE_NUMBER, TYPE_TEXT, TYPE_MODE, TYPE_TWINS };

struct option {
	const char *name;
	enum type type;
	size_t offset;
	uint64_t low, high; /* TYPE_NUMBER */
};

#define ROW(name, type, low, high)                                                                                     \
	{                                                                                                              \
#name, type, offsetof(struct options, name), low, high                                                 \
	}

static const struct option table[] = {
	ROW(enabled, TYPE_BOOL, 0, 0),
	ROW(mode, TYPE_MODE, 0, 0),
	ROW(twins, TYPE_TWINS, 0, 0),
	ROW(log, TYPE_TEXT, 0, 0),
	ROW(text, TYPE_BOOL, 0, 0),
	ROW(exitcode, TYPE_NUMBER, 1, 255),
	ROW(abort_on_error, TYPE_BOOL, 0, 0),
	ROW(suppressions, TYPE_TEXT, 0, 0),
	ROW(site_limit, TYPE_NUMBER, 0, UINT64_MAX),
	{"wait", TYPE_NUMBER, offsetof(struct options, wait_ms), 0, 86400000},
	{"exit_wait", TYPE_NUMBER, offsetof(struct options, exit_wait_ms), 0, 86400000},
	ROW(verify, TYPE_BOOL, 0, 0),
	ROW(store_paths, TYPE_BOOL, 0, 0),
	ROW(cache, TYPE_TEXT, 0, 0),
	ROW(names, TYPE_BOOL, 0, 0),
	ROW(color, TYPE_BOOL, 0, 0),
	ROW(help, TYPE_BOOL, 0, 0),
};

#define OPTIONS (sizeof(table) / sizeof(*table))

static const char help_text[] =
	"cuconst: options, as CUCONST_OPTIONS=\"name=value:name=value\"; a value with ':' in it goes in '...' or \"...\"\n"
	"  enabled=1          0: the shim is transparent, nothing is checked\n"
	"  mode=log           log: record; deny: refuse the call; strict: record, then end the process\n"
	"  twins=native       whose memory can have read-only twins. native: what cuMemMap maps; all: cuMemAlloc's too, served from mapped memory; off: none\n"
	"  log=               file of JSON lines; %h host, %p pid, %r rank, %t start time in seconds, %% a percent sign; default: none\n"
	"  text=1             0: no text on stderr\n"
	"  exitcode=86        status that strict ends with, 1 to 255; also of `cuconst run` when there were violations\n"
	"  abort_on_error=0   1: strict ends by abort(), for a core file\n"
	"  suppressions=      file of `kind:glob` lines; kinds kernel, library, api, label, python; default: none\n"
	"  site_limit=10      full records for each place; the rest is counted\n"
	"  wait=0             milliseconds to wait for the check after each launch; 0: never\n"
	"  exit_wait=2000     milliseconds to wait at exit for checks in flight\n"
	"  verify=1           0: judge calls by their contract only, compare no memory\n"
	"  store_paths=1      0: read no kernel's code; each may write through every pointer it is given, and none is refused\n"
	"  cache=             absolute folder for what was worked out about kernels; 0: none; default: $XDG_CACHE_HOME/cuconst or ~/.cache/cuconst\n"
	"  names=1            0: no hooks on runtime and library calls, records name the driver call only\n"
	"  color=             0 or 1; default: 1 when stderr is a terminal and NO_COLOR is not set\n"
	"  help=0             1: print this\n";

struct complaints {
	void (*complain)(const char *message, void *data);
	void *data;
	int count;
};

static const char *const mode_names[] = {[MODE_LOG] = "log", [MODE_DENY] = "deny", [MODE_STRICT] = "strict"};

#define MODES (sizeof(mode_names) / sizeof(*mode_names))

static const char *const twins_names[] = {[TWINS_NATIVE] = "native", [TWINS_ALL] = "all", [TWINS_OFF] = "off"};

#define TWINS (sizeof(twins_names) / sizeof(*twins_names))

const char *options_help(void)
{
	return help_text;
}

const char *options_mode_name(enum options_mode mode)
{
	return (size_t)mode < MODES ? mode_names[mode] : "?";
}

/* Edits to get from one word to the other, for short words; a big number for long ones. */
static unsigned distance(const char *from, const char *to)
{
	unsigned row[32];
	size_t columns = strlen(to);

	if (columns >= sizeof(row) / sizeof(*row) || strlen(from) > NAME_MAX_SHOWN)
		return 1000;
	for (size_t i = 0; i <= columns; i++)
		row[i] = (unsigned)i;
	for (size_t r = 1; from[r - 1]; r++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)r;
		for (size_t c = 1; c <= columns; c++) {
			unsigned above = row[c];
			unsigned best = diagonal + (from[r - 1] != to[c - 1]);

			if (above + 1 < best)
				best = above + 1;
			if (row[c - 1] + 1 < best)
				best = row[c - 1] + 1;
			diagonal = above;
			row[c] = best;
		}
	}
	return row[columns];
}

/* "; did you mean X?" where a word is near enough to be a slip. */
static void suggest(struct buffer *buf, const char *word, const char *(*name)(size_t), size_t count)
{
	const char *best = NULL;
	unsigned least = 3;

	for (size_t i = 0; i < count; i++) {
		unsigned d = distance(word, name(i));

		if (d < least && d < strlen(name(i))) {
			least = d;
			best = name(i);
		}
	}
	if (!best)
		return;
	buffer_string(buf, "; did you mean ");
	buffer_string(buf, best);
	buffer_string(buf, "?");
}

static const char *option_name(size_t i)
{
	return table[i].name;
}

static const char *mode_name(size_t i)
{
	return mode_names[i];
}

static const char *twins_name(size_t i)
{
	return twins_names[i];
}

static void complain_text(struct complaints *out, struct buffer *buf)
{
	/* Every message is cut to fit with room to spare; see message_start(). */
	buf->text[buf->length] = '\0';
	out->count++;
	if (out->complain)
		out->complain(buf->text, out->data);
}

static struct buffer message_start(char *text, size_t size, const char *name, const char *value)
{
	struct buffer buf = buffer_over(text, size - 1);

	buffer_string(&buf, "option ");
	buffer_plain(&buf, name, NAME_MAX_SHOWN);
	if (value) {
		buffer_string(&buf, "=");
		buffer_plain(&buf, value, NAME_MAX_SHOWN);
	}
	buffer_string(&buf, ": ");
	return buf;
}

static void complain_value(struct complaints *out, const char *name, const char *value, const char *what)
{
	char text[1024];
	struct buffer buf = message_start(text, sizeof(text), name, value);

	buffer_string(&buf, what);
	complain_text(out, &buf);
}

static bool parse_bool(const char *value, bool *ret)
{
	static const char *const words[][2] = {{"0", "1"}, {"false", "true"}, {"no", "yes"}};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		for (int truth = 0; truth < 2; truth++)
			if (!strcmp(value, words[i][truth])) {
				*ret = truth;
				return true;
			}
	return false;
}

/* Decimal digits only: strtoull would take "-1" and " 7". */
static bool parse_number(const char *value, uint64_t low, uint64_t high, uint64_t *ret)
{
	uint64_t number = 0;

	if (!*value)
		return false;
	for (; *value; value++) {
		if (*value < '0' || *value > '9' || __builtin_mul_overflow(number, 10u, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*value - '0'), &number))
			return false;
	}
	if (number < low || number > high)
		return false;
	*ret = number;
	return true;
}

static void set_number(const struct option *option, const char *value, char *field, struct complaints *out)
{
	char text[1024];
	struct buffer buf;
	uint64_t number;

	if (parse_number(value, option->low, option->high, &number)) {
		if (option->offset == offsetof(struct options, exitcode))
			*(int *)(void *)field = (int)number;
		else
			*(uint64_t *)(void *)field = number;
		return;
	}
	buf = message_start(text, sizeof(text), option->name, value);
	buffer_string(&buf, "needs a whole number");
	if (option->high != UINT64_MAX) {
		buffer_string(&buf, " from ");
		buffer_unsigned(&buf, option->low);
		buffer_string(&buf, " to ");
		buffer_unsigned(&buf, option->high);
	}
	complain_text(out, &buf);
}

/* One word of several. -1: none of them, which has been said; `needs` lists them. */
static int parse_word(const char *option, const char *value, const char *(*name)(size_t), size_t count,
                      const char *needs, struct complaints *out)
{
	char text[1024];
	struct buffer buf;

	for (size_t i = 0; i < count; i++)
		if (!strcmp(value, name(i)))
			return (int)i;
	buf = message_start(text, sizeof(text), option, value);
	buffer_string(&buf, needs);
	suggest(&buf, value, name, count);
	complain_text(out, &buf);
	return -1;
}

static void set_mode(const char *value, struct options *opt, struct complaints *out)
{
	int mode = parse_word("mode", value, mode_name, MODES, "must be log, deny or strict", out);

	if (mode >= 0)
		opt->mode = (enum options_mode)mode;
}

static void set_twins(const char *value, struct options *opt, struct complaints *out)
{
	int twins = parse_word("twins", value, twins_name, TWINS, "must be native, all or off", out);

	if (twins >= 0)
		opt->twins = (enum options_twins)twins;
}

/* Only what output.c knows may follow a percent sign. */
static void check_pattern(const char *value, struct complaints *out)
{
	for (const char *at = value; *at; at++)
		if (*at == '%') {
			if (!at[1] || !strchr("hprt%", at[1])) {
				complain_value(out, "log", value, "only %h, %p, %r, %t and %% may follow a percent sign");
				return;
			}
			at++;
		}
}

static void set_text(const struct option *option, const char *value, struct options *opt, struct complaints *out)
{
	if (!*value) {
		complain_value(out, option->name, NULL, "needs a file name");
		return;
	}
	if (option->offset == offsetof(struct options, log))
		check_pattern(value, out);
	if (option->offset == offsetof(struct options, cache) && *value != '/' && strcmp(value, "0") != 0) {
		complain_value(out, option->name, value, "must be an absolute folder, or 0");
		return;
	}
	*(const char **)(void *)((char *)opt + option->offset) = site_intern(value);
}

static void set_option(const char *name, const char *value, struct options *opt, struct complaints *out)
{
	const struct option *option = NULL;
	char text[1024];
	struct buffer buf;

	for (size_t i = 0; i < OPTIONS && !option; i++)
		if (!strcmp(name, table[i].name))
			option = &table[i];
	if (!option) {
		buf = message_start(text, sizeof(text), name, NULL);
		buffer_string(&buf, "is not known");
		suggest(&buf, name, option_name, OPTIONS);
		buffer_string(&buf, " (help=1 lists all)");
		complain_text(out, &buf);
		return;
	}
	switch (option->type) {
	case TYPE_BOOL:
		if (!parse_bool(value, (bool *)(void *)((char *)opt + option->offset)))
			complain_value(out, name, value, "must be 0 or 1");
		break;
	case TYPE_NUMBER:
		set_number(option, value, (char *)opt + option->offset, out);
		break;
	case TYPE_MODE:
		set_mode(value, opt, out);
		break;
	case TYPE_TWINS:
		set_twins(value, opt, out);
		break;
	case TYPE_TEXT:
		set_text(option, value, opt, out);
		break;
	}
}

/*
 * Copies one item's name and value and returns the text behind it. A quote may start a value and ends it; inside, every character stands for
 * itself. *ret_error says what is wrong with the item's form, NULL: nothing.
 */
static const char *split(const char *text, char *name, char *value, const char **ret_error)
{
	size_t length = strcspn(text, "=:");
	size_t used = 0;
	char quote = 0;

	*ret_error = NULL;
	*value = '\0';
	memcpy(name, text, length < NAME_MAX_SHOWN ? length : NAME_MAX_SHOWN);
	name[length < NAME_MAX_SHOWN ? length : NAME_MAX_SHOWN] = '\0';
	text += length;
	if (*text != '=') {
		*ret_error = "needs a value: name=value";
		return text;
	}
	text++;
	if (*text == '\'' || *text == '"')
		quote = *text++;
	while (*text && *text != (quote ? quote : ':')) {
		if (used < VALUE_MAX - 1)
			value[used++] = *text;
		else
			*ret_error = "the value is too long";
		text++;
	}
	value[used] = '\0';
	if (!quote)
		return text;
	if (!*text) {
		*ret_error = "the closing quote is missing";
		return text;
	}
	text++;
	if (*text && *text != ':') {
		*ret_error = "a ':' must follow the closing quote";
		text += strcspn(text, ":");
	}
	return text;
}

int options_parse(const char *text, struct options *ret, void (*complain)(const char *message, void *data), void *data)
{
	struct complaints out = {.complain = complain, .data = data};
	char name[NAME_MAX_SHOWN + 1], value[VALUE_MAX];

	*ret = (struct options){
		.enabled = true,
		.mode = MODE_LOG,
		.twins = TWINS_NATIVE,
		.text = true,
		.exitcode = 86,
		.site_limit = 10,
		.exit_wait_ms = 2000,
		.verify = true,
		.store_paths = true,
		.names = true,
		.color = isatty(STDERR_FILENO) && !secure_getenv("NO_COLOR"),
	};
	while (text && *text) {
		const char *error;

		if (*text == ':') { /* empty items: "a=1::b=2", a trailing colon */
			text++;
			continue;
		}
		text = split(text, name, value, &error);
		if (error)
			complain_value(&out, name, NULL, error);
		else
			set_option(name, value, ret, &out);
	}
	return out.count;
}

static struct options the_options HOOK_DATA __attribute__((aligned(64)));
_Atomic(const struct options *) options_known HOOK_DATA;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void complain_stderr(const char *message, void *data)
{
	char text[1280];
	struct buffer buf = buffer_over(text, sizeof(text));

	buffer_string(&buf, "cuconst: CUCONST_OPTIONS: ");
	buffer_string(&buf, message);
	buffer_string(&buf, "\n");
	output_stderr(buf.text, buf.length);
}

static void read_environment(void)
{
	int saved = errno;

	options_parse(secure_getenv("CUCONST_OPTIONS"), &the_options, complain_stderr, NULL);
	if (the_options.help)
		output_stderr(help_text, sizeof(help_text) - 1);
	atomic_store_explicit(&options_known, &the_options, memory_order_release);
	errno = saved;
}

const struct options *options_read(void)
{
	pthread_once(&once, read_environment);
	return &the_options;
}
