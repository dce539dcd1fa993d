/* The launcher's smaller parts: lists of options, lines of files, the private folder. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/lines.h"
#include "tools/locate.h"
#include "tools/page.h"
#include "tools/settings.h"

static void expect(char *got, const char *wanted)
{
	cr_assert_str_eq(got, wanted);
	free(got);
}

Test(tool_parts, lists, .timeout = 10)
{
	expect(settings_prepend("a", NULL), "a");
	expect(settings_prepend("a", ""), "a");
	expect(settings_prepend("a", "b:c"), "a:b:c");
	expect(settings_prepend("c", "b:c"), "b:c");
	expect(settings_prepend("b", "bb:cb"), "b:bb:cb");
	expect(settings_append(NULL, "a"), "a");
	expect(settings_append("b:", "a"), "b::a");
	expect(settings_append("a:b", "a"), "a:b");
}

Test(tool_parts, numbers_of_options, .timeout = 10)
{
	cr_assert_eq(settings_number(NULL, "exitcode", 86), 86);
	cr_assert_eq(settings_number("", "exitcode", 86), 86);
	cr_assert_eq(settings_number("exitcode=5", "exitcode", 86), 5);
	cr_assert_eq(settings_number("mode=log:exitcode=5:exitcode=6:x=7", "exitcode", 86), 6);
	cr_assert_eq(settings_number("exitcode=5:exitcode=256", "exitcode", 86), 5);
	cr_assert_eq(settings_number("exitcode=", "exitcode", 86), 86);
	cr_assert_eq(settings_number("exitcode", "exitcode", 86), 86);
	cr_assert_eq(settings_number("myexitcode=4:exitcodes=5:exitcode=0x6", "exitcode", 86), 86);
	cr_assert_eq(settings_number("::exitcode=9::", "exitcode", 86), 9);
}

Test(tool_parts, absolute_paths, .timeout = 10)
{
	cr_assert_eq(chdir("/"), 0);
	expect(locate_absolute("a/b"), "/a/b");
	expect(locate_absolute("/a/b"), "/a/b");
	cr_assert_eq(chdir("/usr"), 0);
	expect(locate_absolute("a"), "/usr/a");
}

Test(tool_parts, lines, .timeout = 10)
{
	static char room[LINES_MAX + 1];
	static const char text[] = "one\n\ntwo\0x\nlast";
	struct lines lines = {.text = room};
	static const struct {
		const char *text;
		size_t length;
	} wanted[] = {{"one", 3}, {"", 0}, {"two\0x", 5}, {"last", 4}};
	char copy[sizeof(text)];

	memcpy(copy, text, sizeof(text));
	lines.file = fmemopen(copy, sizeof(text) - 1, "r");
	for (size_t i = 0; i < 4; i++) {
		cr_assert(lines_next(&lines));
		cr_assert_eq(lines.number, i + 1);
		cr_assert_eq(lines.length, wanted[i].length);
		cr_assert_eq(memcmp(lines.text, wanted[i].text, lines.length), 0);
		cr_assert_eq(lines.cut, i == 3);
		cr_assert_not(lines.too_long);
	}
	cr_assert_not(lines_next(&lines));
	fclose(lines.file);
}

Test(tool_parts, page, .timeout = 10)
{
	struct page page = {0};
	struct stat st;
	char *folder;
	FILE *notes;

	cr_assert_eq(page_create(&page), 0);
	folder = strdup(page.folder);
	cr_assert_eq(stat(page.status, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	cr_assert_eq((size_t)st.st_size, sizeof(struct status_page));
	cr_assert_eq(page.shared->magic, STATUS_MAGIC);
	cr_assert_eq(page.shared->version, STATUS_VERSION);
	cr_assert_eq(page.shared->violations, 0);
	cr_assert_eq(page_notes(&page, PAGE_NOTE_STARTED), 0);
	notes = fopen(page.notes, "a");
	fputs("sees", notes);
	fclose(notes);
	cr_assert_eq(page_notes(&page, PAGE_NOTE_STARTED), 2);
	cr_assert_eq(page_notes(&page, PAGE_NOTE_EXPORTED), 2);
	page_destroy(&page);
	page_destroy(&page);
	cr_assert_neq(stat(folder, &st), 0);
	free(folder);
}

Test(tool_parts, page_without_a_place, .timeout = 10)
{
	struct page page = {0};

	setenv("TMPDIR", "/nowhere", 1);
	cr_assert_lt(page_create(&page), 0);
	cr_assert_null(page.folder);
}
