#include "shim/kernels/ptx_lex.h"

#include <string.h>

bool ptxa_slice_is(struct ptxa_slice slice, const char *word)
{
	size_t length = strlen(word);

	return slice.length == length && memcmp(slice.text, word, length) == 0;
}

bool ptxa_slice_same(struct ptxa_slice left, struct ptxa_slice right)
{
	return left.length == right.length && memcmp(left.text, right.text, left.length) == 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool starts_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

static bool in_word(char c)
{
	return starts_word(c) || is_digit(c);
}

static char peek(const struct ptxa_lexer *lexer, size_t ahead)
{
	return (size_t)(lexer->end - lexer->at) > ahead ? lexer->at[ahead] : '\0';
}

/* False at an open comment. */
static bool skip_space(struct ptxa_lexer *lexer)
{
	while (lexer->at < lexer->end) {
		char c = *lexer->at;

		if (c == '\n') {
			lexer->line++;
			lexer->at++;
		} else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
			lexer->at++;
		} else if (c == '/' && peek(lexer, 1) == '/') {
			while (lexer->at < lexer->end && *lexer->at != '\n')
				lexer->at++;
		} else if (c == '/' && peek(lexer, 1) == '*') {
			lexer->at += 2;
			while (lexer->at < lexer->end && !(*lexer->at == '*' && peek(lexer, 1) == '/'))
				lexer->line += *lexer->at++ == '\n';
			if (lexer->at == lexer->end)
				return false;
			lexer->at += 2;
		} else {
			return true;
		}
	}
	return true;
}

static int digit_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

/* Values of floats do not matter here: decimal ones count as 0. */
static void read_number(struct ptxa_lexer *lexer, struct ptxa_token *token)
{
	int base = 10;
	char second = peek(lexer, 1);

	token->kind = PTX_TOKEN_NUMBER;
	if (*lexer->at == '0' && second != '\0' && strchr("xXfFdD", second)) {
		base = 16;
		lexer->at += 2;
	} else if (*lexer->at == '0' && (second == 'b' || second == 'B')) {
		base = 2;
		lexer->at += 2;
	} else if (*lexer->at == '0' && is_digit(second)) {
		base = 8;
	}
	while (lexer->at < lexer->end && digit_value(*lexer->at) < base)
		token->number = token->number * (uint64_t)base + (uint64_t)digit_value(*lexer->at++);
	if (base != 10)
		goto suffix;
	if (peek(lexer, 0) == '.' && is_digit(peek(lexer, 1))) {
		token->number = 0;
		lexer->at++;
		while (is_digit(peek(lexer, 0)))
			lexer->at++;
	}
	if (peek(lexer, 0) == 'e' || peek(lexer, 0) == 'E') {
		token->number = 0;
		lexer->at += peek(lexer, 1) == '-' || peek(lexer, 1) == '+' ? 2 : 1;
		while (is_digit(peek(lexer, 0)))
			lexer->at++;
	}
suffix:
	if (peek(lexer, 0) == 'U')
		lexer->at++;
	if (in_word(peek(lexer, 0)))
		token->kind = PTX_TOKEN_BAD;
}

static void read_string(struct ptxa_lexer *lexer, struct ptxa_token *token)
{
	token->kind = PTX_TOKEN_STRING;
	for (lexer->at++; lexer->at < lexer->end && *lexer->at != '"'; lexer->at++)
		if (*lexer->at == '\n')
			break;
	if (lexer->at == lexer->end || *lexer->at != '"')
		token->kind = PTX_TOKEN_BAD;
	else
		lexer->at++;
}

void ptxa_lex_next(struct ptxa_lexer *lexer)
{
	bool closed = skip_space(lexer);
	struct ptxa_token token = {.kind = closed ? PTX_TOKEN_END : PTX_TOKEN_BAD, .line = lexer->line};
	const char *start = lexer->at;

	if (lexer->at < lexer->end) {
		char c = *start;

		if (starts_word(c)) {
			token.kind = PTX_TOKEN_WORD;
			while (in_word(peek(lexer, 0)))
				lexer->at++;
			token.slice = (struct ptxa_slice){start, (uint32_t)(lexer->at - start)};
		} else if (c == '.' && in_word(peek(lexer, 1))) {
			token.kind = PTX_TOKEN_DOT;
			for (lexer->at++; in_word(peek(lexer, 0)) || peek(lexer, 0) == ':'; lexer->at++)
				if (*lexer->at == ':' && !(peek(lexer, 1) == ':' && in_word(peek(lexer, 2))))
					break;
				else if (*lexer->at == ':')
					lexer->at++;
			token.slice = (struct ptxa_slice){start + 1, (uint32_t)(lexer->at - start - 1)};
		} else if (is_digit(c)) {
			read_number(lexer, &token);
		} else if (c == '"') {
			read_string(lexer, &token);
		} else {
			token.kind = c > ' ' && c < 0x7f ? PTX_TOKEN_MARK : PTX_TOKEN_BAD;
			token.mark = c;
			lexer->at++;
		}
	}
	lexer->token = token;
}

void ptxa_lex_next_line(struct ptxa_lexer *lexer)
{
	while (lexer->token.kind != PTX_TOKEN_END && lexer->line == lexer->token.line && lexer->at < lexer->end &&
	       *lexer->at != '\n')
		lexer->at++;
	ptxa_lex_next(lexer);
}

bool ptxa_lex_skip_body(struct ptxa_lexer *lexer)
{
	uint32_t depth = 1;

	while (lexer->at < lexer->end) {
		char c = *lexer->at;

		if (c == '/' || c == '"') {
			/* Comments and strings may hold braces. */
			ptxa_lex_next(lexer);
			if (lexer->token.kind == PTX_TOKEN_BAD || lexer->token.kind == PTX_TOKEN_END)
				return false;
			depth += ptxa_lex_is(lexer, '{');
			depth -= ptxa_lex_is(lexer, '}');
		} else {
			lexer->line += c == '\n';
			depth += c == '{';
			depth -= c == '}';
			lexer->at++;
		}
		if (depth == 0) {
			ptxa_lex_next(lexer);
			return true;
		}
	}
	return false;
}

bool ptxa_lex_take(struct ptxa_lexer *lexer, char mark)
{
	if (!ptxa_lex_is(lexer, mark))
		return false;
	ptxa_lex_next(lexer);
	return true;
}

void ptxa_lex_start(struct ptxa_lexer *lexer, const char *text, size_t bytes)
{
	const char *nul = memchr(text, '\0', bytes);

	*lexer = (struct ptxa_lexer){.at = text, .end = nul ? nul : text + bytes, .line = 1};
	ptxa_lex_next(lexer);
}
