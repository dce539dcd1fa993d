/*
 * Answers for the values that a launch has: found again, bounded in number, gone with the code they are of, and asked for by many threads at once.
 *
 *     values CODE_FOLDER
 */
#include <pthread.h>

#include "shim/kernels/cache.h"
#include "shim/kernels/function.h"
#include "shim/kernels/variants.h"
#include "tests/unit/images/check.h"
#include "tests/unit/images/fake.h"

#define THREADS 4
#define ROUNDS 200

/* a, out, table, mode: stores through the table where `test` of the mode is true, else through slot `out`. */
#define KERNEL_TEXT(out, test)                                                                                         \
	".version 7.0\n.target sm_60\n.address_size 64\n"                                                              \
	".visible .entry which(.param .u64 a, .param .u64 out, .param .u64 table, .param .u64 mode)\n{\n"              \
	"\t.reg .b64 %rd<6>;\n\t.reg .b32 %r<2>;\n\t.reg .pred %p<2>;\n"                                               \
	"\tld.param.u64 %rd1, [a];\n\tld.param.u64 %rd2, [mode];\n\tld.param.u64 %rd3, [" out "];\n" test              \
	"\n\t@!%p1 bra DONE;\n\tld.param.u64 %rd4, [table];\n\tld.global.u64 %rd3, [%rd4];\n"                          \
	"DONE:\n\tst.global.u32 [%rd3], 1;\n\tret;\n}\n"

static const char by_mode[] = KERNEL_TEXT("out", "\tsetp.ne.u64 %p1, %rd2, 0;");
static const char turned[] = KERNEL_TEXT("a", "\tsetp.eq.u64 %p1, %rd2, 0;");
static const char by_two[] = KERNEL_TEXT("out", "\tsetp.ne.u64 %p1, %rd2, %rd1;");
static const char undecided[] = KERNEL_TEXT("out", "\tld.global.u64 %rd5, [%rd1];\n\tsetp.ne.u64 %p1, %rd2, %rd5;");

static const struct kernel_paths *ask(unsigned n, uint64_t a, uint64_t mode)
{
	const uint64_t block[4] = {a, 0x7f0000001000, 0x7f0000002000, mode};
	const struct function_info *info = function_info(FUNCTION(n));
	EXPECT(info && images_paths(FUNCTION(n)) && images_paths(FUNCTION(n))->reason == PATHS_TABLE);
	return function_paths_for(info, (const uint8_t *)block);
}

static void found_again(void)
{
	images_module_loaded(MODULE(0), by_mode);
	EXPECT(!ask(0, 1, 3));
	const struct kernel_paths *plain = ask(0, 1, 0);
	EXPECT(plain && stored_slot(plain) == 1 && plain->slots[1].only_base);
	/* Of the other parameters it does not depend, and one word is enough. */
	EXPECT(ask(0, 77, 0) == plain && !ask(0, 77, 4) && !ask(0, 77, (uint64_t)1 << 32) && ask(0, 78, 0) == plain);
	const struct function_variants *variants = function_variants(function_info(FUNCTION(0)));
	EXPECT(variants->asked <= 4);
}

/* Another code under the same handle, and the first one again. */
static void gone_with_the_code(void)
{
	const struct kernel_paths *plain = ask(0, 1, 0), *other = NULL;
	for (int round = 0; round < 100; round++) {
		fake_unload_module(0);
		images_module_loaded(MODULE(0), turned);
		EXPECT(!ask(0, 1, 0));
		const struct kernel_paths *now = ask(0, 1, 9);
		EXPECT(now && now != plain && stored_slot(now) == 0 && (!other || now == other));
		other = now;
		fake_unload_module(0);
		images_module_loaded(MODULE(0), by_mode);
		EXPECT(ask(0, 1, 0) == plain && !ask(0, 1, 9));
	}
}

