#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/verdict/options.h"

static char said[4096];

static void collect(const char *message, void *data)
{
	cr_assert_eq(data, said, "data is handed through");
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", message);
}

static struct options parse(const char *text, int complaints)
{
	struct options opt;

	said[0] = '\0';
	cr_assert_eq(options_parse(text, &opt, collect, said), complaints, "complaints about %s: %s", text, said);
	return opt;
}

Test(options, defaults)
{
	const char *const empty[] = {NULL, "", ":", "::"};

	for (int i = 0; i < 4; i++) {
		struct options opt = parse(empty[i], 0);

		cr_assert(opt.enabled && opt.text && opt.verify && opt.names);
		cr_assert(!opt.abort_on_error && !opt.help);
		cr_assert_eq(opt.mode, MODE_LOG);
		cr_assert_eq(opt.twins, TWINS_NATIVE);
		cr_assert_null(opt.log);
		cr_assert_null(opt.suppressions);
		cr_assert_null(opt.cache);
		cr_assert(opt.store_paths);
		cr_assert_eq(opt.exitcode, 86);
		cr_assert_eq(opt.site_limit, 10);
		cr_assert_eq(opt.wait_ms, 0);
		cr_assert_eq(opt.exit_wait_ms, 2000);
	}
}

Test(options, every_option_is_set)
{
	struct options opt = parse(
		"enabled=0:mode=strict:log=a/%h.%p.%r.%t%%.jsonl:text=no:exitcode=7:abort_on_error=yes:suppressions=s.txt:"
		"site_limit=0:wait=15:exit_wait=0:verify=false:names=0:color=true:help=1:twins=all:store_paths=0:cache=/a/%c",
		0);

	cr_assert(!opt.enabled && !opt.text && opt.abort_on_error && !opt.verify && !opt.names && opt.color && opt.help);
	cr_assert_eq(opt.mode, MODE_STRICT);
	cr_assert_eq(opt.twins, TWINS_ALL);
	cr_assert_str_eq(opt.log, "a/%h.%p.%r.%t%%.jsonl");
	cr_assert_str_eq(opt.suppressions, "s.txt");
	cr_assert_str_eq(opt.cache, "/a/%c");
	cr_assert(!opt.store_paths);
	cr_assert_eq(opt.exitcode, 7);
	cr_assert_eq(opt.site_limit, 0);
	cr_assert_eq(opt.wait_ms, 15);
	cr_assert_eq(opt.exit_wait_ms, 0);
}

/* Each text goes into its own field, in whatever order they come. */
Test(options, texts_do_not_mix)
{
	struct options opt = parse("cache=0:log=l:suppressions=s", 0);

	cr_assert_str_eq(opt.cache, "0");
	cr_assert_str_eq(opt.log, "l");
	cr_assert_str_eq(opt.suppressions, "s");
	opt = parse("cache=/c", 0);
	cr_assert_null(opt.log);
	cr_assert_null(opt.suppressions);
}

Test(options, the_last_one_counts)
{
	cr_assert_eq(parse("mode=deny:mode=log:mode=deny", 0).mode, MODE_DENY);
}

Test(options, quotes)
{
	cr_assert_str_eq(parse("log='C:/a b':text=0", 0).log, "C:/a b");
	cr_assert_str_eq(parse("log=\"it's\"", 0).log, "it's");
	cr_assert_str_eq(parse("log=a'b", 0).log, "a'b");
	cr_assert(!parse("log='a:b':text=0", 0).text);
}

struct bad {
	const char *text, *message;
};

