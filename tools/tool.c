#include "tools/tool.h"

#include <stdarg.h>
#include <stdlib.h>

void tool_say(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fflush(stdout);
	fputs("cuconst: ", stderr);
	vfprintf(stderr, format, list);
	fputc('\n', stderr);
	va_end(list);
}

int tool_usage(const char *command, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fputs("cuconst: ", stderr);
	vfprintf(stderr, format, list);
	fprintf(stderr, "\ncuconst: see cuconst %s%s--help\n", command ? command : "", command ? " " : "");
	va_end(list);
	return TOOL_USAGE;
}

char *tool_format(const char *format, ...)
{
	va_list list;
	char *text;

	va_start(list, format);
	if (vasprintf(&text, format, list) < 0) {
		fputs("cuconst: out of memory\n", stderr);
		exit(TOOL_OS_ERROR);
	}
	va_end(list);
	return text;
}
