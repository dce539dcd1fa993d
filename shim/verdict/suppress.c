#include "shim/verdict/suppress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/report/buffer.h"
#include "shim/report/demangle.h"
#include "shim/report/report.h"

#define FILE_MAX (1u << 20)
#define NAME_SIZE 1024

enum kind { KIND_KERNEL, KIND_LIBRARY, KIND_API, KIND_LABEL, KIND_PYTHON, KINDS };

static const char *const kind_names[KINDS] = {"kernel", "library", "api", "label", "python"};

struct line {
	enum kind kind;
	const char *glob;
};

/* Immutable once published. Never freed: events may be matched at any time. */
struct list {
	char *text; /* the file's, which the lines point into */
	size_t count;
	bool kinds[KINDS]; /* which occur: the others' texts need not be made */
	struct line lines[];
};

static struct list *_Atomic current;
static _Atomic uint64_t matched;

/* One character of the glob against one byte; *ret_next is the glob behind it. */
static bool match_one(const char *glob, unsigned char byte, const char **ret_next)
{
	bool negate, hit = false;
	const char *at = glob + 1;

	*ret_next = at;
	if (*glob == '?')
		return true;
	if (*glob == '\\' && *at) {
		*ret_next = at + 1;
		return (unsigned char)*at == byte;
	}
	if (*glob != '[')
		return (unsigned char)*glob == byte;
	negate = *at == '!' || *at == '^';
	at += negate;
	do { /* a ']' in the first place stands for itself */
		unsigned char low = (unsigned char)*at, high = low;

		if (!low)
			return false;
		if (at[1] == '-' && at[2] && at[2] != ']') {
			high = (unsigned char)at[2];
			at += 2;
		}
		hit |= low <= byte && byte <= high;
		at++;
	} while (*at != ']');
	*ret_next = at + 1;
	return hit != negate;
}

