#include "tests/unit/verify/reference.h"

#include <string.h>

#define CHUNK 4096u

static uint32_t word(const uint8_t *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t lane(const uint8_t *chunk, const uint8_t *keys)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < CHUNK; i += 8)
		sum += (uint64_t)(uint32_t)(word(chunk + i) + word(keys + i)) *
		       (uint32_t)(word(chunk + i + 4) + word(keys + i + 4));
	return sum;
}

/* A vector without a byte of the range adds nothing, where a vector of zeroes would add its keys' product. */
static uint64_t absent(const uint8_t *keys, unsigned vector)
{
	const uint8_t *key = keys + vector * 16;
	return (uint64_t)word(key) * word(key + 4) + (uint64_t)word(key + 8) * word(key + 12);
}

static void widen(struct verify_result *result, uint64_t first, uint64_t last, uint64_t bytes)
{
	if (!result->bytes || first < result->first)
		result->first = first;
	if (!result->bytes || last > result->last)
		result->last = last;
	result->bytes += bytes;
}

static void digest(const struct verify_job *job, const uint8_t *data, uint8_t *baseline, const uint8_t *keys,
                   struct verify_result *result)
{
	for (uint64_t at = job->start / CHUNK * CHUNK; at < job->end; at += CHUNK, baseline += 16) {
		uint64_t first = at < job->start ? job->start : at;
		uint64_t last = at + CHUNK > job->end ? job->end : at + CHUNK;
		uint8_t chunk[CHUNK] = {0};
		memcpy(chunk + (first - at), data + (first - job->start), last - first);
		uint64_t now[2] = {lane(chunk, keys), lane(chunk, keys + 16)};
		for (unsigned vector = 0; vector < CHUNK / 16; vector++) {
			if (at + vector * 16 + 16 > first && at + vector * 16 < last)
				continue;
			now[0] -= absent(keys, vector);
			now[1] -= absent(keys + 16, vector);
		}
		if (memcmp(baseline, now, 16) && !(job->mode & VERIFY_REFRESH))
			widen(result, first - job->start, last - job->start, last - first);
		memcpy(baseline, now, 16);
	}
}

void reference_job(const struct verify_job *job, const uint8_t *data, uint8_t *baseline, const uint8_t *keys,
                   struct verify_result *ret_result)
{
	struct verify_result result = {0};
	if (job->mode & VERIFY_DIGEST) {
		digest(job, data, baseline, keys, &result);
	} else {
		uint8_t *copy = baseline + job->start % 16;
		for (uint64_t i = 0; i < job->end - job->start; i++)
			if (copy[i] != data[i] && !(job->mode & VERIFY_REFRESH))
				widen(&result, i, i + 1, 1);
		memcpy(copy, data, job->end - job->start);
	}
	ret_result->first = result.first;
	ret_result->last = result.last;
	ret_result->bytes = result.bytes;
}

uint64_t reference_baseline_bytes(uint64_t start, uint64_t end, uint32_t mode)
{
	uint64_t unit = mode & VERIFY_DIGEST ? CHUNK : 16;
	return (end - start / unit * unit + unit - 1) / unit * 16;
}
