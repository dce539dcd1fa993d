/*
 * Tokens of PTX text. The text may be hostile and need not be terminated; a NUL byte ends it.
 */
#ifndef CUCONST_KERNELS_PTX_LEX_H
#define CUCONST_KERNELS_PTX_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_slice {
	const char *text;
	uint32_t length;
};

bool ptx_slice_is(struct ptx_slice slice, const char *word);
bool ptx_slice_same(struct ptx_slice left, struct ptx_slice right);

enum ptx_token_kind {
	PTX_TOKEN_END,
	PTX_TOKEN_WORD,   /* a name, '%' and '$' included */
	PTX_TOKEN_DOT,    /* '.' and a word: a directive or a modifier; the slice is without the dot */
	PTX_TOKEN_NUMBER, /* integer, or the bits of a float */
	PTX_TOKEN_STRING,
	PTX_TOKEN_MARK,   /* one character */
	PTX_TOKEN_BAD,    /* no PTX: an open comment or string, a character out of place */
};

struct ptx_token {
	enum ptx_token_kind kind;
	char mark;
	uint32_t line;
	struct ptx_slice slice;
	uint64_t number;
};

/* A copy of a lexer is a place to come back to. */
struct ptx_lexer {
	const char *at, *end;
	uint32_t line;
	struct ptx_token token; /* the current one */
};

/* The first token is read. */
void ptx_lex_start(struct ptx_lexer *lexer, const char *text, size_t bytes);
void ptx_lex_next(struct ptx_lexer *lexer);
/* Drops the rest of the current token's line: .loc and .file have no other end. */
void ptx_lex_next_line(struct ptx_lexer *lexer);

static inline bool ptx_lex_is(const struct ptx_lexer *lexer, char mark)
{
	return lexer->token.kind == PTX_TOKEN_MARK && lexer->token.mark == mark;
}

static inline bool ptx_lex_dot(const struct ptx_lexer *lexer, const char *word)
{
	return lexer->token.kind == PTX_TOKEN_DOT && ptx_slice_is(lexer->token.slice, word);
}

/* Skips the mark when it is the current token. */
bool ptx_lex_take(struct ptx_lexer *lexer, char mark);

#endif
