#include "shim/report/demangle.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/report/buffer.h"

typedef char *(*demangle_fn)(const char *name, char *buffer, size_t *length, int *status);

static _Atomic uintptr_t run_time;

/*
 * RTLD_NOLOAD answers for a library that is there, in whatever scope (Python extensions load it locally), and loads
 * nothing. The handle is kept, so that the function stays.
 */
static demangle_fn find_run_time(void)
{
	uintptr_t found = atomic_load_explicit(&run_time, memory_order_relaxed);
	void *handle;

	if (found)
		return (demangle_fn)found;
	handle = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return NULL;
	found = (uintptr_t)dlvsym(handle, "__cxa_demangle", "CXXABI_1.3");
	atomic_store_explicit(&run_time, found, memory_order_relaxed);
	return (demangle_fn)found;
}

/* <source-name>: a length and as many characters. Returns what is behind it, NULL when it is not one. */
static const char *source_name(const char *at, const char **ret_name, size_t *ret_length)
{
	size_t length = 0;

	if (*at < '1' || *at > '9')
		return NULL;
	for (; *at >= '0' && *at <= '9'; at++) {
		length = length * 10 + (size_t)(*at - '0');
		if (length > 4096)
			return NULL;
	}
	if (strnlen(at, length) < length)
		return NULL;
	*ret_name = at;
	*ret_length = length;
	return at + length;
}

static const char *skip_group(const char *at, unsigned depth);

/* `tag`, digits or capitals, '_': substitutions (S1A_), parameters (T0_), lambda numbers. */
static const char *skip_sequence(const char *at)
{
	at += strspn(at, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	return *at == '_' ? at + 1 : NULL;
}

/* Behind a literal: L, its type, its value, E. */
static const char *skip_literal(const char *at, unsigned depth)
{
	const char *name;
	size_t length;

	at++;
	if (*at == 'N')
		at = skip_group(at, depth + 1);
	else if (*at >= '1' && *at <= '9')
		at = source_name(at, &name, &length);
	else
		at = *at >= 'a' && *at <= 'z' ? at + 1 : NULL;
	if (!at)
		return NULL;
	at += strspn(at, "n0123456789abcdef");
	return *at == 'E' ? at + 1 : NULL;
}

/* Behind one piece of a type or an argument; NULL for what this does not follow (expressions, above all). */
static const char *skip_piece(const char *at, unsigned depth)
{
	const char *name;
	size_t length;

	if (*at >= '1' && *at <= '9')
		return source_name(at, &name, &length);
	switch (*at) {
	case 'I':
	case 'N':
	case 'J':
	case 'F':
		return skip_group(at, depth + 1);
	case 'L':
		return skip_literal(at, depth);
	case 'S':
		return at[1] >= 'a' && at[1] <= 'z' ? at + 2 : skip_sequence(at + 1);
	case 'T':
		return skip_sequence(at + 1);
	case 'A':
		return skip_sequence(at + 1);
	case 'U':
		if (at[1] == 't')
			return skip_sequence(at + 2);
		if (at[1] != 'l')
			return at + 1;
		at = skip_group(at + 1, depth + 1);
		return at ? skip_sequence(at) : NULL;
	case 'D':
		return at[1] == 'n' || at[1] == 'p' || at[1] == 'a' || at[1] == 'h' ? at + 2 : NULL;
	case 'X':
		return NULL;
	default:
		return (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ? at + 1 : NULL;
	}
}

/* Behind the E that closes what opens at `at`. */
static const char *skip_group(const char *at, unsigned depth)
{
	if (depth > 32)
		return NULL;
	at++;
	while (at && *at != 'E')
		at = skip_piece(at, depth);
	return at ? at + 1 : NULL;
}

bool demangle_short(const char *name, char *out, size_t size)
{
	const char *at, *part;
	char text[1024];
	struct buffer buf = buffer_over(text, sizeof(text));
	size_t length, parts = 0;
	bool nested, arguments = false, done = false;

	if (!name || !size || strncmp(name, "_Z", 2))
		return false;
	at = name + 2;
	nested = *at == 'N';
	if (nested)
		at += 1 + strspn(at + 1, "rVK");
	if (*at == 'S' && at[1] == 't') {
		buffer_string(&buf, "std");
		parts++;
		at += 2;
	}
	while (!done) {
		at = source_name(at + (*at == 'L'), &part, &length); /* L: internal linkage */
		if (!at && arguments)
			break; /* followed to a wrong end: see below */
		if (!at)
			return false;
		if (parts++)
			buffer_string(&buf, "::");
		if (length >= 10 && !strncmp(part, "_GLOBAL__N", 10))
			buffer_string(&buf, "(anonymous namespace)");
		else
			buffer_bytes(&buf, part, length);
		done = !nested || *at == 'E';
		if (!done && *at == 'I') {
			/*
			 * Arguments that cannot be followed are nearly always those of the function itself: the name
			 * ends here.
			 */
			at = skip_group(at, 0);
			arguments = true;
			done = !at || *at == 'E';
		}
	}
	if (buf.full)
		return false;
	length = buf.length < size ? buf.length : size - 1;
	memcpy(out, text, length);
	out[length] = '\0';
	return true;
}

bool demangle(const char *name, char *out, size_t size)
{
	demangle_fn full;
	char *text;
	int status = -1;
	size_t length;

	if (!name || !size || strncmp(name, "_Z", 2))
		return false;
	full = find_run_time();
	text = full ? full(name, NULL, NULL, &status) : NULL;
	if (!text || status) {
		free(text);
		return demangle_short(name, out, size);
	}
	length = strlen(text);
	if (length > size - 1)
		length = size - 1;
	memcpy(out, text, length);
	out[length] = '\0';
	free(text);
	return true;
}
