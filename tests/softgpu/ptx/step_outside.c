/* Functions that the driver provides and a module only declares. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/softgpu/ptx/machine.h"
#include "tests/softgpu/ptx/reach.h"
#include "tests/softgpu/ptx/steps.h"

#define LINE_BYTES 1024u /* a longer line is cut */
#define TEXT_BYTES 256u  /* a string argument too */

/* The value of an argument of at most 8 bytes. */
static uint64_t argument(const struct warp *warp, const struct call_actual *actual, unsigned lane)
{
	uint64_t value = 0;

	if (actual->slot != NO_OPERAND)
		return slot(warp, actual->slot)[lane] & width_mask((unsigned)actual->bytes);
	memcpy(&value, ptx_local_of(warp, lane, warp->frame->local_base + actual->from), actual->bytes);
	return value;
}

static void give(struct warp *warp, const struct call_actual *result, unsigned lane, uint64_t value)
{
	if (result->slot == NO_OPERAND)
		memcpy(ptx_local_of(warp, lane, warp->frame->local_base + result->from), &value, result->bytes);
	else
		warp->frame->registers[(size_t)result->slot * WARP_LANES + lane] = value;
}

/* A string of the device, cut to its room; what cannot be read ends it. */
static void copy_text(const struct warp *warp, unsigned lane, uint64_t address, char *to, size_t room)
{
	size_t at = 0;

	while (at + 1 < room) {
		const uint8_t *byte = ptx_reach_read(warp, lane, address + at, 1);

		if (!byte || !*byte)
			break;
		to[at++] = (char)*byte;
	}
	to[at] = 0;
}

struct line {
	char text[LINE_BYTES];
	size_t used;
};

static void put(struct line *line, const char *text, size_t bytes)
{
	if (bytes > sizeof(line->text) - line->used)
		bytes = sizeof(line->text) - line->used;
	memcpy(line->text + line->used, text, bytes);
	line->used += bytes;
}

/* The arguments lie one behind the other, each at a multiple of its size. */
struct arguments {
	const struct warp *warp;
	unsigned lane;
	uint64_t at;
};

static uint64_t next(struct arguments *arguments, size_t bytes)
{
	uint64_t value = 0;

	arguments->at = (arguments->at + bytes - 1) & ~(uint64_t)(bytes - 1);
	const uint8_t *from = ptx_reach_read(arguments->warp, arguments->lane, arguments->at, bytes);
	if (from)
		memcpy(&value, from, bytes);
	arguments->at += bytes;
	return value;
}

/* The formats are the kernel's; convert() lets only known conversions through, each with an argument of its type. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

/*
 * One conversion, from behind its '%'; returns what follows it. The host's own printf makes it, from a format that was
 * looked at here.
 */
static const char *convert(const char *from, struct arguments *arguments, struct line *line)
{
	char format[32] = "%", text[TEXT_BYTES + 64], string[TEXT_BYTES];
	size_t length = strspn(from, "-+ #0123456789.");
	int bytes;

	if (length > 20)
		length = 20;
	memcpy(format + 1, from, length);
	from += strspn(from, "-+ #0123456789.");
	bool wide = *from == 'l' || *from == 'z' || *from == 'j' || *from == 't';
	from += strspn(from, "hlzjt");
	char kind = *from;
	if (!kind || !strchr("diouxXcpsaAeEfFgG%", kind)) {
		put(line, "%", 1);
		return from;
	}
	if (strchr("diouxX", kind))
		strcat(format, wide ? "ll" : "");
	format[strlen(format)] = kind;
	if (kind == '%') {
		put(line, "%", 1);
		return from + 1;
	}
	if (kind == 's') {
		copy_text(arguments->warp, arguments->lane, next(arguments, 8), string, sizeof(string));
		bytes = snprintf(text, sizeof(text), format, string);
	} else if (kind == 'p') {
		bytes = snprintf(text, sizeof(text), format, (void *)(uintptr_t)next(arguments, 8));
	} else if (strchr("aAeEfFgG", kind)) {
		bytes = snprintf(text, sizeof(text), format, bits_f64(next(arguments, 8)));
	} else if (wide) {
		bytes = snprintf(text, sizeof(text), format, (long long)next(arguments, 8));
	} else {
		bytes = snprintf(text, sizeof(text), format, (int)next(arguments, 4));
	}
	if (bytes > 0)
		put(line, text, (size_t)bytes < sizeof(text) ? (size_t)bytes : sizeof(text) - 1);
	return from + 1;
}

