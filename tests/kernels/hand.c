/*
 * Kernels of a few instructions by hand, put in the place of copy(to, from, n) of small_90.cubin: what no compiler gives
 * when asked. hand CUBIN. Most load a pair from memory, put `to` over it where a predicate holds, and store through it
 * where a predicate holds: clear only where that is the same.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/paths.h"
#include "tests/kernels/file.h"

#define KERNEL "copy"
#define N_OFFSET 16 /* of its last parameter */

struct word {
	uint64_t low, high;
};

#define W(low, high)                                                                                                   \
	{                                                                                                              \
		low, high                                                                                              \
	}
#define GUARD(p) (UINT64_C(p) << 12) /* 8 more: negated */
#define ALWAYS GUARD(7)

/* sm_90; parameters begin at 0x210. */
#define THREAD W(0x0000000000000919 | ALWAYS | 0 << 16, 0x000e620000002100)            /* S2R R0, SR_TID.X */
#define FROM W(0x0000860000040b82 | ALWAYS | UINT64_C(0xff) << 24, 0x000e620000000a00) /* LDC.64 R4, c[0x0][0x218] */
#define TABLE W(0x0000000404020981 | ALWAYS, 0x000ea4000c1e1b00)   /* LDG.E.64 R2, desc[UR4][R4.64] */
#define TO(p) W(0x00008400ff020b82 | GUARD(p), 0x000e620000000a00) /* @p LDC.64 R2, c[0x0][0x210] */
#define COUNT W(0x00008800ff0a0b82 | ALWAYS, 0x000e620000000800)   /* LDC R10, c[0x0][0x220] */
#define NOT_ZERO(p, r)                                                                                                 \
	W(0x000000ff0000020c | ALWAYS | UINT64_C(r) << 24,                                                             \
	  0x000fe20003f05270 | UINT64_C(p) << 17) /* ISETP.NE.AND p, PT, r, RZ, PT */
#define NOT_ZERO_IF(g, p, r)                                                                                           \
	W(0x000000ff0000020c | GUARD(g) | UINT64_C(r) << 24, 0x000fe20003f05270 | UINT64_C(p) << 17)
#define EQUAL(p, r)                                                                                                    \
	W(0x000000ff0000020c | ALWAYS | UINT64_C(r) << 24,                                                             \
	  0x000fe20003f02270 | UINT64_C(p) << 17) /* ISETP.EQ.AND p, PT, r, RZ, PT */
#define SIGN(p, r)                                                                                                     \
	W(0x000000ff0000020c | ALWAYS | UINT64_C(r) << 24,                                                             \
	  0x000fe20003f01270 | UINT64_C(p) << 17) /* ISETP.LT.AND p, PT, r, RZ, PT */
#define SWAP(p, q)                                                                                                     \
	W(0x000000000000081c | ALWAYS,                                                                                 \
	  0x000fe20003f0f000 | UINT64_C(p) << 17 | UINT64_C(q) << 4) /* PLOP3.LUT p, PT, PT, PT, q, ... */
#define OUT(r, mask)                                                                                                   \
	W(0x00000000ff000803 | ALWAYS | UINT64_C(r) << 16 | UINT64_C(mask) << 32,                                      \
	  0x000fe40000000000) /* P2R r, PR, RZ, mask */
#define OUT_IF(g, r, mask)                                                                                             \
	W(0x00000000ff000803 | GUARD(g) | UINT64_C(r) << 16 | UINT64_C(mask) << 32, 0x000fe40000000000)
#define OUT_OVER(r, s, mask)                                                                                           \
	W(0x0000000000000803 | ALWAYS | UINT64_C(r) << 16 | UINT64_C(s) << 24 | UINT64_C(mask) << 32, 0x000fe40000000000)
#define TO_UNIFORM W(0x00000000020602ca | ALWAYS, 0x000fe200000e0000) /* R2UR UR6, R2 */
#define UNIFORM_OUT_OVER(mask)                                                                                         \
	W(0x0000000006060883 | ALWAYS | UINT64_C(mask) << 32, 0x000fe20008000000)       /* UP2UR UR6, UPR, UR6, mask */
