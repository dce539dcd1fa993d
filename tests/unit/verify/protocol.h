/*
 * Tests of the protocol on the fake driver. Each starts with one attached range of BYTES bytes in `memory`, all 7, in
 * FAKE_CONTEXT(0), without the watcher, and ends with drop().
 */
#ifndef TESTS_UNIT_VERIFY_PROTOCOL_H
#define TESTS_UNIT_VERIFY_PROTOCOL_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/verdict/verify_internal.h"
#include "tests/unit/verify/fake.h"

#define S1 FAKE_STREAM(1)
#define S2 FAKE_STREAM(2)
#define S3 FAKE_STREAM(3)
#define BYTES 4096u
#define LARGE (1u << 20)
#define MAX_FOUND (3 * VERIFY_SLOTS)

struct found {
	const struct range *range;
	const char *api;
	const char *others[VERIFY_OTHERS];
	char candidate[32];
	size_t other_count, candidate_count;
	const char *kernel;
	int argument;
	uint32_t offset;
	uint64_t value, launches_before;
	uint64_t start, end, bytes, unverified;
	bool exact, inconclusive;
};

extern struct found found[MAX_FOUND]; /* in the order of telling */
extern size_t found_count;
extern void (*during_finding)(void); /* NULL, or called in each finding */
extern uint8_t *memory;              /* LARGE bytes of the device */
extern struct range *range;

void setup(void);
void teardown(void);

uint64_t address(const uint8_t *at);
/* A range with its baseline, in the current context. */
struct range *attach(uint64_t start, uint64_t end);
/* verify_after() by a writer of that name. */
size_t check_range(struct range *of, const char *api, CUstream stream);
size_t check(const char *api, CUstream stream);
void refresh(CUstream stream);
/* No capture was harmed, no lock held, the mode restored. */
void behaved(void);
/* behaved(), gives `range` back and requires that nothing is left: reference, slot, memory, queue. */
void drop(void);

#endif
