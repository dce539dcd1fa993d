/* The tool's JSON reader, with input that is right, wrong and hostile. */
#include "tools/json.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From a block of exactly this size, so that a sanitizer sees any look beyond the end. */
static int read_exact(const char *text, size_t length, struct json_document **ret_document, const char **ret_error)
{
	char *copy = malloc(length ? length : 1);
	int code;

	memcpy(copy, text, length);
	code = json_read(copy, length, ret_document, ret_error);
	free(copy);
	return code;
}

static struct json_document *good(const char *text)
{
	struct json_document *document = NULL;

	cr_assert_eq(read_exact(text, strlen(text), &document, NULL), 0, "%s", text);
	return document;
}

static void bad(const char *text, size_t length, int code, const char *error)
{
	struct json_document *document = NULL;
	const char *why = NULL;

	cr_assert_eq(read_exact(text, length, &document, &why), code, "%s", text);
	cr_assert_null(document);
	if (error)
		cr_assert_str_eq(why, error, "%s: %s", text, why);
}

Test(tool_json, values, .timeout = 10)
{
	struct json_document *document =
		good(" { \"a\" : [ 1 , -2.5e3 , true , false , null , \"x\" , { } , [ ] ] , \"b\" : 0 } \r\n");
	const struct json *list = json_member(json_root(document), "a");
	static const enum json_type types[] = {JSON_NUMBER, JSON_NUMBER, JSON_TRUE,   JSON_FALSE,
	                                       JSON_NULL,   JSON_STRING, JSON_OBJECT, JSON_ARRAY};
	size_t i = 0;

	cr_assert_eq(json_root(document)->length, 2);
	cr_assert_eq(list->length, 8);
	for (const struct json *item = list->first; item; item = item->next)
		cr_assert_eq(item->type, types[i++]);
	cr_assert_eq(i, 8);
	cr_assert_eq(json_double(list->first->next, 0), -2500.0);
	cr_assert_eq(json_unsigned(json_member(json_root(document), "b"), 7), 0);
	json_free(document);
}

Test(tool_json, members_that_are_absent_or_of_another_type, .timeout = 10)
{
	struct json_document *document = good("{\"s\":\"text\",\"n\":5,\"twice\":1,\"twice\":2}");
	const struct json *root = json_root(document);

	cr_assert_null(json_member(root, "x"));
	cr_assert_null(json_member(NULL, "x"));
	cr_assert_null(json_member(json_member(root, "s"), "x"));
	cr_assert_str_eq(json_string(json_member(root, "n"), "none"), "none");
	cr_assert_str_eq(json_string(NULL, "none"), "none");
	cr_assert_eq(json_unsigned(json_member(root, "s"), 9), 9);
	cr_assert_eq(json_unsigned(NULL, 9), 9);
	cr_assert_eq(json_double(json_member(root, "s"), 9.5), 9.5);
	cr_assert_eq(json_unsigned(json_member(root, "twice"), 0), 1);
	json_free(document);
}

Test(tool_json, unsigned_numbers_are_exact_or_none, .timeout = 10)
{
	static const struct {
		const char *text;
		uint64_t value;
	} cases[] = {
		{"18446744073709551615", UINT64_MAX},
		{"18446744073709551616", 1},
		{"99999999999999999999999", 1},
		{"-0", 1},
		{"-1", 1},
		{"1.0", 1},
		{"1e2", 1},
		{"9007199254740993", 9007199254740993u},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json_document *document = good(cases[i].text);

		cr_assert_eq(json_unsigned(json_root(document), 1), cases[i].value, "%s", cases[i].text);
		json_free(document);
	}
}