#define FROM_UNIFORM W(0x0000000600020c02 | ALWAYS, 0x000fe20008000f00)                 /* MOV R2, UR6 */
#define CLEAR(r) W(0x000000ffff000224 | ALWAYS | UINT64_C(r) << 16, 0x000fe200078e00ff) /* IMAD.MOV.U32 r, RZ, RZ, RZ */
#define CLEAR_IF(g, r) W(0x000000ffff000224 | GUARD(g) | UINT64_C(r) << 16, 0x000fe200078e00ff)
#define UPPER W(0x00008880ff0a0b82 | ALWAYS, 0x000e620000000000)      /* LDC.U8 R10, c[0x0][0x222] */
#define LOWER W(0x00008800ff060b82 | ALWAYS, 0x000e620000000400)      /* LDC.U16 R6, c[0x0][0x220] */
#define MULTIPLY W(0x0000000600020225 | ALWAYS, 0x000fe200078e0002)   /* IMAD.WIDE.U32 R2, R0, R6, R2 */
#define EIGHT W(0x0000000806060824 | ALWAYS, 0x000fe200078e02ff)      /* IMAD R6, R6, 8, RZ */
#define STORE(p) W(0x0000000002000986 | GUARD(p), 0x000fe2000c101904) /* @p STG.E desc[UR4][R2.64], R0 */
#define READ(p) W(0x0000000404080981 | GUARD(p), 0x000ea4000c1e1900)  /* @p LDG.E R8, desc[UR4][R4.64] */
#define ARM(p, ahead)                                                                                                  \
	W(0x0000000000000945 | ALWAYS | UINT64_C(ahead) << 36, 0x000fe20000000000 | UINT64_C(p) << 23) /* BSSY p, B0 */
#define WAIT W(0x0000000000000941 | ALWAYS, 0x000fea0003800000)                                        /* BSYNC B0 */
#define JUMP(p, ahead)                                                                                                 \
	W(0x0000000000000947 | ALWAYS | (UINT64_C(4) * (uint64_t)(ahead)&0xff) << 16 |                                 \
	          UINT64_C(4) * (uint64_t)(ahead) >> 8 << 34,                                                          \
	  0x000fea0000000000 | UINT64_C(p) << 23 | (UINT64_C(4) * (uint64_t)(ahead) >> 38 & 0x3ffff)) /* BRA p */
#define INDEX W(0x0000000404080981 | ALWAYS, 0x000ea4000c1e1900) /* LDG.E R8, desc[UR4][R4.64] */
#define TIMES_8                                                                                                        \
	W(0x0000001d00090819 | ALWAYS | UINT64_C(0xff) << 24, 0x000fe20000001008) /* SHF.R.S64 R9, RZ, 0x1d, R8 */
#define TIMES_8_OVER                                                                                                   \
	W(0x0000001d00090819 | ALWAYS | UINT64_C(5) << 24, 0x000fe20000001008) /* SHF.R.S64 R9, R5, 0x1d, R8 */
#define TIMES_8_UPPER                                                                                                  \
	W(0x0000001d000b0819 | ALWAYS | UINT64_C(0xff) << 24, 0x000fe20000011408) /* SHF.R.S32.HI R11, RZ, 0x1d, R8 */
#define EIGHTH                                                                                                         \
	W(0x0000000300080819 | ALWAYS | UINT64_C(0xff) << 24, 0x000fe20000011608) /* SHF.R.U32.HI R8, RZ, 0x3, R8 */
#define ADD(d, a)                                                                                                      \
	W(0x0000000000000210 | ALWAYS | UINT64_C(d) << 16 | UINT64_C(a) << 24 | UINT64_C(d) << 32,                     \
	  0x000fe20007ffe0ff) /* IADD3 d, a, d, RZ */
#define ADD_SIGN(shift)                                                                                                \
	W(0x0000000308030211 | ALWAYS, 0x000fe400000f06ff | UINT64_C(shift)                                            \
	                                                            << 11) /* LEA.HI.X.SX32 R3, R8, R3, shift, P0 */
#define PUSH(bytes)                                                                                                    \
	W(0x0000000001010810 | ALWAYS | (UINT64_C(bytes) & UINT32_MAX) << 32,                                          \
	  0x000fe20007ffe0ff)                                                           /* IADD3 R1, R1, bytes, RZ */
#define PUT(at) W(0x0000000201000387 | ALWAYS | UINT64_C(at) << 40, 0x000fe20000100a00) /* STL.64 [R1+at], R2 */
#define GET(at) W(0x0000000001020983 | ALWAYS | UINT64_C(at) << 40, 0x000ea20000100a00) /* LDL.64 R2, [R1+at] */
#define CALL(ahead) W(0x0000000000000944 | ALWAYS | UINT64_C(ahead) << 18, 0x000fea0003c00000) /* CALL.REL.NOINC */
#define RETURN(p) W(0x0000000004000950 | ALWAYS, 0x000fea0000400000 | UINT64_C(p) << 23)       /* RET.REL.NODEC p, R4 */
#define EXIT W(0x000000000000094d | ALWAYS, 0x000fea0003800000)
#define LENGTH 16

