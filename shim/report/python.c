#include "shim/report/python.h"

#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/hook_state.h"
#include "shim/report/buffer.h"
#include "shim/report/peek.h"
#include "shim/report/python_layout.h"
#include "shim/report/report.h"

#define TEXT_POINTS 1024 /* code points of a name that are kept */
#define TEXT_SIZE (TEXT_POINTS * 4 + 4)
#define SKIPPED_MAX 64 /* frames in a row that are not Python code: more is not a stack */
#define DEEP 512       /* frames looked at for one that belongs to no library */
#define CACHE 1024
#define TABLE 4096           /* bytes of a line table that are copied to the stack, larger ones to the heap */
#define TABLE_MAX (64 << 20) /* no code object has a larger one */
#define ASK_CYCLES (UINT64_C(1) << 22)
#define NOT_PYTHON 3 /* owners from here on are the interpreter's or C's */

/* What is known of the interpreter; fixed once found. */
struct interpreter {
	void *(*this_thread)(void); /* PyGILState_GetThisThreadState: no GIL, NULL in a thread without Python */
	int (*finalizing)(void);
	int (*holds_lock)(void); /* PyGILState_Check; may be NULL */
	uintptr_t code_type, text_type, bytes_type;
	uint32_t version;
	struct python_layout layout;
};

enum { NOT_FOUND, PUBLISHING, FOUND, UNUSABLE };

static void *(*_Atomic resolver)(const char *symbol)HOOK_DATA;
static struct interpreter interpreter HOOK_DATA;
static _Atomic int found_state HOOK_DATA;
/*
 * The first walk that met nothing but objects of the right types has shown that the layout is right: from then on
 * memory is read directly.
 */
static _Atomic bool trusted;

/*
 * Names of a code object. Code objects die and their addresses are used again, so an entry holds only for the same
 * filename object, name object, first line and texts: it spares the interning. Each entry is guarded by a sequence
 * number, odd while it is written; every member is atomic, so a torn read is seen, not undefined.
 */
static struct {
	_Atomic uint32_t sequence;
	_Atomic int first_line;
	_Atomic uintptr_t code, filename, name;
	const char *_Atomic file;
	const char *_Atomic function;
} cache[CACHE];

void site_set_resolver(void *(*lookup)(const char *symbol))
{
	atomic_store(&resolver, lookup);
}

/* "3.10.13 (main, ...)" as PY_VERSION_HEX without its last byte; 0 when it is not that. */
static uint32_t parse_version(const char *text)
{
	uint32_t hex = 0;

	for (int part = 0; part < 2; part++) {
		uint32_t number = 0;

		if (*text < '0' || *text > '9')
			return 0;
		for (; *text >= '0' && *text <= '9'; text++)
			number = number * 10 + (uint32_t)(*text - '0');
		if (number > 255 || *text++ != '.')
			return 0;
		hex = hex << 8 | number;
	}
	return hex << 16;
}

static uint32_t find_version(void *(*lookup)(const char *))
{
	const unsigned long *number = lookup("Py_Version"); /* 3.11 */
	const char *(*text)(void);

	if (number)
		return (uint32_t)*number;
	text = (const char *(*)(void))(uintptr_t)lookup("Py_GetVersion");
	return text ? parse_version(text()) : 0;
}

static int read_loads(struct dl_phdr_info *info, size_t size, void *data)
{
	*(uint64_t *)data = info->dlpi_adds;
	return 1;
}

/*
 * Py_IsInitialized, or NULL. Looking through every library's symbols is not for every launch of a program without
 * Python: once it was absent, it is looked for again when something more was loaded. To ask for that takes the loader's
 * lock, so it is done every millisecond or two, or `now`: it takes an interpreter longer to start once it is loaded.
 */
static void *find_initialized(void *(*lookup)(const char *), bool now)
{
	static _Atomic uint64_t absent; /* this many objects had been loaded then; 0: not looked for yet */
	static _Atomic uint64_t asked;  /* when, in cycles */
	uint64_t loads = 0, cycles = __builtin_ia32_rdtsc();
	void *found;

	if (!now && cycles - atomic_load_explicit(&asked, memory_order_relaxed) < ASK_CYCLES &&
	    atomic_load_explicit(&absent, memory_order_relaxed))
		return NULL;
	atomic_store_explicit(&asked, cycles, memory_order_relaxed);
	dl_iterate_phdr(read_loads, &loads);
	if (loads == atomic_load_explicit(&absent, memory_order_relaxed))
		return NULL;
	found = lookup("Py_IsInitialized");
	if (!found)
		atomic_store_explicit(&absent, loads, memory_order_relaxed);
	return found;
}