Test(tool_json, strings, .timeout = 10)
{
	static const struct {
		const char *text, *value;
		size_t length;
	} cases[] = {
		{"\"\"", "", 0},
		{"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8},
		{"\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10},
		{"\"a\\u0000b\"", "a\0b", 3},
		{"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f", 10},
		{"\"\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80\"", "\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80", 10},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json_document *document = good(cases[i].text);
		const struct json *root = json_root(document);

		cr_assert_eq(root->length, cases[i].length, "%s", cases[i].text);
		cr_assert_eq(memcmp(root->text, cases[i].value, root->length + 1), 0, "%s", cases[i].text);
		json_free(document);
	}
}

Test(tool_json, wrong_texts, .timeout = 10)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"", "not a value"},
		{" ", "not a value"},
		{"nul", "not a value"},
		{"True", "not a value"},
		{"NaN", "not a value"},
		{"Infinity", "not a value"},
		{"'a'", "not a value"},
		{"// c\n1", "not a value"},
		{"\xef\xbb\xbf{}", "not a value"},
		{"+1", "not a value"},
		{".5", "not a value"},
		{"]", "not a value"},
		{"[,1]", "not a value"},
		{"[1,]", "not a value"},
		{"{\"a\":}", "not a value"},
		{"1 2", "something follows the value"},
		{"{}{}", "something follows the value"},
		{"nullx", "something follows the value"},
		{"01", "something follows the value"},
		{"1x", "something follows the value"},
		{"[1]]", "something follows the value"},
		{"-", "a wrong number"},
		{"1.", "a wrong number"},
		{"1.e3", "a wrong number"},
		{"1e", "a wrong number"},
		{"1e+", "a wrong number"},
		{"-a", "a wrong number"},
		{"[1", "a comma or an end is missing"},
		{"[1 2]", "a comma or an end is missing"},
		{"{\"a\":1", "a comma or an end is missing"},
		{"{\"a\":1]", "a comma or an end is missing"},
		{"{", "a member without a name"},
		{"{1:2}", "a member without a name"},
		{"{\"a\":1,}", "a member without a name"},
		{"{\"a\"}", "a name without a value"},
		{"{\"a\" 1}", "a name without a value"},
		{"\"", "a string is not closed"},
		{"\"abc", "a string is not closed"},
		{"\"\\\"", "a string is not closed"},
		{"\"\\", "a string is not closed"},
		{"\"a\nb\"", "a control character in a string"},
		{"\"\\x41\"", "a wrong escape in a string"},
		{"\"\\u12\"", "a wrong escape in a string"},
		{"\"\\u12G4\"", "a wrong escape in a string"},
		{"\"\\ud83d\"", "a wrong escape in a string"},
		{"\"\\ude00\"", "a wrong escape in a string"},
		{"\"\\ud83d\\u0041\"", "a wrong escape in a string"},
		{"\"\\ud83dx\"", "a wrong escape in a string"},
		{"\"\x80\"", "a string is not UTF-8"},
		{"\"\xc0\xaf\"", "a string is not UTF-8"},
		{"\"\xe0\x80\x80\"", "a string is not UTF-8"},
		{"\"\xed\xa0\x80\"", "a string is not UTF-8"},
		{"\"\xf4\x90\x80\x80\"", "a string is not UTF-8"},
		{"\"\xf8\x88\x80\x80\x80\"", "a string is not UTF-8"},
		{"\"\xe2\x82\"", "a string is not UTF-8"},
		{"\"\xff\"", "a string is not UTF-8"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		bad(cases[i].text, strlen(cases[i].text), -EINVAL, cases[i].error);
	bad("\"a\0b\"", 5, -EINVAL, "a control character in a string");
	bad("1\0", 2, -EINVAL, "something follows the value");
	bad("\0", 1, -EINVAL, "not a value");
}

/* `open` repeated, a middle, `close` repeated. */
static char *nest(const char *open, const char *middle, const char *close, size_t times)
{
	char *text = calloc(1, times * (strlen(open) + strlen(close)) + strlen(middle) + 1), *at = text;

	for (size_t i = 0; i < times; i++)
		at = stpcpy(at, open);
	at = stpcpy(at, middle);
	for (size_t i = 0; i < times; i++)
		at = stpcpy(at, close);
	return text;
}

Test(tool_json, depth, .timeout = 10)
{
	static const char *const forms[][3] = {{"[", "1", "]"}, {"{\"a\":", "1", "}"}, {"[", "", "]"}};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		char *deepest = nest(forms[i][0], forms[i][1], forms[i][2], JSON_DEPTH);
		char *deeper = nest(forms[i][0], forms[i][1], forms[i][2], JSON_DEPTH + 1);
		char *abyss = nest(forms[i][0], "", "", 1000000);

		json_free(good(deepest));
		bad(deeper, strlen(deeper), -E2BIG, NULL);
		bad(abyss, strlen(abyss), -E2BIG, NULL);
		free(deepest);
		free(deeper);
		free(abyss);
	}
}

Test(tool_json, wide_and_long, .timeout = 10)
{
	char *list = nest("1,", "1", "", 200000);
	char *text = malloc(strlen(list) + 3);
	char *string = malloc(1000003);
	struct json_document *document;

	sprintf(text, "[%s]", list);
	document = good(text);
	cr_assert_eq(json_root(document)->length, 200001);
	json_free(document);
	memset(string, 'a', 1000002);
	string[0] = string[1000001] = '"';
	string[1000002] = '\0';
	document = good(string);
	cr_assert_eq(json_root(document)->length, 1000000);
	json_free(document);
	free(list);
	free(text);
	free(string);
}

/* Every beginning of a good text is wrong, and none is looked beyond. */
Test(tool_json, every_cut, .timeout = 10)
{
	static const char text[] =
		"{\"a\":[1.5e-3,true,null,\"x\\u00e9\\n\xe2\x82\xac\",{\"b\":[]}],\"c\":\"\\ud83d\\ude00\"}";

	for (size_t length = 0; length < sizeof(text) - 1; length++)
		bad(text, length, -EINVAL, NULL);
	json_free(good(text));
}

/* One byte changed at random must give a value or an error, never a fault; the sanitizer build is the judge. */
Test(tool_json, random_damage, .timeout = 30)
{
	static const char text[] =
		"{\"a\":[1.5e-3,true,null,\"x\\u00e9\\n\xe2\x82\xac\",{\"b\":[]}],\"c\":\"\\ud83d\\ude00\"}";
	unsigned state = 1;
	size_t read = 0;

	for (int round = 0; round < 20000; round++) {
		char copy[sizeof(text)];
		struct json_document *document = NULL;

		memcpy(copy, text, sizeof(text));
		for (int i = 0; i < 1 + round % 3; i++) {
			state = state * 1103515245 + 12345;
			copy[(state >> 16) % (sizeof(text) - 1)] = (char)(state >> 8);
		}
		if (read_exact(copy, sizeof(text) - 1, &document, NULL) == 0)
			read++;
		else
			cr_assert_null(document);
		json_free(document);
	}
	cr_assert_gt(read, 0);
	cr_assert_lt(read, 20000);
}

Test(tool_json, free_of_nothing, .timeout = 10)
{
	json_free(NULL);
}