static const struct kernel {
	const char *what;
	bool clear;
	bool for_zero; /* with n = 0 */
	bool upper;    /* ... of which only the upper half is known */
	struct word code[LENGTH];
} kernels[] = {
	{"the same predicate", true, true, false, {THREAD, FROM, TABLE, NOT_ZERO(0, 0), TO(0), STORE(0), EXIT}},
	{"its negation", false, false, false, {THREAD, FROM, TABLE, NOT_ZERO(0, 0), TO(0), STORE(8), EXIT}},
	{"another predicate", false, false, false, {THREAD, FROM, TABLE, NOT_ZERO(0, 0), TO(0), STORE(1), EXIT}},
	{"written again", false, false, false, {THREAD, FROM, TABLE, NOT_ZERO(0, 0), TO(0), SWAP(0, 1), STORE(0), EXIT}},
	/* What comes between does not run for these values; the write of the predicate before it does. */
	{"written again before what never runs",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, COUNT, NOT_ZERO(0, 0), NOT_ZERO(2, 10), TO(0), SWAP(0, 1), STORE(2), STORE(0), EXIT}},
	{"written again before a load that never runs",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, COUNT, NOT_ZERO(0, 0), NOT_ZERO(2, 10), TO(0), SWAP(0, 1), READ(2), STORE(0), EXIT}},
	{"written again by what never runs",
         false,
         true,
         false,
         {THREAD, FROM, TABLE, COUNT, NOT_ZERO(0, 0), NOT_ZERO(2, 10), TO(0), NOT_ZERO_IF(2, 0, 4), STORE(0), EXIT}},
	/* By a register and back. */
	{"moved out and back",
         true,
         true,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), OUT(7, 0x40), SWAP(6, 1), NOT_ZERO(1, 7), STORE(1), EXIT}},
	{"moved out first",
         true,
         true,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), OUT(7, 0x40), TO(6), SWAP(6, 1), NOT_ZERO(1, 7), STORE(1), EXIT}},
	{"moved back twice",
         true,
         true,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), OUT(7, 0x40), NOT_ZERO(1, 7), OUT(9, 2), NOT_ZERO(3, 9), STORE(3),
          EXIT}},
	{"moved back, negated",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), OUT(7, 0x40), NOT_ZERO(1, 7), STORE(9), EXIT}},
	{"moved out after it was written again",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), SWAP(6, 1), OUT(7, 0x40), NOT_ZERO(1, 7), STORE(1), EXIT}},
	{"moved back, then written again",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), OUT(7, 0x40), NOT_ZERO(1, 7), SWAP(1, 2), STORE(1), EXIT}},
	{"another one moved out",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), OUT(7, 0x20), NOT_ZERO(1, 7), STORE(1), EXIT}},
	{"two moved out",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), OUT(7, 0x60), NOT_ZERO(1, 7), STORE(1), EXIT}},
	{"moved out beside what was there",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), OUT_OVER(7, 0, 0x40), NOT_ZERO(1, 7), STORE(1), EXIT}},
	/* Of the low half of an address all bits but one stay. */
	{"moved out into an address",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(0, 0), OUT_OVER(2, 2, 0x4), TO(0), STORE(7), EXIT}},
	{"moved out into an address, uniform",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(0, 0), TO_UNIFORM, UNIFORM_OUT_OVER(0x4), FROM_UNIFORM, TO(0), STORE(7), EXIT}},
	{"the register was written",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), OUT(7, 0x40), CLEAR(7), NOT_ZERO(1, 7), STORE(1), EXIT}},
	{"the register was written by some",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), OUT(7, 0x40), CLEAR_IF(2, 7), NOT_ZERO(1, 7), STORE(1), EXIT}},
	{"the register was loaded over, as the second of two",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), OUT(5, 0x40), FROM, NOT_ZERO(1, 5), STORE(1), EXIT}},
	{"moved out by some",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), OUT_IF(2, 7, 0x40), NOT_ZERO(1, 7), STORE(1), EXIT}},
	{"moved back by some",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), OUT(7, 0x40), NOT_ZERO_IF(2, 1, 7), STORE(1), EXIT}},
	{"compared otherwise",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), OUT(7, 0x40), EQUAL(1, 7), STORE(1), EXIT}},
	{"its sign",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, NOT_ZERO(6, 0), TO(6), OUT(7, 0x40), SIGN(1, 7), STORE(1), EXIT}},
	/* Control goes to where the last one said. */
	{"armed again",
         true,
         true,
         false,
         {THREAD, FROM, TABLE, ARM(7, 4), ARM(7, 4), WAIT, EXIT, EXIT, STORE(7), TO(7), STORE(7), EXIT}},
	{"armed again by some",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, ARM(7, 4), ARM(1, 4), WAIT, EXIT, EXIT, STORE(7), TO(7), STORE(7), EXIT}},
	/* What it is armed with changes once the block that waits has run, and nothing else does. */
	{"armed again in a loop",
         false,
         false,
         false,
         {THREAD, FROM, TABLE, ARM(7, 2), WAIT, EXIT, ARM(7, 2), JUMP(7, -4), EXIT, STORE(7), EXIT}},
	{"armed again in a loop, before a block that arms none",
         false,
         false,
         false,
         {FROM, TABLE, ARM(7, 3), JUMP(1, 0), WAIT, EXIT, ARM(7, 2), JUMP(7, -5), EXIT, STORE(7), EXIT}},
	/* ... where the block leaves another stack pointer than it began with: past the call it is that one. */
	{"armed in a loop around a call",
         true,
         true,
         false,
         {FROM, PUSH(16), CALL(10), TABLE, PUT(8), TO(7), PUT(0), GET(0), STORE(7), PUSH(-16), ARM(7, 1), JUMP(1, -11),
          EXIT, RETURN(7)}},
	{"returned by some", false, false, false, {THREAD, FROM, TABLE, RETURN(1), STORE(7), EXIT}},
	/* A loaded number of 32 bits as an index of 8 bytes each, the way sm_100 is given it; of bytes, after a division. */
	{"times 8 by a shift to the right",
         true,
         true,
         false,
         {FROM, INDEX, TO(7), TIMES_8, TIMES_8_UPPER, ADD(2, 9), ADD(3, 11), STORE(7), EXIT}},
	{"a shift to the right of two words",
         false,
         false,
         false,
         {FROM, TABLE, INDEX, TO(7), READ(7), TIMES_8_OVER, TIMES_8_UPPER, ADD(2, 9), ADD(3, 11), STORE(7), EXIT}},
	{"a quotient and its sign", true, true, false, {FROM, INDEX, EIGHTH, TO(7), ADD(2, 8), ADD_SIGN(1), STORE(7), EXIT}},
	{"a quotient and its upper bits",
         false,
         false,
         false,
         {FROM, INDEX, EIGHTH, TO(7), ADD(2, 8), ADD_SIGN(2), STORE(7), EXIT}},
	/* 16 bits may be a part of an address. */
	{"a half that is not known, multiplied",
         false,
         false,
         true,
         {THREAD, FROM, TABLE, UPPER, NOT_ZERO(2, 10), STORE(2), TO(7), LOWER, EIGHT, MULTIPLY, STORE(7), EXIT}},
};

