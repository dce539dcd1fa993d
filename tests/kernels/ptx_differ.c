/*
 * The same kernels by their PTX and by the machine code that ptxas made of it.
 *
 * usage: ptx_differ print FIRST_SEED COUNT             one module of generated kernels, for ptxas
 *        ptx_differ check FIRST_SEED COUNT FILE.cubin ... the same module and what ptxas made of it
 *        ptx_differ compare FILE.ptx FILE.cubin ...
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/paths.h"
#include "tests/kernels/file.h"
#include "tests/kernels/ptx_generate.h"
#include "tests/kernels/ptx_text.h"

static void print(FILE *out, uint64_t first, uint64_t count)
{
	static const char entry[] = ".visible .entry k(";

	for (uint64_t seed = first; seed < first + count; seed++) {
		struct generated kernel = ptx_generate(seed);
		char *at = strstr(kernel.text, entry);

		if (seed == first)
			fprintf(out, "%.*s", (int)(at - kernel.text), kernel.text);
		fprintf(out, ".visible .entry k%" PRIu64 "(%s", seed, at + sizeof(entry) - 1);
		free(kernel.text);
	}
}

/*
 * How two answers differ. Of generated kernels (k<seed>) it is known which slots hold pointers; what either says of the numbers behind them
 * does not matter at a launch, because no number is an address of protected memory.
 */
struct classes {
	unsigned kernels, same, both_clear;
	unsigned ptx_unclear, sass_unclear; /* one of them alone */
	unsigned other_reason;              /* neither is clear, for different reasons */
	unsigned missed;                    /* both clear; the machine code stores through a pointer, PTX does not */
	unsigned numbers;                   /* the same, but only through a number */
	unsigned extra;                     /* both clear; PTX stores through a pointer, the machine code does not */
	unsigned loads, bases;              /* slots that differ in `load` or in being an only base, stores alike */
	unsigned reasons[2][PATHS_LIMIT + 1];
};

static void compare_slots(const struct kernel_paths *ptx, const struct kernel_paths *sass, size_t pointers,
                          struct classes *classes)
{
	size_t count = ptx->slot_count < sass->slot_count ? ptx->slot_count : sass->slot_count;
	unsigned missed = 0, extra = 0, numbers = 0;

	for (size_t i = 0; i < count; i++) {
		bool left = ptx->slots[i].use == SLOT_STORE, right = sass->slots[i].use == SLOT_STORE;

		missed += i < pointers && right && !left;
		numbers += i >= pointers && right && !left;
		extra += i < pointers && left && !right;
		classes->loads += left == right && ptx->slots[i].use != sass->slots[i].use;
		classes->bases += left && right && ptx->slots[i].only_base != sass->slots[i].only_base;
	}
	classes->missed += missed > 0 || ptx->slot_count < sass->slot_count;
	classes->numbers += numbers && !missed;
	classes->extra += extra > 0;
	classes->same += !missed && !extra && !numbers;
}

static void compare_kernel(const char *name, const char *text, size_t text_bytes, const void *image, size_t image_bytes,
                           struct classes *classes)
{
	struct kernel_paths ptx, sass;
	char left[4096], right[4096];
	unsigned missed = classes->missed;
	size_t pointers = SIZE_MAX;

	if (name[0] == 'k' && name[1] >= '0' && name[1] <= '9') {
		struct generated kernel = ptx_generate(strtoull(name + 1, NULL, 10));

		pointers = kernel.pointers;
		free(kernel.text);
	}
	if (paths_of_ptx(text, text_bytes, name, &ptx) != 0 || paths_of_cubin(image, image_bytes, name, &sass) != 0) {
		fprintf(stderr, "%s: in one image only\n", name);
		exit(1);
	}
	classes->kernels++;
	classes->reasons[0][ptx.reason]++;
	classes->reasons[1][sass.reason]++;
	if (ptx.reason == PATHS_CLEAR && sass.reason == PATHS_CLEAR) {
		classes->both_clear++;
		compare_slots(&ptx, &sass, pointers, classes);
	} else if (ptx.reason == sass.reason) {
		classes->same++;
	} else if (ptx.reason == PATHS_CLEAR) {
		classes->sass_unclear++;
	} else if (sass.reason == PATHS_CLEAR) {
		classes->ptx_unclear++;
	} else {
		classes->other_reason++;
	}
	if (missed != classes->missed || getenv("DIFFER_VERBOSE")) {
		ptx_paths_spell(&ptx, left, sizeof(left));
		ptx_paths_spell(&sass, right, sizeof(right));
		if (strcmp(left, right) != 0)
			fprintf(stderr, "%s\n  ptx  %s (line %u)\n  sass %s (0x%x)\n", name, left, ptx.reason_offset,
			        right, sass.reason_offset);
	}
	kernel_paths_free(&ptx);
	kernel_paths_free(&sass);
}

static bool compare(char *text, size_t text_bytes, const char *cubin_path)
{
	size_t image_bytes = 0;
	void *image = read_whole(cubin_path, &image_bytes);
	struct classes classes = {.kernels = 0};

	if (!image) {
		fprintf(stderr, "%s cannot be read\n", cubin_path);
		return false;
	}
	for (char *at = memmem(text, text_bytes, ".entry", 6); at;
	     at = memmem(at, text_bytes - (size_t)(at - text), ".entry", 6)) {
		char name[512];

		at += 6;
		if (sscanf(at, " %511[^( \n\t]", name) == 1)
			compare_kernel(name, text, text_bytes, image, image_bytes, &classes);
	}
	printf("%s: %u kernels, %u alike, %u with both clear; ptx alone unclear %u, machine code alone unclear %u, other reason %u, "
	       "more stores by machine code %u (and %u through numbers alone), by ptx %u; loads %u, bases %u\n",
	       cubin_path, classes.kernels, classes.same, classes.both_clear, classes.ptx_unclear, classes.sass_unclear,
	       classes.other_reason, classes.missed, classes.numbers, classes.extra, classes.loads, classes.bases);
	for (int side = 0; side < 2; side++)
		for (int i = 1; i <= PATHS_LIMIT; i++)
			if (classes.reasons[side][i])
				printf("  %s: %u %s\n", side ? "machine code" : "ptx", classes.reasons[side][i],
				       ptx_reason_word((enum paths_reason)i));
	free(image);
	/* Ground truth shows that PTX misses no store, so more stores in machine code are its over-approximation; much of it would be a fault. */
	return classes.kernels > 0 && classes.both_clear >= classes.kernels / 2 &&
	       classes.missed <= 1 + classes.kernels / 20 && classes.extra <= 1 + classes.kernels / 10;
}

int main(int argc, char **argv)
{
	bool check = argc >= 5 && strcmp(argv[1], "check") == 0, good = true;
	char *text = NULL;
	size_t bytes = 0;

	if (argc == 4 && strcmp(argv[1], "print") == 0) {
		print(stdout, strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
		return 0;
	}
	if (!check && (argc < 4 || strcmp(argv[1], "compare") != 0)) {
		fprintf(stderr,
		        "usage: ptx_differ print FIRST COUNT | check FIRST COUNT FILE.cubin ... | compare FILE.ptx FILE.cubin ...\n");
		return 2;
	}
	if (check) {
		FILE *out = open_memstream(&text, &bytes);

		print(out, strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
		fclose(out);
	} else if (!(text = read_whole(argv[2], &bytes))) {
		fprintf(stderr, "%s cannot be read\n", argv[2]);
		return 2;
	}
	for (int i = check ? 4 : 3; i < argc; i++)
		good &= compare(text, bytes, argv[i]);
	free(text);
	return !good;
}