static void bounded(void)
{
	unsigned known = 0;
	images_module_loaded(MODULE(1), by_two);
	for (uint64_t mode = 1; mode <= 200; mode++) {
		const struct kernel_paths *paths = ask(1, mode, mode);
		EXPECT(!paths || stored_slot(paths) == 1);
		EXPECT(mode > FUNCTION_VARIANTS / 2 || paths); /* those that are no better are kept, too */
		EXPECT(!ask(1, mode, mode + 1));
	}
	/* What was kept is there, the rest is not worked out. */
	for (uint64_t mode = 1; mode <= 200; mode++)
		known += ask(1, mode, mode) != NULL;
	EXPECT(known > 0 && known <= FUNCTION_VARIANTS);
}

static void never(void)
{
	images_module_loaded(MODULE(2), undecided);
	for (uint64_t mode = 0; mode < 100; mode++)
		EXPECT(!ask(2, mode, mode));
	EXPECT(function_variants(function_info(FUNCTION(2)))->asked == 1);
	fake_unload_module(2);
	EXPECT(!function_paths_for(function_info(FUNCTION(2)), (const uint8_t[32]){0}));
}

/*
 * Two entries that may be the one that runs: of the last parameter's upper half the machine code must know that it is small, the PTX one byte. Both conditions
 * are those of the answer.
 */
static void of_two_entries(void)
{
	static const char by_byte[] = KERNEL_TEXT("out", "\tld.param.u8 %r1, [mode+4];\n\tsetp.ne.u32 %p1, %r1, 0;");
	char path[4096];
	size_t bytes, length;
	snprintf(path, sizeof path, "%s/scaled.cubin", code_folder);
	uint8_t *cubin = read_all(path, &length);
	const struct entry entries[] = {{.kind = 2, .sm = 80, .code = cubin, .bytes = length},
	                                {.kind = 1, .sm = 80, .code = by_byte, .bytes = sizeof by_byte}};
	uint8_t *fatbin = make_fatbin(entries, 2, &bytes);
	fake_machines((const unsigned[]){89}, 1);
	images_module_loaded(MODULE(5), fatbin);
	const struct kernel_paths *plain = ask(5, 0x7f0000003000, 0x12345678);
	EXPECT(plain && stored_slot(plain) == 1 && ask(5, 0x7f0000003000, 0x12345679) == plain);
	/* The byte is the same, the word is not small. */
	const struct kernel_paths *large = ask(5, 0x7f0000003000, 0x7f0012345678);
	EXPECT(!large || (large != plain && stored_slot(large) < 0));
	fake_machines((const unsigned[]){90}, 1);
	free(fatbin);
	free(cubin);
}

/*
 * A store where the mode says so and a lane is the right one: with another mode than 0 nothing is decided, and launches that begin so hide nothing of those that come.
 */
static void not_yet(void)
{
	static const char by_lane[] =
		KERNEL_TEXT("out", "\tmov.u32 %r1, %laneid;\n\t.reg .pred %q<3>;\n\tsetp.ne.u64 %q1, %rd2, 0;\n"
	                           "\tsetp.lt.u32 %q2, %r1, 5;\n\tand.pred %p1, %q1, %q2;");
	char path[4096];
	snprintf(path, sizeof path, "%s/by_lane.cubin", code_folder);
	uint8_t *cubin = read_all(path, NULL);
	const void *const images[] = {by_lane, cubin};
	for (unsigned n = 7; n <= 8; n++) {
		images_module_loaded(MODULE(n), images[n - 7]);
		for (uint64_t a = 0; a < 100; a++)
			EXPECT(!ask(n, a, 1) && !ask(n, a, 2));
		EXPECT(function_variants(function_info(FUNCTION(n)))->asked <= 4);
		EXPECT(stored_slot(ask(n, 1, 0)) == 1 && !ask(n, 1, 1));
	}
	free(cubin);
}

/* The register is wider than the type of the conversion, and is filled with the sign: with 128 the table is stored through. */
static void widened(void)
{
	static const char by_sign[] = KERNEL_TEXT("out", "\tcvt.s8.s64 %rd5, %rd2;\n\tsetp.lt.s64 %p1, %rd5, 0;");
	images_module_loaded(MODULE(6), by_sign);
	EXPECT(!ask(6, 1, 128) && stored_slot(ask(6, 1, 127)) == 1 && !ask(6, 1, 255) && !ask(6, 1, 0x1ff));
}