/*
 * int vprintf(const char *format, void *arguments). To standard output at once: the hardware waits for the next
 * synchronisation.
 */
STEP(print)
{
	const struct call_site *site = insn->extra;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);
		struct arguments arguments = {warp, lane, argument(warp, &site->in[1], lane)};
		char format[LINE_BYTES];
		struct line line = {.used = 0};

		copy_text(warp, lane, argument(warp, &site->in[0], lane), format, sizeof(format));
		for (const char *at = format; *at;) {
			size_t plain = strcspn(at, "%");

			put(&line, at, plain);
			at += plain;
			if (*at)
				at = convert(at + 1, &arguments, &line);
		}
		bool written = write(STDOUT_FILENO, line.text, line.used) >= 0;
		give(warp, &site->out[0], lane, written ? line.used : UINT32_MAX);
	}
	return STEP_NEXT;
}

/* void __assertfail(const char *message, const char *file, unsigned line, const char *function, size_t char_bytes) */
STEP(assert_fail)
{
	const struct call_site *site = insn->extra;
	unsigned lane = (unsigned)__builtin_ctz(mask);
	char message[96], file[96];

	copy_text(warp, lane, argument(warp, &site->in[0], lane), message, sizeof(message));
	copy_text(warp, lane, argument(warp, &site->in[1], lane), file, sizeof(file));
	return ptx_fault(warp, insn, lane, PTX_FAULT_ASSERT, 0, "%s:%u: assertion `%s` failed", file,
	                 (unsigned)argument(warp, &site->in[2], lane), message);
}

/* void *malloc(size_t bytes) */
STEP(heap_take)
{
	const struct call_site *site = insn->extra;
	const struct ptx_memory *memory = warp->block->memory;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);
		uint64_t bytes = argument(warp, &site->in[0], lane);

		give(warp, &site->out[0], lane, memory->heap_take ? memory->heap_take(memory->data, bytes) : 0);
	}
	return STEP_NEXT;
}

/* void free(void *address) */
STEP(heap_give)
{
	const struct call_site *site = insn->extra;
	const struct ptx_memory *memory = warp->block->memory;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);
		uint64_t address = argument(warp, &site->in[0], lane);

		if (address && !(memory->heap_give && memory->heap_give(memory->data, address)))
			return ptx_fault(warp, insn, lane, PTX_FAULT_ADDRESS, address,
			                 "free(0x%llx) of what malloc() did not give", (unsigned long long)address);
	}
	return STEP_NEXT;
}

/* void cudaGraphSetConditional(unsigned long long handle, unsigned value) */
STEP(set_conditional)
{
	const struct call_site *site = insn->extra;
	const struct ptx_memory *memory = warp->block->memory;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);
		uint64_t handle = argument(warp, &site->in[0], lane);

		if (!memory->conditional ||
		    !memory->conditional(memory->data, handle, (uint32_t)argument(warp, &site->in[1], lane)))
			return ptx_fault(warp, insn, lane, PTX_FAULT_TRAP, 0,
			                 "0x%llx is no handle of a conditional node", (unsigned long long)handle);
	}
	return STEP_NEXT;
}

/* Functions by name, with the bytes of their result (0: none) and of their parameters. */
static const struct {
	const char *name;
	size_t result, formals[6];
	step_fn step;
} functions[] = {
	{"vprintf", 4, {8, 8}, print},
	{"__assertfail", 0, {8, 8, 4, 8, 8}, assert_fail},
	{"malloc", 8, {8}, heap_take},
	{"free", 0, {8}, heap_give},
	{"cudaGraphSetConditional", 0, {8, 4}, set_conditional},
};

static bool has_shape(const struct ptx_function *function, size_t result, const size_t *formals)
{
	unsigned count = 0;

	if (function->result_count != (result ? 1 : 0) || (result && function->results[0].bytes != result))
		return false;
	for (; formals[count]; count++)
		if (count >= function->formal_count || function->formals[count].bytes != formals[count])
			return false;
	return function->formal_count == count;
}

step_fn ptx_step_outside(const struct ptx_function *function)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (!strcmp(function->name, functions[i].name) &&
		    has_shape(function, functions[i].result, functions[i].formals))
			return functions[i].step;
	return NULL;
}
