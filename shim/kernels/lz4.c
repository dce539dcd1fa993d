#include <errno.h>
#include <string.h>

#include "shim/kernels/fatbin.h"

/* A length of 15 goes on in bytes of 255 each. */
static int more_length(const uint8_t **from, const uint8_t *end, size_t *length)
{
	if (*length != 15)
		return 0;
	uint8_t byte;
	do {
		if (*from == end)
			return -EINVAL;
		byte = *(*from)++;
		*length += byte;
	} while (byte == 255);
	return 0;
}

int lz4_unpack(uint8_t *to, size_t bytes, const uint8_t *from, size_t from_bytes)
{
	/* There may be no pointer to nothing, and none may be added to. */
	if (!from_bytes || !bytes)
		return from_bytes || bytes ? -EINVAL : 0;
	const uint8_t *end = from + from_bytes;
	size_t done = 0;
	while (from < end) {
		uint8_t token = *from++;
		size_t literals = token >> 4, match = token & 15;
		if (more_length(&from, end, &literals) || literals > (size_t)(end - from) || literals > bytes - done)
			return -EINVAL;
		memcpy(to + done, from, literals);
		done += literals;
		from += literals;
		if (from == end)
			break; /* the last sequence has no match */
		if (end - from < 2)
			return -EINVAL;
		size_t distance = from[0] | (size_t)from[1] << 8;
		from += 2;
		if (more_length(&from, end, &match))
			return -EINVAL;
		match += 4;
		if (!distance || distance > done || match > bytes - done)
			return -EINVAL;
		/* May overlap itself: byte by byte. */
		for (size_t i = 0; i < match; i++, done++)
			to[done] = to[done - distance];
	}
	return done == bytes ? 0 : -EINVAL;
}