bool suppress_glob(const char *glob, const char *text)
{
	const char *star = NULL, *resume = NULL, *next;

	while (*text) {
		if (*glob == '*') {
			star = ++glob;
			resume = text;
		} else if (*glob && match_one(glob, (unsigned char)*text, &next)) {
			glob = next;
			text++;
		} else if (star) { /* only the last star needs to give: earlier ones matched as little as they could */
			glob = star;
			text = ++resume;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return !*glob;
}

static bool set_is_closed(const char *glob)
{
	for (; *glob; glob++) {
		if (*glob == '\\' && glob[1]) {
			glob++;
		} else if (*glob == '[') {
			glob += glob[1] == '!' || glob[1] == '^' ? 2 : 1;
			if (!*glob || !(glob = strchr(glob + 1, ']')))
				return false;
		}
	}
	return true;
}

struct parser {
	const char *path;
	unsigned number;
	void (*complain)(const char *message, void *data);
	void *data;
};

static void complain(const struct parser *parser, const char *what, const char *word)
{
	char text[1024];
	struct buffer buf = buffer_over(text, sizeof(text) - 1);

	if (!parser->complain)
		return;
	buffer_plain(&buf, parser->path, 512);
	buffer_string(&buf, ":");
	buffer_unsigned(&buf, parser->number);
	buffer_string(&buf, ": ");
	buffer_string(&buf, what);
	if (word) {
		buffer_string(&buf, " \"");
		buffer_plain(&buf, word, 64);
		buffer_string(&buf, "\"");
	}
	text[buf.length] = '\0';
	parser->complain(text, parser->data);
}

static char *trim(char *text)
{
	size_t length;

	text += strspn(text, " \t\r");
	for (length = strlen(text); length && strchr(" \t\r", text[length - 1]); length--)
		;
	text[length] = '\0';
	return text;
}

static void parse_line(const struct parser *parser, char *text, struct list *list)
{
	char *colon, *kind = trim(text);
	size_t i;

	if (!*kind || *kind == '#')
		return;
	colon = strchr(kind, ':');
	if (!colon) {
		complain(parser, "needs kind:glob, not", kind);
		return;
	}
	*colon = '\0';
	kind = trim(kind);
	for (i = 0; i < KINDS && strcmp(kind, kind_names[i]); i++)
		;
	if (i == KINDS) {
		complain(parser, "kinds are kernel, library, api, label and python, not", kind);
		return;
	}
	text = trim(colon + 1);
	if (!*text) {
		complain(parser, "the glob is missing", NULL);
		return;
	}
	if (!set_is_closed(text)) {
		complain(parser, "a ']' is missing in", text);
		return;
	}
	if (i == KIND_PYTHON && !strchr(text, ':') && !strchr(text, '*')) {
		complain(parser, "python needs file.py:function, not", text);
		return;
	}
	list->kinds[i] = true;
	list->lines[list->count++] = (struct line){.kind = (enum kind)i, .glob = text};
}

/* The file's bytes with a terminator, for ever: globs point into them. *ret_end is where the terminator stands. */
static int read_file(const char *path, char **ret_text, char **ret_end)
{
	struct stat st;
	char *text;
	size_t used = 0;
	ssize_t got;
	int error = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		error = -errno;
	else if (!S_ISREG(st.st_mode))
		error = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	else if (st.st_size > FILE_MAX)
		error = -EFBIG;
	text = error ? NULL : malloc((size_t)st.st_size + 1);
	if (!error && !text)
		error = -ENOMEM;
	while (!error && used < (size_t)st.st_size) {
		got = read(fd, text + used, (size_t)st.st_size - used);
		if (got < 0 && errno != EINTR)
			error = -errno;
		if (got == 0)
			break;
		used += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	if (error) {
		free(text);
		return error;
	}
	text[used] = '\0';
	*ret_text = text;
	*ret_end = text + used;
	return 0;
}

int suppress_load(const char *path, void (*complain_fn)(const char *message, void *data), void *data)
{
	struct parser parser = {.path = path, .complain = complain_fn, .data = data};
	char *text = NULL, *end = NULL, *next;
	struct list *list;
	size_t lines = 1;
	int error = read_file(path, &text, &end);

	if (error)
		return error;
	for (const char *at = text; at < end; at++)
		lines += *at == '\n';
	list = calloc(1, sizeof(*list) + lines * sizeof(*list->lines));
	if (!list) {
		free(text);
		return -ENOMEM;
	}
	list->text = text;
	for (char *line = text; line; line = next) {
		next = memchr(line, '\n', (size_t)(end - line));
		if (next)
			*next++ = '\0';
		parser.number++;
		/* strlen() reaches the end that was just made, unless the line has one of its own. */
		if (line + strlen(line) < (next ? next - 1 : end))
			complain(&parser, "a line holds a zero byte", NULL);
		else
			parse_line(&parser, line, list);
	}
	atomic_store_explicit(&current, list, memory_order_release);
	return 0;
}

static bool match_kind(const struct list *list, enum kind kind, const char *text)
{
	if (!text || !list->kinds[kind])
		return false;
	for (size_t i = 0; i < list->count; i++)
		if (list->lines[i].kind == kind && suppress_glob(list->lines[i].glob, text))
			return true;
	return false;
}

static bool match_site(const struct list *list, const struct site *site)
{
	if (!site)
		return false;
	if (list->kinds[KIND_LIBRARY] && match_kind(list, KIND_LIBRARY, site_library(site)))
		return true;
	for (int i = 0; list->kinds[KIND_PYTHON] && i < site->python_count; i++) {
		const char *slash = strrchr(site->python[i].file, '/');
		char text[NAME_SIZE];
		struct buffer buf = buffer_over(text, sizeof(text) - 1);

		buffer_string(&buf, site->python[i].file);
		buffer_string(&buf, ":");
		buffer_string(&buf, site->python[i].function);
		text[buf.length] = '\0';
		if (buf.full)
			continue;
		if (match_kind(list, KIND_PYTHON, text))
			return true;
		if (slash && match_kind(list, KIND_PYTHON, text + (slash + 1 - site->python[i].file)))
			return true;
	}
	return false;
}

bool suppress_test(const struct report_event *event)
{
	const struct list *list = atomic_load_explicit(&current, memory_order_acquire);
	const struct report_kernel *kernel = event->kernel;
	char name[NAME_SIZE];

	if (!list || !list->count)
		return false;
	if (match_kind(list, KIND_API, event->api) || match_kind(list, KIND_API, event->outer_api) ||
	    match_kind(list, KIND_LABEL, event->range ? event->range->label : NULL) || match_site(list, event->site))
		return true;
	if (!kernel)
		return false;
	if (match_kind(list, KIND_API, kernel->api) || match_kind(list, KIND_KERNEL, kernel->name) ||
	    match_site(list, &kernel->site))
		return true;
	return list->kinds[KIND_KERNEL] && demangle(kernel->name, name, sizeof(name)) &&
	       match_kind(list, KIND_KERNEL, name);
}

bool suppress_match(const struct report_event *event)
{
	bool match = suppress_test(event);

	if (match)
		atomic_fetch_add_explicit(&matched, 1, memory_order_relaxed);
	return match;
}

uint64_t suppress_count(void)
{
	return atomic_load_explicit(&matched, memory_order_relaxed);
}

void suppress_postfork_child(void)
{
	atomic_store(&matched, 0);
}
