/*
 * The ring of launches that may be in flight, for fault.c. A note is one slot of one launch; its number counts all that were made. No locks: who does not get a note goes
 * without. Thread-safe.
 */
#ifndef CUCONST_VERDICT_FAULT_NOTES_H
#define CUCONST_VERDICT_FAULT_NOTES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/driver.h"
#include "shim/kernels/function.h"
#include "shim/report/report.h"

#define NOTES 512 /* a power of two: launches in flight beyond these are only counted */

/*
 * One slot of one launch. `turn` is twice the note's number plus two; odd while somebody has it to himself, to write or to read the plain members. Who does not get it
 * goes without. Two cache lines, which each launch finds cold.
 */
struct note {
	_Atomic uint64_t turn;
	_Atomic uint64_t ended; /* the turn that is known to have ended well */
	_Atomic(CUcontext) context;
	_Atomic uint64_t stream; /* or what stands for it since it was destroyed */
	_Atomic uint64_t thread; /* CU_STREAM_PER_THREAD is another stream in each */
	uint64_t told;           /* the stream's handle, for the record */
	uint64_t launch;         /* number of the first note of the same launch */
	uint64_t graph;
	registry_handle range;
	const struct function_info *function;
	const struct kernel_paths *paths;
	uint64_t value;
	uint64_t site; /* its number in the ring of places */
	const char *outer_api, *outer_note;
	int16_t argument;
	uint16_t offset;
	uint16_t entry; /* enum entry_id */
	uint8_t verdict;
	bool beside;
} __attribute__((aligned(64)));

/* What a note says, for a record. */
struct note_told {
	CUcontext context;
	uint64_t stream, told, launch, graph;
	registry_handle range;
	const char *outer_api, *outer_note;
	struct report_kernel kernel; /* without its place, when that has been overwritten */
};

CUcontext note_context_now(void);

/* The place of note `number`, which may hold another one by now. */
struct note *note_at(uint64_t number);
bool note_has_ended(struct note *note, uint64_t number);

/* Copies note `number` if it is there, in flight, and in this context (NULL: in any). */
bool note_read(uint64_t number, CUcontext context, struct note_told *ret);

/* Is it a launch in this stream, asked by this thread? 0: any stream. */
bool note_in_stream(const struct note *note, uint64_t stream);
/* A stream that was created belongs to one context, whichever is current; the default ones are each context's own. */
bool note_stream_was_created(uint64_t stream);

/* All notes before this number have ended. */
uint64_t notes_settled(void);
/* Notes that cannot be in flight any more are not looked at again. */
void notes_settle(uint64_t upto);

/* Is anything in flight in this stream, which was created? Then its context. */
bool notes_in_flight(uint64_t stream, CUcontext *ret_context);
/* From now on the notes of a stream are those of what stands for it: its handle may come again. */
void notes_rename_stream(uint64_t stream, uint64_t name);

/* fork child. */
void notes_reset(void);

#endif
