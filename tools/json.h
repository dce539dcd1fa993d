/*
 * A strict reader of one JSON text (RFC 8259), for logs that may come from anywhere.
 *
 * Nothing is guessed: a text is one value with nothing but white space around it, UTF-8 without errors, no comments, no
 * trailing commas, no NaN. Nesting is limited, so a hostile text cannot use up the stack; memory is at most a small
 * multiple of the text.
 */
#ifndef CUCONST_TOOLS_JSON_H
#define CUCONST_TOOLS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH 32

enum json_type { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* A value. Lives as long as its document. Escapes are resolved; strings may hold NUL bytes, and a NUL follows them. */
struct json {
	enum json_type type;
	const char *text;         /* JSON_STRING: its bytes; JSON_NUMBER: as written; else NULL */
	size_t length;            /* of text; JSON_ARRAY, JSON_OBJECT: number of members */
	const char *key;          /* of a member of an object, else NULL */
	const struct json *first; /* JSON_ARRAY, JSON_OBJECT: first member */
	const struct json *next;  /* the next member of the same parent */
};

struct json_document;

/*
 * Reads `length` bytes (no NUL needed behind them). Returns 0 and the document; -EINVAL when it is not JSON, -E2BIG
 * when it is nested deeper than JSON_DEPTH, -ENOMEM. On -EINVAL *ret_error (may be NULL) is what is wrong, static text.
 * The caller frees with json_free().
 */
int json_read(const char *text, size_t length, struct json_document **ret_document, const char **ret_error);

const struct json *json_root(const struct json_document *document);

/* NULL is fine. */
void json_free(struct json_document *document);

/*
 * The member of an object by its key; the first one if the key repeats. NULL when absent, or when `value` is NULL or no
 * object.
 */
const struct json *json_member(const struct json *value, const char *key);

/* The text of a string, else `fallback`. `value` may be NULL. */
const char *json_string(const struct json *value, const char *fallback);

/* The number when it is a whole one of 0 to 2^64 - 1, else `fallback`. `value` may be NULL. */
uint64_t json_unsigned(const struct json *value, uint64_t fallback);

/* The number as a double, else `fallback`. `value` may be NULL. */
double json_double(const struct json *value, double fallback);

#endif