static void *ask_on(void *unused)
{
	for (uint64_t i = 0; i < 2000; i++) {
		const struct kernel_paths *paths = ask(3, i, i % 3);
		EXPECT(i % 3 ? !paths : paths && stored_slot(paths) == 1);
		paths = ask(4, i % 40, i % 40);
		EXPECT(!paths || stored_slot(paths) == 1);
	}
	return NULL;
}

static void by_many(void)
{
	pthread_t threads[THREADS];
	images_module_loaded(MODULE(3), by_mode);
	images_module_loaded(MODULE(4), by_two);
	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, ask_on, NULL));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/*
 * Large images: what was worked out is on disk, and what is on disk is taken, for images that are the same to the byte. The folder is there for this alone.
 */
static void on_disk(void)
{
	enum { LARGE = 20000 };
	char folder[] = "/tmp/cuconst-variants.XXXXXX", command[64];
	static char text[LARGE + 1], other[LARGE + 1];
	const uint64_t block[4] = {1, 2, 3, 0};
	uint8_t known[sizeof block], used[sizeof block] = {0};
	struct paths_values values = {(const uint8_t *)block, known, used, sizeof block, NULL};
	struct kernel_paths paths = {0},
			    poisoned = {.slot_count = 4, .slots = (struct slot_paths[4]){{.use = SLOT_STORE}}};
	bool better = false;
	memset(known, VALUE_EXACT, sizeof known);
	snprintf(text, sizeof text, "%s%*s", by_mode, (int)(LARGE - strlen(by_mode)), "\n");
	snprintf(other, sizeof other, "%s%*s", by_mode, (int)(LARGE - strlen(by_mode)), "\n\n");
	EXPECT(mkdtemp(folder) && cache_use(folder));
	const struct cache_hash hash = cache_hash(text, strlen(text)), other_hash = cache_hash(other, strlen(other));
	images_module_loaded(MODULE(10), text);
	const struct kernel_paths *plain = ask(10, 1, 0);
	EXPECT(stored_slot(plain) == 1 && !ask(10, 1, 5));
	EXPECT(cache_get_values(&hash, "which", &values, &paths, &better) && better && stored_slot(&paths) == 1);
	kernel_paths_free(&paths);
	/* As in a process that begins: what is known is dropped with the code. */
	fake_unload_module(10);
	images_module_loaded(MODULE(10), text);
	EXPECT(ask(10, 1, 0) == plain && !ask(10, 1, 5) && !ask(10, 1, 6));
	/* That the file is read shows where it says something else. */
	memset(used + 24, VALUE_EXACT, 8);
	cache_put_values(&other_hash, "which", &values, &poisoned);
	images_module_loaded(MODULE(11), other);
	EXPECT(stored_slot(ask(11, 1, 0)) == 0);
	EXPECT(!cache_use(""));
	snprintf(command, sizeof command, "rm -r %s", folder);
	EXPECT(!system(command));
}

static pthread_barrier_t round_begins, round_ends;

static void *ask_at_once(void *unused)
{
	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&round_begins);
		EXPECT(stored_slot(ask(9, 1, 0)) == 1);
		pthread_barrier_wait(&round_ends);
	}
	return NULL;
}

/* The same values in all threads are one attempt of those that a function has. */
static void at_once(void)
{
	pthread_t threads[THREADS];
	pthread_barrier_init(&round_begins, NULL, THREADS + 1);
	pthread_barrier_init(&round_ends, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, ask_at_once, NULL));
	for (int round = 0; round < ROUNDS; round++) {
		images_module_loaded(MODULE(9), by_mode);
		EXPECT(images_paths(FUNCTION(9)));
		pthread_barrier_wait(&round_begins);
		pthread_barrier_wait(&round_ends);
		EXPECT(function_variants(function_info(FUNCTION(9)))->asked == 1);
		fake_unload_module(9);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	const unsigned machines[] = {90};
	EXPECT(argc == 2);
	code_folder = argv[1];
	fake_start(machines, 1);
	found_again();
	gone_with_the_code();
	bounded();
	never();
	of_two_entries();
	widened();
	not_yet();
	by_many();
	at_once();
	on_disk();
	return 0;
}
