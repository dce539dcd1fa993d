/*
 * Which entries of a fatbin speak for a device. Each entry's code stores through another slot, so the answer tells which was read.
 *
 *     choice CODE_FOLDER
 */
#include <dlfcn.h>

#include "shim/kernels/function.h"
#include "tests/unit/images/check.h"
#include "tests/unit/images/fake.h"

enum { PTX = 1, CUBIN = 2, LINK_CODE = 8 };
#define EXACT 0x100000
#define FAMILY 0x200000

static unsigned next;

/* Loads it as a new module, asks for its paths, unloads it. */
static const struct kernel_paths *paths_of(const void *image)
{
	unsigned n = next++ % 64;
	images_module_loaded(MODULE(n), image);
	const struct kernel_paths *paths = images_paths(FUNCTION(n));
	fake_unload_module(n);
	return paths;
}

static struct entry cubin(unsigned sm, uint64_t flags, unsigned slot)
{
	struct entry entry = {.kind = CUBIN, .sm = sm, .flags = flags};
	entry.code = which_cubin(slot, &entry.bytes);
	return entry;
}

static struct entry ptx(unsigned sm, uint64_t flags, unsigned slot)
{
	static char *texts[4];
	if (!texts[slot])
		texts[slot] = which_ptx(slot);
	return (struct entry){
		.kind = PTX, .sm = sm, .flags = flags, .code = texts[slot], .bytes = strlen(texts[slot]) + 1};
}

static const struct kernel_paths *among(const struct entry *entries, size_t count)
{
	size_t bytes;
	uint8_t *fatbin = make_fatbin(entries, count, &bytes);
	const struct kernel_paths *paths = paths_of(fatbin);
	free(fatbin);
	return paths;
}
#define AMONG(...) among((struct entry[]){__VA_ARGS__}, sizeof((struct entry[]){__VA_ARGS__}) / sizeof(struct entry))
#define MACHINES(...) fake_machines((unsigned[]){__VA_ARGS__}, sizeof((unsigned[]){__VA_ARGS__}) / sizeof(unsigned))

static bool stores_exactly(const struct kernel_paths *paths, unsigned mask, bool only_base)
{
	unsigned found = 0;
	if (!paths || paths->reason != PATHS_CLEAR || paths->slot_count != 4)
		return false;
	for (unsigned i = 0; i < 4; i++) {
		found |= (paths->slots[i].use == SLOT_STORE) << i;
		if (paths->slots[i].use == SLOT_STORE && paths->slots[i].only_base != only_base)
			return false;
	}
	return found == mask;
}

static void the_very_machine(void)
{
	MACHINES(90);
	EXPECT(stored_slot(AMONG(cubin(80, 0, 0), cubin(90, 0, 1), cubin(100, 0, 2), ptx(90, 0, 3))) == 1);
	EXPECT(stored_slot(AMONG(ptx(90, 0, 3), cubin(90, 0, 1))) == 1);
	EXPECT(stored_slot(AMONG(cubin(90, EXACT, 2), ptx(90, 0, 3))) == 2);
	/* The plain one and the special one: which the driver takes is not known. */
	EXPECT(stores_exactly(AMONG(cubin(90, EXACT, 2), cubin(90, 0, 1)), 0x6, false));
	/* The same twice is no doubt. */
	EXPECT(stores_exactly(AMONG(cubin(90, EXACT, 2), cubin(90, 0, 2)), 0x4, true));
}

static void older_machines(void)
{
	MACHINES(89);
	/* Of one major number, the newest; the driver may compile PTX instead. */
	EXPECT(stored_slot(AMONG(cubin(80, 0, 0), cubin(86, 0, 1), cubin(75, 0, 2), cubin(90, 0, 3))) == 1);
	EXPECT(stores_exactly(AMONG(cubin(80, 0, 0), ptx(80, 0, 1), ptx(75, 0, 2), ptx(90, 0, 3)), 0x3, false));
	EXPECT(stored_slot(AMONG(cubin(80, EXACT, 0), ptx(75, 0, 2))) == 2);
	MACHINES(103);
	EXPECT(stored_slot(AMONG(cubin(100, FAMILY, 1), cubin(100, EXACT, 2), cubin(90, 0, 0))) == 1);
	MACHINES(121);
	EXPECT(stored_slot(AMONG(cubin(120, 0, 1), cubin(121, 0, 3))) == 3);
}

/* As if the process had started with it. */
static void environment(const char *variable, const char *value)
{
	setenv(variable, value, 1);
	fake_start((unsigned[]){90}, 1);
}

static void compiled(void)
{
	MACHINES(90);
	EXPECT(stored_slot(AMONG(ptx(75, 0, 0), ptx(80, 0, 1), ptx(100, 0, 2), cubin(80, 0, 3))) == 1);
	EXPECT(stored_slot(AMONG(ptx(80, EXACT, 0), ptx(75, 0, 1))) == 1);
	EXPECT(stored_slot(AMONG(ptx(80, FAMILY, 0), ptx(75, 0, 1))) == 1);
	EXPECT(stored_slot(AMONG(ptx(90, EXACT, 0), ptx(75, 0, 1))) == 0);
	environment("CUDA_FORCE_PTX_JIT", "1");
	EXPECT(stored_slot(AMONG(cubin(90, 0, 1), ptx(80, 0, 3))) == 3);
	EXPECT(stored_slot(AMONG(cubin(90, 0, 1))) == 1);
	environment("CUDA_FORCE_PTX_JIT", "0");
	EXPECT(stored_slot(AMONG(cubin(90, 0, 1), ptx(80, 0, 3))) == 1);
	environment("CUDA_FORCE_JIT", "1");
	EXPECT(stored_slot(AMONG(cubin(90, 0, 1), ptx(80, 0, 3))) == 3);
	environment("CUDA_FORCE_JIT", "");
}

