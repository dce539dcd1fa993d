/*
 * Tokens of PTX text. The text may be hostile and need not be terminated; a NUL byte ends it.
 */
#ifndef CUCONST_KERNELS_PTX_LEX_H
#define CUCONST_KERNELS_PTX_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptxa_slice {
	const char *text;
	uint32_t length;
};

bool ptxa_slice_is(struct ptxa_slice slice, const char *word);
bool ptxa_slice_same(struct ptxa_slice left, struct ptxa_slice right);

enum ptxa_token_kind {
	PTX_TOKEN_END,
	PTX_TOKEN_WORD,   /* a name, '%' and '$' included */
	PTX_TOKEN_DOT,    /* '.' and a word: a directive or a modifier; the slice is without the dot */
	PTX_TOKEN_NUMBER, /* integer, or the bits of a float */
	PTX_TOKEN_STRING,
	PTX_TOKEN_MARK, /* one character */
	PTX_TOKEN_BAD,  /* no PTX: an open comment or string, a character out of place */
};

struct ptxa_token {
	enum ptxa_token_kind kind;
	char mark;
	uint32_t line;
	struct ptxa_slice slice;
	uint64_t number;
};

/* A copy of a lexer is a place to come back to. */
struct ptxa_lexer {
	const char *at, *end;
	uint32_t line;
	struct ptxa_token token; /* the current one */
};

/* The first token is read. */
void ptxa_lex_start(struct ptxa_lexer *lexer, const char *text, size_t bytes);
void ptxa_lex_next(struct ptxa_lexer *lexer);
/* Drops the rest of the current token's line: .loc and .file have no other end. */
void ptxa_lex_next_line(struct ptxa_lexer *lexer);

/* From an opening brace to behind its partner, without making tokens of what lies between. False when there is no partner. */
bool ptxa_lex_skip_body(struct ptxa_lexer *lexer);

static inline bool ptxa_lex_is(const struct ptxa_lexer *lexer, char mark)
{
	return lexer->token.kind == PTX_TOKEN_MARK && lexer->token.mark == mark;
}

static inline bool ptxa_lex_dot(const struct ptxa_lexer *lexer, const char *word)
{
	return lexer->token.kind == PTX_TOKEN_DOT && ptxa_slice_is(lexer->token.slice, word);
}

/* Skips the mark when it is the current token. */
bool ptxa_lex_take(struct ptxa_lexer *lexer, char mark);

#endif