/* FOUND, UNUSABLE, or NOT_FOUND: there is no interpreter yet. */
static int find(struct interpreter *ret, bool now)
{
	void *(*lookup)(const char *) = atomic_load(&resolver);
	int (*initialized)(void);

	if (!lookup)
		return NOT_FOUND;
	initialized = (int (*)(void))(uintptr_t)find_initialized(lookup, now);
	if (!initialized || !initialized())
		return NOT_FOUND;
	ret->this_thread = (void *(*)(void))(uintptr_t)lookup("PyGILState_GetThisThreadState");
	ret->finalizing = (int (*)(void))(uintptr_t)lookup("Py_IsFinalizing"); /* 3.13 */
	if (!ret->finalizing)
		ret->finalizing = (int (*)(void))(uintptr_t)lookup("_Py_IsFinalizing");
	ret->holds_lock = (int (*)(void))(uintptr_t)lookup("PyGILState_Check");
	ret->code_type = (uintptr_t)lookup("PyCode_Type");
	ret->text_type = (uintptr_t)lookup("PyUnicode_Type");
	ret->bytes_type = (uintptr_t)lookup("PyBytes_Type");
	ret->version = find_version(lookup);
	if (!ret->this_thread || !ret->code_type || !ret->text_type || !ret->bytes_type || !ret->version ||
	    !python_layout_find(ret->version, lookup("_PyRuntime"), &ret->layout))
		return UNUSABLE;
	return FOUND;
}

static void say_unusable(uint32_t version)
{
	report_note("Python lines are not available: the frames of CPython %u.%u cannot be read", version >> 24,
	            version >> 16 & 255);
}

/* Looked for again as long as there is none: Python may be loaded late. `room` is for one that another thread is publishing. */
static __attribute__((noinline)) const struct interpreter *look_for(struct interpreter *room, bool now)
{
	int state = find(room, now), none = NOT_FOUND;

	if (state != NOT_FOUND && atomic_compare_exchange_strong(&found_state, &none, PUBLISHING)) {
		interpreter = *room;
		atomic_store_explicit(&found_state, state, memory_order_release);
		if (state == UNUSABLE)
			say_unusable(room->version);
	}
	return state == FOUND ? room : NULL;
}

bool python_known(void)
{
	return atomic_load_explicit(&found_state, memory_order_relaxed) == FOUND;
}

bool python_appeared(void)
{
	struct interpreter room;
	int state = atomic_load_explicit(&found_state, memory_order_relaxed);

	return (state == NOT_FOUND || state == PUBLISHING) && look_for(&room, true);
}

/* The interpreter, or NULL. */
static const struct interpreter *get(struct interpreter *room)
{
	int state = atomic_load_explicit(&found_state, memory_order_acquire);

	if (state == FOUND)
		return &interpreter;
	return state == UNUSABLE ? NULL : look_for(room, false);
}

struct walk {
	const struct interpreter *python;
	bool probe; /* what is read may not be there, or may go meanwhile */
};

static bool fetch(const struct walk *walk, uintptr_t at, void *out, size_t size)
{
	if (at < 4096)
		return false;
	if (walk->probe)
		return peek(at, out, size);
	memcpy(out, (const void *)at, size);
	return true;
}

static bool is_a(const struct walk *walk, uintptr_t object, uintptr_t type)
{
	uintptr_t found;

	return !(object & 7) && fetch(walk, object + walk->python->layout.type, &found, sizeof(found)) && found == type;
}

static void put_point(struct buffer *buf, uint32_t point)
{
	unsigned char text[4] = {(unsigned char)point};
	size_t more = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
	static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};

	if (point >= 0xdc80 && point <= 0xdcff) { /* a byte of a file name that is not UTF-8, as Python smuggles it */
		text[0] = (unsigned char)(point - 0xdc00);
		more = 0;
	} else if (more) {
		text[0] = (unsigned char)(lead[more] | point >> 6 * more);
		for (size_t i = 1; i <= more; i++)
			text[i] = (unsigned char)(0x80 | (point >> 6 * (more - i) & 63));
	}
	buffer_bytes(buf, (const char *)text, more + 1);
}

static void put_points(struct buffer *buf, const unsigned char *data, size_t count, unsigned kind)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t point = 0;

		memcpy(&point, data + i * kind, kind);
		put_point(buf, point);
	}
}