static void no_code(void)
{
	MACHINES(90);
	EXPECT(AMONG(cubin(80, 0, 0), cubin(100, 0, 1))->reason == PATHS_NO_CODE);
	EXPECT(AMONG(ptx(100, 0, 0))->reason == PATHS_NO_CODE);
	struct entry other = cubin(90, 0, 0);
	other.kind = LINK_CODE;
	EXPECT(AMONG(other)->reason == PATHS_NO_CODE);
	EXPECT(among(NULL, 0)->reason == PATHS_NO_CODE);
	/* A kernel of another name. */
	struct entry renamed = ptx(90, 0, 0);
	char *text = strdup(renamed.code);
	memcpy(strstr(text, "which"), "witch", 5);
	renamed.code = text;
	EXPECT(AMONG(renamed)->reason == PATHS_NO_CODE);
	/* Beside one that has it. */
	EXPECT(stored_slot(AMONG(renamed, ptx(90, 0, 2))) == 2);
	free(text);
	/* A damaged one is never passed over. */
	struct entry damaged = cubin(90, 0, 1);
	damaged.bytes = 100;
	EXPECT(AMONG(damaged, cubin(90, EXACT, 1))->reason == PATHS_DAMAGED);
	EXPECT(AMONG(cubin(90, EXACT, 1), damaged)->reason == PATHS_DAMAGED);
}

/* A CUkernel runs on any of them: all that it may be. */
static void different_devices(void)
{
	MACHINES(80, 90, 80);
	EXPECT(stores_exactly(AMONG(cubin(80, 0, 0), cubin(90, 0, 2), cubin(75, 0, 1)), 0x5, false));
	EXPECT(stores_exactly(AMONG(cubin(80, 0, 3), cubin(90, 0, 3)), 0x8, true));
	/* It cannot be loaded on the other. */
	EXPECT(stored_slot(AMONG(cubin(90, 0, 2))) == 2);
	MACHINES(90);
}

static void packed(void)
{
	struct entry lz4 = cubin(90, 0, 1), zstd = cubin(90, 0, 2), text = ptx(90, 0, 3);
	lz4.packing = LZ4;
	zstd.packing = ZSTD;
	EXPECT(stored_slot(AMONG(lz4)) == 1);
	EXPECT(stored_slot(AMONG(zstd)) == 2);
	text.packing = LZ4;
	EXPECT(stored_slot(AMONG(text)) == 3);
	text.packing = ZSTD;
	EXPECT(stored_slot(AMONG(text)) == 3);
	EXPECT(stored_slot(AMONG(zstd, ptx(90, 0, 0))) == 2);
	/* What does not unpack to what it says. */
	struct entry wrong = zstd;
	size_t bytes;
	uint8_t *fatbin = make_fatbin(&wrong, 1, &bytes);
	fatbin[16 + 56]++;
	EXPECT(paths_of(fatbin)->reason == PATHS_DAMAGED);
	fatbin[16 + 56]--;
	fatbin[16 + 64] ^= 0xff;
	EXPECT(paths_of(fatbin)->reason == PATHS_DAMAGED);
	free(fatbin);
}

static bool zstd_is_missing;

/* In front of libc's: a machine without libzstd. */
void *dlopen(const char *file, int mode)
{
	static void *(*real)(const char *, int);
	if (zstd_is_missing && file && strstr(file, "zstd"))
		return NULL;
	if (!real)
		real = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
	return real(file, mode);
}

/* The reason says so, and what is not packed with it is read all the same. */
static void no_zstd(void)
{
	struct entry zstd = cubin(90, 0, 2);
	zstd.packing = ZSTD;
	zstd_is_missing = true;
	const struct kernel_paths *paths = AMONG(zstd);
	EXPECT(paths->reason == PATHS_UNPACKED && strstr(paths_reason_text(paths->reason), "zstd"));
	EXPECT(AMONG(zstd, cubin(90, EXACT, 2))->reason == PATHS_UNPACKED);
	zstd.packing = LZ4;
	EXPECT(stored_slot(AMONG(zstd)) == 2);
}

/* 32 KB of parameters, the pointer in the last slot. */
static void large_parameters(void)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/big_32k.cubin", code_folder);
	uint8_t *image = read_all(path, NULL);
	const struct kernel_paths *paths = paths_of(image);
	EXPECT(paths->reason == PATHS_CLEAR && paths->slot_count == 4095);
	for (size_t i = 0; i < 4094; i++)
		EXPECT(paths->slots[i].use != SLOT_STORE);
	EXPECT(paths->slots[4094].use == SLOT_STORE && paths->slots[4094].only_base);
	free(image);
}

int main(int argc, char **argv)
{
	EXPECT(argc == 3);
	code_folder = argv[1];
	fake_start((unsigned[]){90}, 1);
	if (!strcmp(argv[2], "no_zstd")) {
		no_zstd();
		return 0;
	}
	the_very_machine();
	older_machines();
	compiled();
	no_code();
	different_devices();
	packed();
	large_parameters();
	return 0;
}
