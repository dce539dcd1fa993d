#include "tools/lines.h"

bool lines_next(struct lines *lines)
{
	int byte = getc_unlocked(lines->file);

	if (byte == EOF)
		return false;
	lines->length = 0;
	lines->too_long = false;
	lines->number++;
	for (; byte != EOF && byte != '\n'; byte = getc_unlocked(lines->file)) {
		if (lines->length < LINES_MAX)
			lines->text[lines->length++] = (char)byte;
		else
			lines->too_long = true;
	}
	lines->cut = byte == EOF;
	return true;
}
