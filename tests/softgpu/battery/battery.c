/*
 * Runs a list of PTX kernels (generate.py writes it) on whatever libcuda.so.1 is found: the software GPU or a real one.
 *
 *     battery LIST HASHES.tsv OUTPUTS.bin [--only NAME] [--exact]
 *
 * HASHES.tsv: for each kernel NAME, CHECK, bytes of output, hash of 128 bits; or NAME, CHECK, "error", what the driver
 * said. OUTPUTS.bin: all outputs in the list's order, those of exact kernels only with --exact.
 * Inputs are functions of the list's seeds alone: integers, without any of the host's mathematics.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARAMS 24u

struct param {
	bool is_buffer, is_in, is_out, joined; /* joined: a further word of the structure that began before */
	char kind[16];
	size_t bytes;
	uint64_t value;
	CUdeviceptr device;
};

struct kernel {
	char name[96], entry[96], check[32];
	unsigned grid[3], block[3], shared;
	unsigned long long seed;
	struct param params[PARAMS];
	unsigned param_count;
	char *text;
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "battery: %s\n", what);
	exit(1);
}

static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Words worth trying: ends of ranges, small numbers, single bits, any bits. */
static uint64_t word_of_bits(uint64_t random, unsigned bits)
{
	static const uint64_t ends[] = {0,
	                                1,
	                                UINT64_MAX,
	                                0x80,
	                                0x7f,
	                                0xff,
	                                0x7fff,
	                                0x8000,
	                                0xffff,
	                                0x7fffffff,
	                                0x80000000,
	                                0xffffffff,
	                                0x80000001,
	                                0xfffffffe,
	                                31,
	                                32,
	                                63,
	                                64,
	                                0x7fffffffffffffff,
	                                0x8000000000000000};
	uint64_t value = mix(random);

	switch (random & 7) {
	case 0:
		value = ends[value % (sizeof(ends) / sizeof(ends[0]))];
		break;
	case 1:
		value = value % 256;
		break;
	case 2:
		value = UINT64_C(1) << value % bits;
		break;
	case 3:
		value = 0 - value % 64;
		break;
	default:
		break;
	}
	return bits == 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

/*
 * A float's bits, of any format: specials, subnormal numbers, neighbours of integers and of halves, near one, anything.
 */
static uint64_t word_of_float(uint64_t random, unsigned exponent_bits, unsigned fraction_bits)
{
	uint64_t value = mix(random), fraction = value >> 16 & ((UINT64_C(1) << fraction_bits) - 1);
	uint64_t sign = (value & 1) << (exponent_bits + fraction_bits), most = (UINT64_C(1) << exponent_bits) - 1,
		 bias = most >> 1;
	uint64_t exponent;

	switch (random & 15) {
	case 0: /* zero, infinity, one, the largest, the least */
		exponent = (const uint64_t[]){0, most, bias, most - 1, 1}[value >> 8 & 7 & -((value >> 8 & 7) < 5)];
		fraction = exponent == most - 1 ? (UINT64_C(1) << fraction_bits) - 1 : 0;
		break;
	case 1: /* NaN, quiet or not */
		exponent = most;
		fraction |= fraction == 0;
		break;
	case 2:
		exponent = 0;
		break;
	case 3: /* at the edge of subnormal results */
		exponent = 1 + value % 3;
		break;
	case 4:
	case 5: /* integers and halves between them */
		exponent = bias + (value >> 3) % (fraction_bits + 2);
		fraction &= ~((UINT64_C(1) << fraction_bits) - 1) |
		            (UINT64_MAX << (fraction_bits > 5 ? fraction_bits - 5 : 0));
		break;
	case 6:
	case 7: /* at the ends of the integer types */
		exponent = bias + (const unsigned char[]){7, 8, 15, 16, 31, 32, 62, 63}[value >> 4 & 7];
		exponent = exponent > most - 1 ? most - 1 : exponent;
		break;
	case 8:
	case 9:
	case 10:
	case 11:
		exponent = bias - 8 + value % 16;
		break;
	default:
		exponent = (value >> 40) % (most + 1);
		break;
	}
	return sign | exponent << fraction_bits | fraction;
}

/* What a buffer of a kind holds in its 32-bit word n (or half of a 64-bit one). */
static uint32_t word_of_kind(const char *kind, uint64_t seed, size_t n)
{
	uint64_t random = mix(seed ^ mix(n)), wide = mix(seed ^ mix(n / 2));

	if (!strcmp(kind, "mixed")) {
		unsigned place = n & 15;

		return place < 4    ? (uint32_t)word_of_bits(random, 32)
		       : place < 8  ? (uint32_t)word_of_float(random, 8, 23)
		       : place < 12 ? (uint32_t)(word_of_float(wide, 11, 52) >> (n & 1) * 32)
		       : place < 14 ? (uint32_t)(word_of_float(random, 5, 10) << 16 | word_of_float(mix(random), 5, 10))
		                    : (uint32_t)(word_of_float(random, 8, 7) << 16 | word_of_float(mix(random), 8, 7));
	}
	if (!strcmp(kind, "bits"))
		return (uint32_t)random;
	if (!strcmp(kind, "small"))
		return (uint32_t)(random & 255);
	if (!strcmp(kind, "small64"))
		return n & 1 ? 0 : (uint32_t)(random & 255);
	/* Between -16 and 16. */
	if (!strcmp(kind, "f32"))
		return (uint32_t)((random & 1) << 31 | (120 + (random >> 1) % 11) << 23 | random >> 41);
	if (!strcmp(kind, "f64"))
		return n & 1 ? (uint32_t)((wide & 1) << 31 | (1016 + (wide >> 1) % 11) << 20 | wide >> 44)
		             : (uint32_t)wide;
	if (!strcmp(kind, "f16"))
		return (uint32_t)((random & 1) << 31 | (12 + (random >> 1 & 3)) << 26 | (random >> 8 & 1023) << 16 |
		                  (random >> 20 & 1) << 15 | (12 + (random >> 21 & 3)) << 10 | (random >> 30 & 1023));
	if (!strcmp(kind, "bf16"))
		return (uint32_t)((random & 1) << 31 | (124 + (random >> 1 & 3)) << 23 | (random >> 8 & 127) << 16 |
		                  (random >> 20 & 1) << 15 | (124 + (random >> 21 & 3)) << 7 | (random >> 30 & 127));
	if (strcmp(kind, "zero"))
		die("a buffer of unknown kind");
	return 0;
}

struct hash {
	uint64_t a, b;
};

static void hash_add(struct hash *hash, const unsigned char *bytes, size_t count)
{
	for (size_t n = 0; n < count; n++) {
		hash->a = (hash->a ^ bytes[n]) * UINT64_C(0x100000001b3);
		hash->b = mix(hash->b + bytes[n]);
	}
}

static bool read_kernel(FILE *list, struct kernel *kernel)
{
	char line[512];
	size_t bytes = 0;

	memset(kernel, 0, sizeof(*kernel));
	if (!fgets(line, sizeof(line), list))
		return false;
	if (sscanf(line, "kernel %95s %95s %u %u %u %u %u %u %u %llu %31s", kernel->name, kernel->entry,
	           &kernel->grid[0], &kernel->grid[1], &kernel->grid[2], &kernel->block[0], &kernel->block[1],
	           &kernel->block[2], &kernel->shared, &kernel->seed, kernel->check) != 11)
		die("the list has a bad kernel line");
	while (fgets(line, sizeof(line), list) && sscanf(line, "ptx %zu", &bytes) != 1) {
		char what[8], way[8], kind[16] = "zero";
		struct param *param = &kernel->params[kernel->param_count++];
		unsigned long long value = 0;

		if (kernel->param_count > PARAMS || sscanf(line, "%7s %7s", what, way) != 2)
			die("the list has a bad param line");
		param->joined = !strcmp(what, "field");
		param->is_buffer = strcmp(way, "value");
		param->is_in = !strncmp(way, "in", 2);
		param->is_out = strstr(way, "out");
		if (param->is_in       ? sscanf(line, "%*s %*s %15s %zu", kind, &param->bytes) != 2
		    : param->is_buffer ? sscanf(line, "%*s out %zu", &param->bytes) != 1
		                       : sscanf(line, "%*s value %zu %llx", &param->bytes, &value) != 2)
			die("the list has a bad param line");
		strcpy(param->kind, kind);
		param->value = value;
	}
	if (!bytes)
		return true;
	kernel->text = calloc(1, bytes + 1);
	if (!kernel->text || fread(kernel->text, 1, bytes, list) != bytes)
		die("the list ends early");
	return true;
}

#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		CUresult result_ = (call);                                                                             \
		if (result_) {                                                                                         \
			*ret_what = #call;                                                                             \
			return result_;                                                                                \
		}                                                                                                      \
	} while (0)

