/*
 * What the host and the kernels of digest.cu agree on. Plain C, no include but stdint.h: compiled by the C compiler and
 * by nvcc. A change here means a new digest.ptx (scripts/make_digest).
 */
#ifndef CUCONST_VERDICT_VERIFY_DEVICE_H
#define CUCONST_VERDICT_VERIFY_DEVICE_H

#include <stdint.h>

#define VERIFY_BLOCK 256u       /* threads of a block */
#define VERIFY_JOBS 16u         /* ranges of one launch */
#define VERIFY_WORD 16u         /* bytes of one vector load */
#define VERIFY_CHUNK_WORDS 256u /* vectors of a chunk: VERIFY_CHUNK / VERIFY_WORD */
#define VERIFY_KEY_VECTORS 257u /* the second lane uses the keys of the first, shifted by one vector */
#define VERIFY_KEY_BYTES (VERIFY_KEY_VECTORS * VERIFY_WORD)

/* verify_job.mode */
#define VERIFY_DIGEST 1u  /* the baseline holds one digest a chunk; without: a copy of the bytes */
#define VERIFY_REFRESH 2u /* take the baseline, compare nothing */

#define VERIFY_ENTRY_CHECK "cuconst_verify_check"
#define VERIFY_ENTRY_SETUP "cuconst_verify_setup"

/*
 * One range to look at. Chunks lie at multiples of 4096 of the address, so the first and the last one may be cut by the
 * range's ends. A snapshot's baseline has the bytes of address A at baseline + (A - (start & ~15)): equal alignment on
 * both sides.
 */
struct verify_job {
	uint64_t start, end; /* device addresses, half-open, not empty */
	uint64_t baseline;   /* multiple of 16 */
	uint64_t sequence;   /* written to the slot last; never 0 */
	uint32_t slot;
	uint32_t mode;
	uint32_t first_block; /* blocks [first_block, first_block + blocks) of the grid work on it */
	uint32_t blocks;
};

/* The one parameter of VERIFY_ENTRY_CHECK, by value. */
struct verify_batch {
	uint64_t results; /* struct verify_result of each slot: pinned host memory, as the device sees it */
	uint64_t totals;  /* struct verify_total of each slot: device memory, zero between launches */
	uint64_t keys;    /* VERIFY_KEY_BYTES of device memory */
	uint32_t jobs;
	uint32_t reserved;
	struct verify_job job[VERIFY_JOBS];
};

/* Written by the device, read by the host: `sequence` arrives after the rest. Offsets count from the range's start. */
struct verify_result {
	uint64_t sequence;
	uint64_t first, last; /* changed bytes lie in [first, last) */
	uint64_t bytes;       /* snapshot: how many differ; digest: those of the chunks that differ; 0: no change */
	uint64_t reserved[4]; /* a cache line each, so that no two slots share one */
};

/* Where the blocks of one job meet. All zero means "nothing changed, no block is through". */
struct verify_total {
	unsigned long long first_inverted; /* ~first, so that zero is the start of a maximum */
	unsigned long long last;
	unsigned long long bytes;
	uint32_t through; /* blocks */
	uint32_t reserved;
};

#endif
