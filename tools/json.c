#include "tools/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES 16384

/* Values and strings are cut from chunks and freed together. */
struct chunk {
	struct chunk *next;
	size_t used, room;
	_Alignas(16) char bytes[];
};

struct json_document {
	struct chunk *chunks;
	const struct json *root;
};

struct reader {
	struct json_document *document;
	const char *at, *end;
	const char *error;
	int code;
	int depth;
};

static void *take(struct reader *reader, size_t bytes)
{
	struct chunk *chunk = reader->document->chunks;
	size_t need = (bytes + 15) & ~(size_t)15;

	if (!chunk || chunk->room - chunk->used < need) {
		size_t room = need > CHUNK_BYTES ? need : CHUNK_BYTES;

		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk) {
			reader->code = -ENOMEM;
			return NULL;
		}
		*chunk = (struct chunk){.next = reader->document->chunks, .room = room};
		reader->document->chunks = chunk;
	}
	chunk->used += need;
	return chunk->bytes + chunk->used - need;
}

static bool fail(struct reader *reader, const char *error)
{
	if (reader->code == 0) {
		reader->code = -EINVAL;
		reader->error = error;
	}
	return false;
}

static void skip_space(struct reader *reader)
{
	while (reader->at < reader->end &&
	       (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n' || *reader->at == '\r'))
		reader->at++;
}

static bool next_is(struct reader *reader, char byte)
{
	if (reader->at == reader->end || *reader->at != byte)
		return false;
	reader->at++;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The four digits behind \u, or -1. */
static int32_t read_unit(struct reader *reader)
{
	int32_t unit = 0;

	if (reader->end - reader->at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(*reader->at++);

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

static char *put_utf8(char *out, uint32_t code)
{
	if (code < 0x80) {
		*out++ = (char)code;
	} else if (code < 0x800) {
		*out++ = (char)(0xc0 | code >> 6);
		*out++ = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		*out++ = (char)(0xe0 | code >> 12);
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
		*out++ = (char)(0x80 | (code & 0x3f));
	} else {
		*out++ = (char)(0xf0 | code >> 18);
		*out++ = (char)(0x80 | (code >> 12 & 0x3f));
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
		*out++ = (char)(0x80 | (code & 0x3f));
	}
	return out;
}

/* Behind a backslash. Returns the new end of the output, or NULL. */
static char *read_escape(struct reader *reader, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;
	int32_t unit, low;

	if (reader->at == reader->end)
		return NULL;
	found = *reader->at ? strchr(from, *reader->at) : NULL;
	if (found) {
		reader->at++;
		*out++ = to[found - from];
		return out;
	}
	if (!next_is(reader, 'u'))
		return NULL;
	unit = read_unit(reader);
	if (unit < 0 || (unit >= 0xdc00 && unit <= 0xdfff))
		return NULL;
	if (unit < 0xd800 || unit > 0xdbff)
		return put_utf8(out, (uint32_t)unit);
	if (!next_is(reader, '\\') || !next_is(reader, 'u'))
		return NULL;
	low = read_unit(reader);
	if (low < 0xdc00 || low > 0xdfff)
		return NULL;
	return put_utf8(out, 0x10000 + (((uint32_t)unit - 0xd800) << 10) + ((uint32_t)low - 0xdc00));
}

/* The length of the UTF-8 sequence at `at`, 0 when it is none (overlong, a surrogate, beyond U+10FFFF, cut off). */
static int sequence_length(const unsigned char *at, size_t left)
{
	int length = at[0] < 0x80                    ? 1
	             : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
	             : (at[0] & 0xf0) == 0xe0        ? 3
	             : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
	                                             : 0;

	if (length == 0 || (size_t)length > left)
		return 0;
	for (int i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf0 && at[1] < 0x90) ||
	    (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return length;
}

/* Behind the opening quote. An escape is never shorter than what it stands for, so the room needed is known before. */
static bool read_text(struct reader *reader, const char **ret_text, size_t *ret_length)
{
	const char *close = reader->at;
	char *text, *out;

	while (close < reader->end && *close != '"')
		close += *close == '\\' && close + 1 < reader->end ? 2 : 1;
	if (close == reader->end)
		return fail(reader, "a string is not closed");
	text = out = take(reader, (size_t)(close - reader->at) + 1);
	if (!text)
		return false;
	while (reader->at < close) {
		unsigned char byte = (unsigned char)*reader->at;
		int length;

		if (byte == '\\') {
			reader->at++;
			out = read_escape(reader, out);
			if (!out)
				return fail(reader, "a wrong escape in a string");
			continue;
		}
		if (byte < 0x20)
			return fail(reader, "a control character in a string");
		length = sequence_length((const unsigned char *)reader->at, (size_t)(close - reader->at));
		if (length == 0)
			return fail(reader, "a string is not UTF-8");
		memcpy(out, reader->at, (size_t)length);
		reader->at += length;
		out += length;
	}
	reader->at = close + 1;
	*out = '\0';
	*ret_text = text;
	*ret_length = (size_t)(out - text);
	return true;
}

static bool digits(struct reader *reader)
{
	const char *start = reader->at;

	while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9')
		reader->at++;
	return reader->at > start;
}

static bool read_number(struct reader *reader, struct json *value)
{
	const char *start = reader->at;
	char *text;

	next_is(reader, '-');
	if (!next_is(reader, '0') && !digits(reader))
		return fail(reader, "a wrong number");
	if (next_is(reader, '.') && !digits(reader))
		return fail(reader, "a wrong number");
	if (next_is(reader, 'e') || next_is(reader, 'E')) {
		if (!next_is(reader, '+'))
			next_is(reader, '-');
		if (!digits(reader))
			return fail(reader, "a wrong number");
	}
	value->type = JSON_NUMBER;
	value->length = (size_t)(reader->at - start);
	text = take(reader, value->length + 1);
	if (!text)
		return false;
	memcpy(text, start, value->length);
	text[value->length] = '\0';
	value->text = text;
	return true;
}

static bool read_word(struct reader *reader, struct json *value)
{
	static const struct {
		const char *word;
		enum json_type type;
	} words[] = {{"null", JSON_NULL}, {"true", JSON_TRUE}, {"false", JSON_FALSE}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t length = strlen(words[i].word);

		if ((size_t)(reader->end - reader->at) >= length && memcmp(reader->at, words[i].word, length) == 0) {
			reader->at += length;
			value->type = words[i].type;
			return true;
		}
	}
	return fail(reader, "not a value");
}

static struct json *read_value(struct reader *reader, const char *key);

static bool read_members(struct reader *reader, struct json *parent, char close)
{
	const struct json **link = &parent->first;

	skip_space(reader);
	if (next_is(reader, close))
		return true;
	while (true) {
		const char *key = NULL;
		struct json *member;
		size_t length;

		skip_space(reader);
		if (parent->type == JSON_OBJECT) {
			if (!next_is(reader, '"'))
				return fail(reader, "a member without a name");
			if (!read_text(reader, &key, &length))
				return false;
			skip_space(reader);
			if (!next_is(reader, ':'))
				return fail(reader, "a name without a value");
		}
		member = read_value(reader, key);
		if (!member)
			return false;
		*link = member;
		link = &member->next;
		parent->length++;
		skip_space(reader);
		if (next_is(reader, close))
			return true;
		if (!next_is(reader, ','))
			return fail(reader, "a comma or an end is missing");
	}
}

static bool read_nested(struct reader *reader, struct json *value, enum json_type type, char close)
{
	bool good;

	if (reader->depth == JSON_DEPTH) {
		reader->code = -E2BIG;
		return false;
	}
	value->type = type;
	reader->depth++;
	good = read_members(reader, value, close);
	reader->depth--;
	return good;
}

static struct json *read_value(struct reader *reader, const char *key)
{
	struct json *value = take(reader, sizeof(*value));
	bool good;

	if (!value)
		return NULL;
	*value = (struct json){.key = key};
	skip_space(reader);
	if (next_is(reader, '{')) {
		good = read_nested(reader, value, JSON_OBJECT, '}');
	} else if (next_is(reader, '[')) {
		good = read_nested(reader, value, JSON_ARRAY, ']');
	} else if (next_is(reader, '"')) {
		value->type = JSON_STRING;
		good = read_text(reader, &value->text, &value->length);
	} else if (reader->at < reader->end && (*reader->at == '-' || (*reader->at >= '0' && *reader->at <= '9'))) {
		good = read_number(reader, value);
	} else {
		good = read_word(reader, value);
	}
	return good ? value : NULL;
}

int json_read(const char *text, size_t length, struct json_document **ret_document, const char **ret_error)
{
	struct json_document *document = calloc(1, sizeof(*document));
	struct reader reader = {.document = document, .at = text, .end = text + length};

	if (!document)
		return -ENOMEM;
	document->root = read_value(&reader, NULL);
	skip_space(&reader);
	if (document->root && reader.at != reader.end)
		fail(&reader, "something follows the value");
	if (reader.code == 0) {
		*ret_document = document;
		return 0;
	}
	if (reader.code == -EINVAL && ret_error)
		*ret_error = reader.error;
	json_free(document);
	return reader.code;
}

const struct json *json_root(const struct json_document *document)
{
	return document->root;
}

void json_free(struct json_document *document)
{
	if (!document)
		return;
	while (document->chunks) {
		struct chunk *chunk = document->chunks;

		document->chunks = chunk->next;
		free(chunk);
	}
	free(document);
}

const struct json *json_member(const struct json *value, const char *key)
{
	if (!value || value->type != JSON_OBJECT)
		return NULL;
	for (const struct json *member = value->first; member; member = member->next) {
		if (strcmp(member->key, key) == 0)
			return member;
	}
	return NULL;
}

const char *json_string(const struct json *value, const char *fallback)
{
	return value && value->type == JSON_STRING ? value->text : fallback;
}

uint64_t json_unsigned(const struct json *value, uint64_t fallback)
{
	uint64_t number = 0;

	if (!value || value->type != JSON_NUMBER)
		return fallback;
	for (const char *at = value->text; *at; at++) {
		if (*at < '0' || *at > '9' || __builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
			return fallback;
	}
	return number;
}

double json_double(const struct json *value, double fallback)
{
	return value && value->type == JSON_NUMBER ? strtod(value->text, NULL) : fallback;
}