Test(options, bad_ones_are_said_exactly)
{
	static const struct bad cases[] = {
		{"mod=deny", "option mod: is not known; did you mean mode? (help=1 lists all)\n"},
		{"site_limits=3", "option site_limits: is not known; did you mean site_limit? (help=1 lists all)\n"},
		{"banana=1", "option banana: is not known (help=1 lists all)\n"},
		{"mode=dney", "option mode=dney: must be log, deny or strict; did you mean deny?\n"},
		{"mode=", "option mode=: must be log, deny or strict\n"},
		{"mode", "option mode: needs a value: name=value\n"},
		{"=1", "option : is not known (help=1 lists all)\n"},
		{"exitcode=0", "option exitcode=0: needs a whole number from 1 to 255\n"},
		{"exitcode=256", "option exitcode=256: needs a whole number from 1 to 255\n"},
		{"exitcode=-1", "option exitcode=-1: needs a whole number from 1 to 255\n"},
		{"exitcode= 7", "option exitcode= 7: needs a whole number from 1 to 255\n"},
		{"exitcode=7x", "option exitcode=7x: needs a whole number from 1 to 255\n"},
		{"exitcode=", "option exitcode=: needs a whole number from 1 to 255\n"},
		{"site_limit=18446744073709551616", "option site_limit=18446744073709551616: needs a whole number\n"},
		{"wait=86400001", "option wait=86400001: needs a whole number from 0 to 86400000\n"},
		{"verify=2", "option verify=2: must be 0 or 1\n"},
		{"log=", "option log: needs a file name\n"},
		{"log=x%q", "option log=x%q: only %h, %p, %r, %t and %% may follow a percent sign\n"},
		{"log=x%", "option log=x%: only %h, %p, %r, %t and %% may follow a percent sign\n"},
		{"log='x", "option log: the closing quote is missing\n"},
		{"log='x'y", "option log: a ':' must follow the closing quote\n"},
		{"a\033[31m=1", "option a?[31m: is not known (help=1 lists all)\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		parse(cases[i].text, 1);
		cr_assert_str_eq(said, cases[i].message);
	}
}

Test(options, a_bad_one_does_not_spoil_the_rest)
{
	struct options opt = parse("mode=deny:exitcode=999:bogus:log='a'b:site_limit=4", 3);

	cr_assert_eq(opt.mode, MODE_DENY);
	cr_assert_eq(opt.exitcode, 86);
	cr_assert_null(opt.log);
	cr_assert_eq(opt.site_limit, 4);
}

Test(options, long_input)
{
	static char text[20000];

	memset(text, 'x', sizeof(text) - 1);
	parse(text, 1);
	memcpy(text, "log=", 4);
	cr_assert_null(parse(text, 1).log);
	cr_assert_str_eq(said, "option log: the value is too long\n");
	memset(text, ':', sizeof(text) - 1);
	parse(text, 0);
}

Test(options, without_a_place_to_complain)
{
	struct options opt;

	cr_assert_eq(options_parse("bogus=1:mode=x", &opt, NULL, NULL), 2);
	cr_assert_eq(opt.mode, MODE_LOG);
}

/*
 * Each option that the parser takes is in the help, and each line of the help is an option that the parser takes with
 * the default shown there.
 */
Test(options, help_lists_exactly_what_is_parsed)
{
	static const char *const names[] = {"enabled",        "mode",         "log",        "text",  "exitcode",
	                                    "abort_on_error", "suppressions", "site_limit", "wait",  "exit_wait",
	                                    "verify",         "store_paths",  "cache",      "twins", "names",
	                                    "color",          "help"};
	char *help = strdup(options_help()), *save, *line;
	size_t found = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char item[64];

		snprintf(item, sizeof(item), "\n  %s=", names[i]);
		cr_assert_not_null(strstr(help, item), "%s is not in the help", names[i]);
	}
	cr_assert_not_null(strtok_r(help, "\n", &save));
	while ((line = strtok_r(NULL, "\n", &save))) {
		char name[64] = "", value[64] = "", item[160];

		cr_assert_geq(sscanf(line, "  %63[^=]=%63[^ ]", name, value), 1);
		found++;
		if (!*value)
			continue;
		snprintf(item, sizeof(item), "%s=%s", name, value);
		parse(item, 0);
	}
	cr_assert_eq(found, sizeof(names) / sizeof(*names));
	free(help);
}

/* The table of OPTIONS.md: the same names in the same order, with the same defaults. */
Test(options, the_document_agrees_with_the_help)
{
	FILE *file = fopen(getenv("OPTIONS_MD"), "r");
	char line[1024], documented[4096] = "", parsed[4096] = "", name[64], value[64];
	char *help = strdup(options_help()), *save;

	cr_assert_not_null(file);
	while (fgets(line, sizeof(line), file) && strcmp(line, "## Suppressions\n")) {
		value[0] = '\0';
		if (sscanf(line, "| `%63[a-z_]` | `%63[^`]`", name, value) < 1)
			continue;
		sprintf(documented + strlen(documented), "%s=%s\n", name, value);
	}
	fclose(file);
	strtok_r(help, "\n", &save);
	for (char *at; (at = strtok_r(NULL, "\n", &save));) {
		value[0] = '\0';
		cr_assert_geq(sscanf(at, "  %63[^=]=%63[^ ]", name, value), 1);
		sprintf(parsed + strlen(parsed), "%s=%s\n", name, value);
	}
	cr_assert_str_eq(documented, parsed);
	free(help);
}

Test(options, twins)
{
	cr_assert_eq(parse("twins=all", 0).twins, TWINS_ALL);
	cr_assert_eq(parse("twins=off", 0).twins, TWINS_OFF);
	cr_assert_eq(parse("twins=all:twins=native", 0).twins, TWINS_NATIVE);
	cr_assert_eq(parse("twins=All", 1).twins, TWINS_NATIVE);
	cr_assert_str_eq(said, "option twins=All: must be native, all or off; did you mean all?\n");
}

Test(options, mode_names)
{
	cr_assert_str_eq(options_mode_name(MODE_LOG), "log");
	cr_assert_str_eq(options_mode_name(MODE_DENY), "deny");
	cr_assert_str_eq(options_mode_name(MODE_STRICT), "strict");
	cr_assert_str_eq(options_mode_name((enum options_mode)7), "?");
}

Test(options, environment)
{
	setenv("CUCONST_OPTIONS", "mode=deny:site_limit=3", 1);
	cr_assert_eq(options_get()->mode, MODE_DENY);
	setenv("CUCONST_OPTIONS", "mode=strict", 1);
	cr_assert_eq(options_get()->mode, MODE_DENY, "read once, fixed afterwards");
	cr_assert_eq(options_get()->site_limit, 3);
}
