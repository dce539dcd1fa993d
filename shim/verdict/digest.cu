/*
 * The device code of verification; scripts/make_digest turns it into digest.ptx, which is what gets loaded.
 *
 * Kept to plain loads, stores, integer arithmetic, shuffles and atomics, so that any GPU since sm_70 and the software
 * GPU's interpreter run it. Nothing outside [start, end) is read: at the two ends, where a vector sticks out, bytes are
 * read one by one.
 */
#include "verify_device.h"

typedef unsigned long long u64;
typedef unsigned int u32;

struct change {
	u64 first, last, bytes; /* offsets from the range's start; bytes 0: none */
};

struct vector {
	u64 low, high;
};

/* A device address as a pointer that the compiler knows to be global memory. */
template <typename type> static __device__ type *global(u64 address)
{
	type *pointer = (type *)address;
	__builtin_assume(__isGlobal(pointer));
	return pointer;
}

/* The 16 bytes at `address`, of which those outside [from, to) are not touched and read as zero. */
static __device__ struct vector read_vector(u64 address, u32 from, u32 to)
{
	struct vector value = {0, 0};
	if (from == 0 && to == 16) {
		ulonglong2 whole = *global<const ulonglong2>(address);
		value.low = whole.x;
		value.high = whole.y;
		return value;
	}
#pragma unroll 1
	for (u32 i = from; i < to; i++) {
		u64 byte = *global<const unsigned char>(address + i);
		if (i < 8)
			value.low |= byte << (i * 8);
		else
			value.high |= byte << (i * 8 - 64);
	}
	return value;
}

static __device__ void write_vector(u64 address, struct vector value, u32 from, u32 to)
{
	if (from == 0 && to == 16) {
		*global<ulonglong2>(address) = make_ulonglong2(value.low, value.high);
		return;
	}
#pragma unroll 1
	for (u32 i = from; i < to; i++)
		*global<unsigned char>(address + i) =
			(unsigned char)(i < 8 ? value.low >> (i * 8) : value.high >> (i * 8 - 64));
}

static __device__ u32 part_from(u64 address, u64 start)
{
	return address < start ? (u32)(start - address) : 0;
}

static __device__ u32 part_to(u64 address, u64 end)
{
	return address + 16 > end ? (u32)(end - address) : 16;
}

static __device__ void note(struct change *change, u64 first, u64 last, u64 bytes)
{
	if (!change->bytes || first < change->first)
		change->first = first;
	if (!change->bytes || last > change->last)
		change->last = last;
	change->bytes += bytes;
}

static __device__ struct change snapshot(const struct verify_job *job, u32 block)
{
	struct change change = {0, 0, 0};
	u64 start = job->start, end = job->end;
	u64 low = start & ~15ull;
	bool refresh = job->mode & VERIFY_REFRESH;

#pragma unroll 1
	for (u64 at = low + 16ull * (block * VERIFY_BLOCK + threadIdx.x); at < end;
	     at += 16ull * VERIFY_BLOCK * job->blocks) {
		u64 copy = job->baseline + (at - low);
		u32 from = part_from(at, start), to = part_to(at, end);
		struct vector old = read_vector(copy, from, to);
		struct vector now = read_vector(at, from, to);
		u64 low_difference = now.low ^ old.low, high_difference = now.high ^ old.high;
		if (!(low_difference | high_difference))
			continue;
		write_vector(copy, now, from, to);
		if (refresh)
			continue;
#pragma unroll 1
		for (u32 i = from; i < to; i++)
			if ((i < 8 ? low_difference >> (i * 8) : high_difference >> (i * 8 - 64)) & 0xff)
				note(&change, at + i - start, at + i + 1 - start, 1);
	}
	return change;
}

/* What one vector adds to one lane of the digest. */
static __device__ u64 product(uint4 word, uint4 key)
{
	return (u64)(word.x + key.x) * (u64)(word.y + key.y) + (u64)(word.z + key.z) * (u64)(word.w + key.w);
}

static __device__ u64 across_warp(u64 sum)
{
#pragma unroll
	for (u32 lane = 16; lane; lane /= 2)
		sum += __shfl_xor_sync(0xffffffffu, sum, lane);
	return sum;
}