/* Instructions of the kernel become these, and all behind them ends it. */
static int put(uint8_t *image, size_t bytes, const struct word code[LENGTH])
{
	static const struct word end = EXIT;
	struct elf elf;
	struct elf_section section;
	if (elf_open(image, bytes, &elf) || elf_section_named(&elf, ".text.", KERNEL, &section) ||
	    section.bytes < 16 * LENGTH)
		return -1;
	uint8_t *at = image + (section.data - image);
	for (size_t i = 0; i < section.bytes / 16; i++) {
		const struct word *word = i < LENGTH && code[i].low ? &code[i] : &end;
		memcpy(at + 16 * i, word, 16);
	}
	return 0;
}

/* Is it said to store through `to` alone? With n = 0, or for any values. */
static int is_clear(const uint8_t *image, size_t bytes, bool zero, bool upper)
{
	static const uint8_t block[24];
	uint8_t known[24] = {0}, used[24];
	struct paths_values values = {block, known, used, sizeof block, NULL};
	struct kernel_paths paths = {0};
	bool better = true;
	memset(known + N_OFFSET + (upper ? 2 : 0), VALUE_EXACT, upper ? 2 : 4);
	int err = zero ? paths_for_cubin(image, bytes, KERNEL, &values, &paths, &better)
	               : paths_of_cubin(image, bytes, KERNEL, &paths);
	if (!err && !better)
		err = paths_of_cubin(image, bytes, KERNEL, &paths);
	int clear = err ? -1 : paths.reason == PATHS_CLEAR;
	if (clear == 1 && paths.slots[0].use != SLOT_STORE)
		clear = -1;
	kernel_paths_free(&paths);
	return clear;
}

int main(int argc, char **argv)
{
	size_t bytes;
	unsigned wrong = 0;
	uint8_t *image = argc == 2 ? read_whole(argv[1], &bytes) : NULL;
	if (!image)
		return 2;
	for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
		const struct kernel *kernel = &kernels[i];
		if (put(image, bytes, kernel->code))
			return 2;
		int any = is_clear(image, bytes, false, kernel->upper),
		    zero = is_clear(image, bytes, true, kernel->upper);
		if (any != kernel->clear || zero != kernel->for_zero) {
			printf("%s: clear %d, for 0 %d\n", kernel->what, any, zero);
			wrong++;
		}
	}
	free(image);
	printf("%zu kernels, %u wrong\n", sizeof kernels / sizeof kernels[0], wrong);
	return wrong != 0;
}