static CUresult fill(struct kernel *kernel, const char **ret_what)
{
	for (unsigned n = 0; n < kernel->param_count; n++) {
		struct param *param = &kernel->params[n];
		uint32_t *words;

		if (!param->is_buffer)
			continue;
		TRY(cuMemAlloc(&param->device, param->bytes));
		words = malloc(param->bytes + 8);
		if (!words)
			die("out of memory");
		for (size_t word = 0; word < (param->bytes + 3) / 4; word++)
			words[word] = param->is_in ? word_of_kind(param->kind, mix(kernel->seed + n), word) : 0xa5a5a5a5;
		CUresult result = cuMemcpyHtoD(param->device, words, param->bytes);
		free(words);
		TRY(result);
	}
	return CUDA_SUCCESS;
}

static CUresult run(struct kernel *kernel, CUmodule *module, char *log, size_t log_bytes, const char **ret_what)
{
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)(uintptr_t)log_bytes}, *params[PARAMS];
	uint64_t words[PARAMS];
	unsigned count = 0;
	CUfunction function;

	TRY(cuModuleLoadDataEx(module, kernel->text, 2, options, values));
	TRY(cuModuleGetFunction(&function, *module, kernel->entry));
	CUresult result = fill(kernel, ret_what);
	if (result)
		return result;
	for (unsigned n = 0; n < kernel->param_count; n++) {
		words[n] = kernel->params[n].is_buffer ? kernel->params[n].device : kernel->params[n].value;
		if (!kernel->params[n].joined)
			params[count++] = &words[n];
	}
	if (kernel->shared > 49152)
		TRY(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)kernel->shared));
	TRY(cuLaunchKernel(function, kernel->grid[0], kernel->grid[1], kernel->grid[2], kernel->block[0],
	                   kernel->block[1], kernel->block[2], kernel->shared, NULL, params, NULL));
	TRY(cuCtxSynchronize());
	return CUDA_SUCCESS;
}

