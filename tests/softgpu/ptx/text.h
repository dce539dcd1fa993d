/* Tokens of PTX text, and the first thing that is wrong with it. */
#ifndef SOFTGPU_PTX_TEXT_H
#define SOFTGPU_PTX_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/softgpu/ptx.h"

/* A piece of the caller's text; not terminated. */
struct slice {
	const char *at;
	size_t length;
};

enum token {
	TOKEN_END,
	TOKEN_NAME, /* identifiers, registers and special registers ("%tid.x" is one name) */
	TOKEN_DOT,  /* ".word"; word is without the dot and may hold "::" */
	TOKEN_INT,
	TOKEN_FLOAT,
	TOKEN_STRING,
	TOKEN_PUNCT, /* punct is one character, or two as PAIR(first, second) */
};

#define PAIR(first, second) ((first) << 8 | (second))

struct ptx_text {
	const char *at, *end;
	int next_line;

	enum token token;
	struct slice word;
	int punct;
	int line;      /* of the token at hand */
	uint64_t bits; /* of a TOKEN_INT; of a TOKEN_FLOAT, as .f32 when single, else as .f64 */
	bool single;

	enum ptx_status status; /* of the first failure; PTX_OK before it */
	char *log;
	size_t log_bytes;
};

void ptx_text_init(struct ptx_text *text, const char *at, size_t bytes, char *log, size_t log_bytes);

/* Moves to the next token. After a failure there is only TOKEN_END, so that every loop over tokens ends. */
void ptx_text_next(struct ptx_text *text);

/* Records the failure at the token's line unless one is recorded already. Always false. */
bool ptx_text_fail(struct ptx_text *text, enum ptx_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool ptx_text_fail_at(struct ptx_text *text, int line, enum ptx_status status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static inline bool text_is(const struct ptx_text *text, int punct)
{
	return text->token == TOKEN_PUNCT && text->punct == punct;
}

/* Takes the punctuation if it is at hand. */
bool ptx_text_take(struct ptx_text *text, int punct);
/* Takes the punctuation, or fails. */
bool ptx_text_need(struct ptx_text *text, int punct);

bool slice_is(struct slice slice, const char *string);
/* For "%.*s". */
#define SLICE(s) (int)((s).length < 80 ? (s).length : 80), (s).at

#endif
