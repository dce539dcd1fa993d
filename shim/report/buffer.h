/*
 * Text in a fixed buffer: no allocation, no stdio, never written past the end.
 *
 * A piece that does not fit is left out whole, and `full` stays set, so that a caller can go back to a mark and close
 * what it opened. Thread-compatible. Callable in a fork child and in a signal handler.
 */
#ifndef CUCONST_REPORT_BUFFER_H
#define CUCONST_REPORT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
	char *text; /* not terminated */
	size_t length, size;
	bool full; /* something did not fit */
};

struct buffer buffer_over(char *text, size_t size);

/* Text of known length; all of it or nothing. */
void buffer_bytes(struct buffer *buf, const char *text, size_t length);

/* NULL adds nothing. */
void buffer_string(struct buffer *buf, const char *text);

void buffer_unsigned(struct buffer *buf, uint64_t value);
void buffer_signed(struct buffer *buf, int64_t value);
void buffer_hex(struct buffer *buf, uint64_t value); /* 0x..., no leading zeros */
void buffer_padded(struct buffer *buf, uint64_t value, unsigned digits);

/* Back to an earlier length: what came after is gone, and `full` with it. */
void buffer_rewind(struct buffer *buf, size_t length);

/*
 * A JSON string with its quotes; NULL gives null. Valid UTF-8 passes, control characters are escaped, and each byte
 * that is not valid UTF-8 becomes U+FFFD. At most `limit` bytes of `text` are read, then "..." says that it was cut.
 */
void buffer_json_string(struct buffer *buf, const char *text, size_t limit);

/*
 * For people: control characters and invalid UTF-8 become '?', so that a label cannot drive the terminal or fake a
 * line.
 */
void buffer_plain(struct buffer *buf, const char *text, size_t limit);

#endif