/*
 * The flags of a str begin with "interned", of 2 bits, 8 or 16 by version and build, all but the lowest two of them 0;
 * then kind:3, compact:1, ascii:1.
 */
static bool text_flags(uint32_t state, unsigned *ret_kind, bool *ret_ascii)
{
	static const unsigned char shifts[] = {2, 8, 16};

	for (size_t i = 0; i < sizeof(shifts); i++) {
		unsigned flags = state >> shifts[i];
		unsigned kind = flags & 7;

		if (kind == 0)
			continue;
		*ret_kind = kind;
		*ret_ascii = flags >> 4 & 1;
		return (kind == 1 || kind == 2 || kind == 4) && (flags >> 3 & 1) && (!*ret_ascii || kind == 1);
	}
	return false;
}

/*
 * A str as interned UTF-8; "?" for one of a form that is not read (not compact: not made by the compiler). NULL: not a
 * str, or not readable.
 */
static const char *read_text(const struct walk *walk, uintptr_t object)
{
	const struct python_layout *layout = &walk->python->layout;
	char text[TEXT_SIZE];
	struct buffer buf = buffer_over(text, sizeof(text) - 4);
	uint32_t state;
	int64_t length;
	uintptr_t data;
	unsigned kind;
	bool ascii;

	if (!is_a(walk, object, walk->python->text_type) ||
	    !fetch(walk, object + layout->text_state, &state, sizeof(state)) ||
	    !fetch(walk, object + layout->text_length, &length, sizeof(length)) || length < 0)
		return NULL;
	if (!text_flags(state, &kind, &ascii))
		return "?";
	data = object + (ascii ? layout->text_ascii : layout->text_compact);
	size_t points = length < TEXT_POINTS ? (size_t)length : TEXT_POINTS;
	unsigned char part[256]; /* whole points: 256 is a multiple of each kind */
	for (size_t i = 0; i < points; i += sizeof(part) / kind) {
		size_t some = points - i < sizeof(part) / kind ? points - i : sizeof(part) / kind;

		if (!fetch(walk, data + i * kind, part, some * kind))
			return NULL;
		put_points(&buf, part, some, kind);
	}
	buf.size = sizeof(text);
	if (length > TEXT_POINTS)
		buffer_string(&buf, "...");
	text[buf.length] = '\0';
	return site_intern(text);
}

struct code {
	uintptr_t object, filename, name, linetable;
	int first_line;
};

/* Does the str hold this very text? Asked of ASCII ones only; others are read anew each time. */
static bool holds(const struct walk *walk, uintptr_t object, const char *text)
{
	const struct python_layout *layout = &walk->python->layout;
	char part[256];
	uint32_t state;
	int64_t length;
	unsigned kind;
	bool ascii;

	if (!is_a(walk, object, walk->python->text_type) ||
	    !fetch(walk, object + layout->text_state, &state, sizeof(state)) ||
	    !fetch(walk, object + layout->text_length, &length, sizeof(length)) || !text_flags(state, &kind, &ascii) ||
	    !ascii || length < 0)
		return false;
	/* Both end with a zero byte. */
	if (!walk->probe)
		return !strncmp((const char *)object + layout->text_ascii, text, (size_t)length + 1);
	size_t expected = strlen(text);
	if (length != (int64_t)expected)
		return false;
	for (size_t at = 0; at < expected; at += sizeof(part)) {
		size_t size = expected - at < sizeof(part) ? expected - at : sizeof(part);

		if (!fetch(walk, object + layout->text_ascii + at, part, size) || memcmp(part, text + at, size))
			return false;
	}
	return true;
}

static bool cache_get(const struct walk *walk, const struct code *code, struct site_frame *ret_frame)
{
	size_t i = (code->object >> 4) * 0x9e3779b97f4a7c15u >> 54;
	uint32_t sequence = atomic_load_explicit(&cache[i].sequence, memory_order_acquire);
	bool same = !(sequence & 1) && atomic_load_explicit(&cache[i].code, memory_order_acquire) == code->object &&
	            atomic_load_explicit(&cache[i].filename, memory_order_acquire) == code->filename &&
	            atomic_load_explicit(&cache[i].name, memory_order_acquire) == code->name &&
	            atomic_load_explicit(&cache[i].first_line, memory_order_acquire) == code->first_line;
	const char *file = atomic_load_explicit(&cache[i].file, memory_order_acquire);
	const char *function = atomic_load_explicit(&cache[i].function, memory_order_acquire);

	/* Acquire loads above: the second look at the number cannot come before them. */
	if (!same || atomic_load_explicit(&cache[i].sequence, memory_order_relaxed) != sequence)
		return false;
	/* A new code object may have all addresses and the first line of a dead one: only the texts tell. */
	if (!holds(walk, code->filename, file) || !holds(walk, code->name, function))
		return false;
	ret_frame->file = file;
	ret_frame->function = function;
	return true;
}