static CUresult collect(struct kernel *kernel, FILE *outputs, struct hash *hash, size_t *ret_bytes, const char **ret_what)
{
	for (unsigned n = 0; n < kernel->param_count; n++) {
		struct param *param = &kernel->params[n];

		if (!param->is_out)
			continue;
		unsigned char *bytes = malloc(param->bytes);
		if (!bytes)
			die("out of memory");
		CUresult result = cuMemcpyDtoH(bytes, param->device, param->bytes);
		if (!result) {
			hash_add(hash, bytes, param->bytes);
			*ret_bytes += param->bytes;
			if (outputs && fwrite(bytes, 1, param->bytes, outputs) != param->bytes)
				die("cannot write the outputs");
		}
		free(bytes);
		TRY(result);
	}
	return CUDA_SUCCESS;
}

/*
 * A fault leaves the context unusable: everything of this kernel and of the context goes, and the next one starts anew.
 */
static void renew(CUdevice device)
{
	CUcontext context;

	cuDevicePrimaryCtxReset(device);
	if (cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context))
		die("no context after a fault");
}

int main(int argc, char **argv)
{
	const char *only = NULL;
	bool exact = false;
	unsigned count = 0, errors = 0;
	CUdevice device;
	CUcontext context;

	for (int n = 4; n < argc; n++) {
		if (!strcmp(argv[n], "--exact"))
			exact = true;
		else if (!strcmp(argv[n], "--only") && n + 1 < argc)
			only = argv[++n];
		else
			die("unknown argument");
	}
	if (argc < 4)
		die("usage: battery LIST HASHES.tsv OUTPUTS.bin [--only NAME] [--exact]");
	FILE *list = fopen(argv[1], "r"), *hashes = fopen(argv[2], "w"), *outputs = fopen(argv[3], "w");
	if (!list || !hashes || !outputs)
		die("cannot open the files");
	if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
	    cuCtxSetCurrent(context))
		die("no device");
	char *text = NULL;
	for (struct kernel kernel; read_kernel(list, &kernel);) {
		struct hash hash = {UINT64_C(0xcbf29ce484222325), 0};
		bool raw = exact || strcmp(kernel.check, "exact");
		const char *what = "", *error = "?";
		CUmodule module = NULL;
		char log[512] = "";
		size_t bytes = 0;

		if (kernel.text) {
			free(text);
			text = kernel.text;
		}
		kernel.text = text;
		if (!text)
			die("the first kernel has no text");
		if (only && strcmp(only, kernel.name))
			continue;
		CUresult result = run(&kernel, &module, log, sizeof(log), &what);
		if (!result)
			result = collect(&kernel, raw ? outputs : NULL, &hash, &bytes, &what);
		count++;
		if (result) {
			errors++;
			cuGetErrorName(result, &error);
			log[strcspn(log, "\n")] = 0;
			fprintf(hashes, "%s\t%s\terror\t%s by %s: %s\n", kernel.name, kernel.check, error, what, log);
			renew(device);
			continue;
		}
		fprintf(hashes, "%s\t%s\t%zu\t%016llx%016llx\n", kernel.name, kernel.check, bytes,
		        (unsigned long long)hash.a, (unsigned long long)hash.b);
		for (unsigned n = 0; n < kernel.param_count; n++)
			if (kernel.params[n].is_buffer)
				cuMemFree(kernel.params[n].device);
		cuModuleUnload(module);
	}
	free(text);
	fclose(list);
	if (fclose(hashes) || fclose(outputs))
		die("cannot write the results");
	fprintf(stderr, "battery: %u kernels, %u errors\n", count, errors);
	return errors != 0;
}
