/*
 * Where the interpreter keeps what we read: offsets in bytes, by version. README.md says where each number comes from.
 */
#ifndef CUCONST_REPORT_PYTHON_LAYOUT_H
#define CUCONST_REPORT_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

enum python_lines {
	PYTHON_LINES_310, /* pairs of (bytes, line delta) */
	PYTHON_LINES_311, /* location entries */
};

struct python_layout {
	uint16_t thread_frame;   /* of the thread state: pointer to the frame, or to what `cframe` is inside of */
	bool has_cframe;         /* 3.11, 3.12: a _PyCFrame on the C stack comes between */
	uint16_t cframe_frame;   /* of the _PyCFrame: pointer to the frame */
	uint16_t frame_previous; /* of the frame: the caller's */
	uint16_t frame_code;     /* the code object; low bits may be tags */
	uint16_t frame_position; /* pointer to the instruction; 3.10: int, index of the instruction */
	uint16_t frame_owner;    /* char: 3 and above are not Python code; 0 in this member: there is none */
	uint16_t code_filename, code_name, code_linetable, code_firstlineno;
	uint16_t code_bytes; /* first instruction, inside the code object; unused in 3.10 */
	uint16_t type;       /* of any object: its type */
	uint16_t bytes_size, bytes_value;
	uint16_t text_length, text_state,
		text_ascii;    /* of a str: code points, flags, and the size of the header of an ASCII one */
	uint16_t text_compact; /* size of the header of the others */
	enum python_lines lines;
};

/*
 * The layout for this PY_VERSION_HEX; `runtime` is &_PyRuntime or NULL (3.13 and newer describe themselves there).
 * False when not known.
 */
bool python_layout_find(uint32_t version, const void *runtime, struct python_layout *ret_layout);

/*
 * Line of the instruction at byte offset `at`, from a code object's table. 0 when it has none. Reads only [table, table
 * + size).
 */
int python_line(enum python_lines format, const unsigned char *table, uint64_t size, int first_line, int64_t at);

/* The same, remembered by what is in the table: programs launch from the same lines again and again. Thread-safe. */
int python_line_known(enum python_lines format, const unsigned char *table, uint64_t size, int first_line, int64_t at);

#endif