static void cache_put(const struct code *code, const struct site_frame *frame)
{
	size_t i = (code->object >> 4) * 0x9e3779b97f4a7c15u >> 54;
	uint32_t sequence = atomic_load_explicit(&cache[i].sequence, memory_order_relaxed);

	if ((sequence & 1) || !atomic_compare_exchange_strong(&cache[i].sequence, &sequence, sequence + 1))
		return; /* another thread is writing here: its entry is as good */
	/* Release stores: none can come before the number is odd. */
	atomic_store_explicit(&cache[i].code, code->object, memory_order_release);
	atomic_store_explicit(&cache[i].filename, code->filename, memory_order_release);
	atomic_store_explicit(&cache[i].name, code->name, memory_order_release);
	atomic_store_explicit(&cache[i].first_line, code->first_line, memory_order_release);
	atomic_store_explicit(&cache[i].file, frame->file, memory_order_release);
	atomic_store_explicit(&cache[i].function, frame->function, memory_order_release);
	atomic_store_explicit(&cache[i].sequence, sequence + 2, memory_order_release);
}

/* Byte offset of the frame's current instruction in its code. False: not readable. */
static bool read_position(const struct walk *walk, uintptr_t frame, const struct code *code, int64_t *ret_at)
{
	const struct python_layout *layout = &walk->python->layout;
	uintptr_t position;
	int index;

	if (layout->lines == PYTHON_LINES_310) {
		if (!fetch(walk, frame + layout->frame_position, &index, sizeof(index)))
			return false;
		*ret_at = (int64_t)index * 2;
		return true;
	}
	if (!fetch(walk, frame + layout->frame_position, &position, sizeof(position)))
		return false;
	*ret_at = (int64_t)(position - (code->object + layout->code_bytes));
	return true;
}

/* Of a table that may go: of a copy. 0: could not be read. */
static int line_of_copy(const struct python_layout *layout, uintptr_t table, size_t size, int first_line, int64_t at)
{
	unsigned char small[TABLE];
	unsigned char *copy = size <= sizeof(small) ? small : malloc(size);
	int line = 0;

	if (copy && peek(table, copy, size))
		line = python_line_known(layout->lines, copy, size, first_line, at);
	if (copy != small)
		free(copy);
	return line;
}

static bool read_line(const struct walk *walk, uintptr_t frame, const struct code *code, int *ret_line)
{
	const struct python_layout *layout = &walk->python->layout;
	uintptr_t table = code->linetable + layout->bytes_value;
	int64_t size, at;

	if (!is_a(walk, code->linetable, walk->python->bytes_type) ||
	    !fetch(walk, code->linetable + layout->bytes_size, &size, sizeof(size)) || size < 0 || size > TABLE_MAX ||
	    !read_position(walk, frame, code, &at))
		return false;
	if (walk->probe)
		*ret_line = line_of_copy(layout, table, (size_t)size, code->first_line, at);
	else
		*ret_line = python_line_known(layout->lines, (const unsigned char *)table, (uint64_t)size,
		                              code->first_line, at);
	return true;
}

enum frame_kind { FRAME_PYTHON, FRAME_OTHER, FRAME_WRONG };

/* What kind of frame is this, and of which code? FRAME_WRONG: memory that cannot be what the layout says. */
static enum frame_kind read_code(const struct walk *walk, uintptr_t frame, struct code *ret_code)
{
	const struct python_layout *layout = &walk->python->layout;
	struct code code;
	signed char owner = 0;