/* One warp takes one chunk at a time; lane t holds the keys of the vectors t, t + 32, ... for the whole job. */
static __device__ struct change digest(const struct verify_job *job, u64 keys, u32 block)
{
	struct change change = {0, 0, 0};
	u64 start = job->start, end = job->end;
	u32 lane = threadIdx.x % 32;
	u64 keys_here = keys + lane * 16;
	uint4 key[8], next[8];
#pragma unroll
	for (u32 i = 0; i < 8; i++) {
		key[i] = *global<const uint4>(keys_here + i * 512);
		next[i] = *global<const uint4>(keys_here + i * 512 + 16);
	}

	u64 low = start & ~4095ull;
	u64 chunks = (end - low + 4095) / 4096;
#pragma unroll 1
	for (u64 chunk = block * (VERIFY_BLOCK / 32) + threadIdx.x / 32; chunk < chunks;
	     chunk += (u64)job->blocks * (VERIFY_BLOCK / 32)) {
		u64 at = low + chunk * 4096;
		ulonglong2 *kept = global<ulonglong2>(job->baseline + chunk * 16);
		ulonglong2 old = *kept;
		u64 one = 0, two = 0;
		if (at >= start && at + 4096 <= end) {
			uint4 word[8];
#pragma unroll
			for (u32 i = 0; i < 8; i++)
				word[i] = *global<const uint4>(at + (i * 32 + lane) * 16);
#pragma unroll
			for (u32 i = 0; i < 8; i++) {
				one += product(word[i], key[i]);
				two += product(word[i], next[i]);
			}
		} else {
#pragma unroll 1
			for (u32 i = 0; i < 8; i++) {
				u64 here = at + (i * 32 + lane) * 16;
				if (here + 16 <= start || here >= end)
					continue;
				struct vector part = read_vector(here, part_from(here, start), part_to(here, end));
				uint4 word = make_uint4((u32)part.low, (u32)(part.low >> 32), (u32)part.high,
				                        (u32)(part.high >> 32));
				one += product(word, *global<const uint4>(keys_here + i * 512));
				two += product(word, *global<const uint4>(keys_here + i * 512 + 16));
			}
		}
		one = across_warp(one);
		two = across_warp(two);
		if (lane || (one == old.x && two == old.y))
			continue;
		*kept = make_ulonglong2(one, two);
		if (job->mode & VERIFY_REFRESH)
			continue;
		u64 first = at < start ? start : at;
		u64 last = at + 4096 > end ? end : at + 4096;
		note(&change, first - start, last - start, last - first);
	}
	return change;
}

extern "C" __global__ void __launch_bounds__(VERIFY_BLOCK)
cuconst_verify_check(const __grid_constant__ struct verify_batch batch)
{
	u32 index = 0;
	while (index + 1 < batch.jobs && blockIdx.x >= batch.job[index + 1].first_block)
		index++;
	const struct verify_job *job = &batch.job[index];
	u32 block = blockIdx.x - job->first_block;
	struct verify_total *total = global<struct verify_total>(batch.totals) + job->slot;

	struct change change = job->mode & VERIFY_DIGEST ? digest(job, batch.keys, block) : snapshot(job, block);
	if (change.bytes) {
		atomicMax(&total->first_inverted, ~change.first);
		atomicMax(&total->last, change.last);
		atomicAdd(&total->bytes, change.bytes);
	}
	__syncthreads();
	if (threadIdx.x)
		return;
	__threadfence();
	if (job->blocks > 1 && atomicAdd(&total->through, 1) != job->blocks - 1)
		return;
	__threadfence();

	/* The last block: everybody's changes are in `total`. It becomes zero again for the slot's next user. */
	volatile struct verify_total *sum = total;
	volatile struct verify_result *result = global<struct verify_result>(batch.results) + job->slot;
	u64 bytes = sum->bytes;
	if (bytes) {
		result->first = ~sum->first_inverted;
		result->last = sum->last;
		sum->first_inverted = 0;
		sum->last = 0;
		sum->bytes = 0;
	}
	result->bytes = bytes;
	sum->through = 0;
	__threadfence_system();
	result->sequence = job->sequence;
}

/*
 * Copies `words` 16-byte vectors: how keys and zeroes get from pinned memory to the device, as no copy of the driver is
 * used.
 */
extern "C" __global__ void cuconst_verify_setup(uint4 *to, const uint4 *from, u32 words)
{
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
		to[i] = from[i];
}
