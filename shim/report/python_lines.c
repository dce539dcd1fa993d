#include <stdatomic.h>
#include <string.h>

#include "shim/report/python_layout.h"

#define LINES 4096
#define WORD sizeof(uint64_t)
#define BLOCK (4 * WORD)
#define LINE_BITS 24 /* lines beyond are not remembered */

/* A word more. Rotated, since a product hands nothing down. */
static inline uint64_t mixed(uint64_t key, uint64_t word)
{
	key ^= word;
	return (key << 29 | key >> 35) * 0x9e3779b97f4a7c15u;
}

/* Four words at a time, none of which waits for another. */
static inline void mix_block(uint64_t key[4], const unsigned char *bytes)
{
	uint64_t word[4];

	memcpy(word, bytes, BLOCK);
	for (int i = 0; i < 4; i++)
		key[i] = mixed(key[i], word[i]);
}

/* Everything that a line depends on, as 64 bits. */
static uint64_t line_key(const unsigned char *table, uint64_t size, int first_line, int64_t at)
{
	uint64_t key[4] = {1, 2, 3, 4}, word;
	uint64_t done = 0;

	for (; size - done > BLOCK; done += BLOCK)
		mix_block(key, table + done);
	if (size >= BLOCK) {
		mix_block(key, table + size - BLOCK); /* with a part of the one before: the size says which */
		done = size;
	}
	for (; done < size; done += WORD) {
		word = 0;
		memcpy(&word, table + done, size - done < WORD ? size - done : WORD);
		key[0] = mixed(key[0], word);
	}
	for (int i = 1; i < 4; i++)
		key[0] = mixed(key[0], key[i]);
	key[0] = mixed(mixed(mixed(key[0], size), (uint32_t)first_line), (uint64_t)at);
	return key[0] ^ key[0] >> 32;
}

/*
 * Decoding goes through the table entry by entry, its words are read four at a time. An entry is one word, the key's
 * upper bits and the line, so it cannot be torn.
 */
int python_line_known(enum python_lines format, const unsigned char *table, uint64_t size, int first_line, int64_t at)
{
	static _Atomic uint64_t lines[LINES];
	uint64_t key = line_key(table, size, first_line, at), entry;
	_Atomic uint64_t *place = &lines[key % LINES];
	int line;

	entry = atomic_load_explicit(place, memory_order_relaxed);
	if (entry && !((entry ^ key) >> LINE_BITS))
		return (int)(entry & ((1u << LINE_BITS) - 1));
	line = python_line(format, table, size, first_line, at);
	if (line > 0 && line < 1 << LINE_BITS)
		atomic_store_explicit(place, key >> LINE_BITS << LINE_BITS | (uint64_t)line, memory_order_relaxed);
	return line;
}