	if (layout->frame_owner && !fetch(walk, frame + layout->frame_owner, &owner, sizeof(owner)))
		return FRAME_WRONG;
	if (owner >= NOT_PYTHON)
		return FRAME_OTHER;
	if (!fetch(walk, frame + layout->frame_code, &code.object, sizeof(code.object)))
		return FRAME_WRONG;
	code.object &= ~(uintptr_t)7; /* 3.14: a tagged reference */
	if (!is_a(walk, code.object, walk->python->code_type) ||
	    !fetch(walk, code.object + layout->code_filename, &code.filename, sizeof(code.filename)) ||
	    !fetch(walk, code.object + layout->code_name, &code.name, sizeof(code.name)) ||
	    !fetch(walk, code.object + layout->code_linetable, &code.linetable, sizeof(code.linetable)) ||
	    !fetch(walk, code.object + layout->code_firstlineno, &code.first_line, sizeof(code.first_line)))
		return FRAME_WRONG;
	*ret_code = code;
	return FRAME_PYTHON;
}

static bool read_frame(const struct walk *walk, uintptr_t frame, const struct code *code, struct site_frame *ret_frame)
{
	if (!read_line(walk, frame, code, &ret_frame->line))
		return false;
	if (cache_get(walk, code, ret_frame))
		return true;
	ret_frame->file = read_text(walk, code->filename);
	ret_frame->function = read_text(walk, code->name);
	if (!ret_frame->file || !ret_frame->function)
		return false;
	cache_put(code, ret_frame);
	return true;
}

/* The innermost frame, 0 when the thread runs no Python code; false when memory is not what the layout says. */
static bool first_frame(const struct walk *walk, uintptr_t thread, uintptr_t *ret_frame)
{
	const struct python_layout *layout = &walk->python->layout;

	if (!fetch(walk, thread + layout->thread_frame, ret_frame, sizeof(*ret_frame)))
		return false;
	if (!layout->has_cframe || !*ret_frame)
		return true;
	return fetch(walk, *ret_frame + layout->cframe_frame, ret_frame, sizeof(*ret_frame));
}

/* Frames found, or -1 as soon as something is not what it must be. */
static int walk_frames(const struct walk *walk, uintptr_t thread, struct site_frame *out, int max,
                       bool (*is_library)(const char *), bool *ret_cut)
{
	uintptr_t frame;
	struct code code;
	struct site_frame deep;
	bool users = false;
	int count = 0, skipped = 0, seen = 0;

	if (!first_frame(walk, thread, &frame))
		return -1;
	while (frame) {
		switch (read_code(walk, frame, &code)) {
		case FRAME_WRONG:
			return -1;
		case FRAME_OTHER:
			if (++skipped > SKIPPED_MAX)
				return -1;
			break;
		case FRAME_PYTHON:
			*ret_cut = count == max;
			if (*ret_cut && (users || ++seen > DEEP))
				return count;
			if (!read_frame(walk, frame, &code, &deep))
				return -1;
			users |= !is_library(deep.file);
			if (count < max)
				out[count++] = deep;
			else if (users)
				out[max - 1] = deep;
			skipped = 0;
			break;
		}
		if (!fetch(walk, frame + walk->python->layout.frame_previous, &frame, sizeof(frame)))
			return -1;
	}
	return count;
}

/*
 * May the interpreter take this thread's frames away while they are read? It does so to threads without the GIL when it
 * ends, which the main thread does, and that may begin at any moment, also right after it was asked about.
 */
static bool may_vanish(const struct interpreter *python)
{
	static __thread enum { UNASKED, MAIN, OTHER } thread;

	if (thread == UNASKED)
		thread = gettid() == getpid() ? MAIN : OTHER;
	return thread == OTHER && !(python->holds_lock && python->holds_lock());
}

HOOK_HOT int python_capture(struct site_frame *out, int max, bool (*is_library)(const char *file), bool *ret_cut)
{
	struct interpreter room;
	const struct interpreter *python = get(&room);
	struct walk walk = {.python = python};
	uintptr_t thread;
	bool finalizing;
	int count;

	*ret_cut = false;
	if (!python)
		return 0;
	thread = (uintptr_t)python->this_thread();
	if (!thread)
		return 0;
	finalizing = !python->finalizing || python->finalizing();
	walk.probe = finalizing || may_vanish(python) || !atomic_load_explicit(&trusted, memory_order_relaxed);
	count = walk_frames(&walk, thread, out, max, is_library, ret_cut);
	if (count > 0 && !finalizing)
		atomic_store_explicit(&trusted, true, memory_order_relaxed);
	if (count >= 0)
		return count;
	*ret_cut = false;
	if (!finalizing && !atomic_load_explicit(&trusted, memory_order_relaxed)) {
		atomic_store(&found_state, UNUSABLE);
		say_unusable(python->version);
	}
	return 0;
}
