/*
 * What is kept of an image, from memory that ends, lies, or is taken away.
 *
 *     keep CODE_FOLDER HOLDER HELD_FATBIN
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/kernels/fatbin.h"
#include "shim/kernels/image.h"
#include "tests/unit/images/check.h"
#include "tests/unit/images/fake.h"

#define PAGE 4096
static const unsigned sm_90[] = {90};

static enum paths_reason reason_of(const struct image *image, int *ret_slot)
{
	struct kernel_paths paths;
	EXPECT(image && !image_paths(image, "which", sm_90, 1, &paths));
	enum paths_reason reason = paths.reason;
	if (ret_slot)
		*ret_slot = stored_slot(&paths);
	kernel_paths_free(&paths);
	return reason;
}

/* `bytes` at the end of a mapping, with nothing behind; all in all `pages`. */
static uint8_t *before_the_end(const void *data, size_t bytes, size_t pages)
{
	uint8_t *memory = mmap(NULL, (pages + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(memory != MAP_FAILED && !munmap(memory + pages * PAGE, PAGE));
	return memcpy(memory + pages * PAGE - bytes, data, bytes);
}

static size_t pages_for(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE;
}

/* Nothing behind the image is read, and nothing of it is needed afterwards. */
static void exactly_as_long(void)
{
	size_t bytes;
	const uint8_t *cubin = which_cubin(2, &bytes);
	char *text = which_ptx(1);
	struct entry entry = {.kind = 2, .sm = 90, .code = cubin, .bytes = bytes};
	size_t fatbin_bytes;
	uint8_t *fatbin = make_fatbin(&entry, 1, &fatbin_bytes);
	const struct {
		const void *data;
		size_t bytes;
		enum image_form form;
		int slot;
	} cases[] = {{cubin, bytes, IMAGE_CUBIN, 2},
	             {fatbin, fatbin_bytes, IMAGE_FATBIN, 2},
	             {text, strlen(text) + 1, IMAGE_PTX, 1}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t pages = pages_for(cases[i].bytes);
		uint8_t *given = before_the_end(cases[i].data, cases[i].bytes, pages);
		struct image *image = image_keep(given);
		EXPECT(!munmap(given + cases[i].bytes - pages * PAGE, pages * PAGE));
		int slot;
		EXPECT(image->form == cases[i].form && image->copied && image_present(image));
		EXPECT(image->length == cases[i].bytes - (cases[i].form == IMAGE_PTX));
		EXPECT(reason_of(image, &slot) == PATHS_CLEAR && slot == cases[i].slot);
		image_put(image);
	}
	free(fatbin);
	free(text);
}

/* Headers that promise more than there is: cut at each byte, with nothing behind. */
static void cut(void)
{
	size_t bytes, fatbin_bytes;
	const uint8_t *cubin = which_cubin(2, &bytes);
	struct entry entry = {.kind = 2, .sm = 90, .code = cubin, .bytes = bytes};
	uint8_t *fatbin = make_fatbin(&entry, 1, &fatbin_bytes);
	for (int form = 0; form < 2; form++) {
		const uint8_t *data = form ? fatbin : cubin;
		size_t all = form ? fatbin_bytes : bytes, pages = pages_for(all);
		uint8_t *end = before_the_end(data, all, pages) + all;
		for (size_t left = 1; left < all; left++) {
			memcpy(end - left, data, left);
			struct image *image = image_keep(end - left);
			EXPECT(image && reason_of(image, NULL) != PATHS_CLEAR);
			image_put(image);
		}
		EXPECT(!munmap(end - pages * PAGE, pages * PAGE));
	}
	free(fatbin);
	/* A text that does not end before its memory does is what is there. */
	char *text = which_ptx(3);
	size_t length = strlen(text);
	uint8_t *given = before_the_end(text, length, 1);
	struct image *image = image_keep(given);
	int slot;
	EXPECT(image->length == length && reason_of(image, &slot) == PATHS_CLEAR && slot == 3);
	image_put(image);
	munmap(given + length - PAGE, PAGE);
	free(text);
}

static void lies(void)
{
	size_t bytes;
	const uint8_t *cubin = which_cubin(2, &bytes);
	Elf64_Ehdr header;
	const uint64_t offsets[] = {0,         1, 63, bytes - 1, bytes, 1u << 30, (uint64_t)1 << 40, UINT64_MAX - 64,
	                            UINT64_MAX};
	uint8_t *changed = malloc(bytes);
	for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
		for (unsigned count = 0; count <= UINT16_MAX; count += count < 300 ? 7 : 4099) {
			memcpy(changed, cubin, bytes);
			memcpy(&header, cubin, sizeof header);
			header.e_shoff = offsets[i];
			header.e_shnum = (uint16_t)count;
			memcpy(changed, &header, sizeof header);
			struct image *image = image_keep(changed);
			EXPECT(image && reason_of(image, NULL) != PATHS_CLEAR);
			image_put(image);
		}
	free(changed);
	/* A container that says it is larger than the address space, and headers of entries of all kinds. */
	struct entry entry = {.kind = 2, .sm = 90, .code = cubin, .bytes = bytes};
	size_t fatbin_bytes;
	uint8_t *fatbin = make_fatbin(&entry, 1, &fatbin_bytes);
	const uint64_t sizes[] = {0, 1, 63, 64, 65, 1u << 30, (uint64_t)1 << 62, UINT64_MAX - 8, UINT64_MAX};
	const size_t places[] = {8, 16 + 8, 16 + 56};
	for (size_t p = 0; p < 3; p++)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			uint64_t old;
			memcpy(&old, fatbin + places[p], 8);
			memcpy(fatbin + places[p], &sizes[i], 8);
			struct image *image = image_keep(fatbin);
			EXPECT(image && (p == 2 || reason_of(image, NULL) != PATHS_CLEAR));
			image_put(image);
			memcpy(fatbin + places[p], &old, 8);
		}
	for (unsigned header_bytes = 0; header_bytes < 70000; header_bytes += header_bytes < 200 ? 1 : 9973) {
		const uint16_t value = (uint16_t)header_bytes;
		if (value == 16)
			continue;
		memcpy(fatbin + 6, &value, 2);
		struct image *image = image_keep(fatbin);
		EXPECT(image && reason_of(image, NULL) != PATHS_CLEAR);
		image_put(image);
	}
	free(fatbin);
}

static void nothing(void)
{
	struct {
		uint32_t magic, version;
		const void *data;
	} wrapper = {0x466243b1, 1, NULL};
	const void *const none[] = {NULL, (const void *)8, (const void *)UINTPTR_MAX, &wrapper, "", "x"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		struct image *image = image_keep(none[i]);
		EXPECT(image && reason_of(image, NULL) != PATHS_CLEAR);
		image_put(image);
	}
}

/* A cubin whose table says that a section ends there. The memory is there, but never touched. */
static struct image *keep_large(size_t bytes)
{
	size_t small;
	const uint8_t *cubin = which_cubin(0, &small);
	uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	EXPECT(memory != MAP_FAILED);
	memcpy(memory, cubin, small);
	Elf64_Ehdr header;
	memcpy(&header, memory, sizeof header);
	/* The first one is not looked at by anybody. */
	Elf64_Shdr first = {.sh_type = SHT_PROGBITS, .sh_offset = bytes - 1, .sh_size = 1};
	memcpy(memory + header.e_shoff, &first, sizeof first);
	struct image *image = image_keep(memory);
	EXPECT(image && image->length == bytes);
	munmap(memory, bytes);
	return image;
}

static void too_large(void)
{
	struct image *images[32], *image = keep_large((size_t)500 << 20);
	int slot;
	EXPECT(reason_of(image, NULL) == PATHS_UNKEPT && strstr(paths_reason_text(PATHS_UNKEPT), "too large"));
	image_put(image);
	image = keep_large(IMAGE_COPY_BYTES);
	EXPECT(reason_of(image, &slot) == PATHS_CLEAR && slot == 0);
	image_put(image);
	image = keep_large(IMAGE_COPY_BYTES + 1);
	EXPECT(reason_of(image, NULL) == PATHS_UNKEPT);
	image_put(image);
	/* All together: what is given back makes room. */
	for (int round = 0; round < 2; round++) {
		size_t kept = 0;
		for (int i = 0; i < 10; i++) {
			images[i] = keep_large(IMAGE_COPY_BYTES);
			kept += images[i]->reason == PATHS_CLEAR;
		}
		EXPECT(kept == IMAGE_COPIES_BYTES / IMAGE_COPY_BYTES);
		for (int i = 0; i < 10; i++)
			image_put(images[i]);
	}
	/* A text that does not end. */
	size_t bytes = IMAGE_COPY_BYTES + 16 * PAGE;
	char *text = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(text != MAP_FAILED);
	memset(text, ' ', bytes);
	image = image_keep(text);
	EXPECT(reason_of(image, NULL) == PATHS_UNKEPT);
	image_put(image);
	munmap(text, bytes);
}

static void files(void)
{
	char path[4096], missing[] = "/nonexistent/which.cubin";
	int slot;
	snprintf(path, sizeof path, "%s/which_1.cubin", code_folder);
	struct image *image = image_keep_file(path);
	EXPECT(reason_of(image, &slot) == PATHS_CLEAR && slot == 1);
	image_put(image);
	const char *const none[] = {missing, "/", "/dev/zero", ""};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		image = image_keep_file(none[i]);
		EXPECT(reason_of(image, NULL) == PATHS_UNSEEN);
		image_put(image);
	}
	image = image_keep_file("/dev/null");
	EXPECT(reason_of(image, NULL) == PATHS_UNSEEN);
	image_put(image);
	/* Larger than is kept, and sparse. */
	char name[] = "/tmp/images_keep_XXXXXX";
	int fd = mkstemp(name);
	EXPECT(fd >= 0 && !ftruncate(fd, (off_t)IMAGE_COPY_BYTES + 1));
	image = image_keep_file(name);
	EXPECT(reason_of(image, NULL) == PATHS_UNKEPT);
	image_put(image);
	EXPECT(!ftruncate(fd, 0));
	image = image_keep_file(name);
	EXPECT(reason_of(image, NULL) == PATHS_DAMAGED);
	image_put(image);
	close(fd);
	unlink(name);
}

static struct link_map *same_object;

static struct link_map *find_same_object(const void *address)
{
	return same_object;
}

/* What is answered for all parameters at 0. */
static int for_values(const struct image *image, const char *kernel)
{
	uint8_t known[24], used[24];
	const uint8_t block[24] = {0};
	struct paths_values values = {block, known, used, sizeof block, NULL};
	struct kernel_paths paths = {0};
	bool better = true;
	memset(known, VALUE_EXACT, sizeof known);
	int err = image_paths_for(image, kernel, sm_90, 1, &values, &paths, &better);
	EXPECT(!err || (!better && !paths.slots));
	kernel_paths_free(&paths);
	return err;
}

/* Where a library holds it, nothing is copied, and it is gone with the library. */
static void held(const char *holder, const char *fatbin_path)
{
	void *library = dlopen(holder, RTLD_NOW | RTLD_LOCAL);
	EXPECT(library);
	const void *held = dlsym(library, "held"), *writable = dlsym(library, "held_writable");
	size_t bytes;
	uint8_t *file = read_all(fatbin_path, &bytes);
	EXPECT(held && writable && !memcmp(held, file, bytes));
	struct {
		uint32_t magic, version;
		const void *data;
	} wrapper = {0x466243b1, 1, held};
	struct image *image = image_keep(&wrapper), *copied = image_keep(writable);
	struct kernel_paths paths;
	EXPECT(!image->copied && image->bytes == held && image->length == bytes && image_present(image));
	EXPECT(!image_paths(image, "copy", sm_90, 1, &paths) && paths.reason == PATHS_CLEAR);
	kernel_paths_free(&paths);
	/* What may be written is no reference, but for what a runtime registers. */
	EXPECT(copied->copied);
	wrapper.data = writable;
	struct image *registered = image_keep(&wrapper);
	EXPECT(!registered->copied && image_present(registered));
	image_put(registered);
	EXPECT(!for_values(image, "copy"));
	EXPECT(!dlclose(library));
	EXPECT(!dlopen(holder, RTLD_NOW | RTLD_NOLOAD));
	EXPECT(!image_present(image));
	EXPECT(!image_paths(image, "copy", sm_90, 1, &paths) && paths.reason == PATHS_UNSEEN);
	EXPECT(for_values(image, "copy") == -EFAULT);
	/* Other memory where it was. */
	const uintptr_t page = (uintptr_t)held & ~(uintptr_t)(PAGE - 1);
	void *other = mmap((void *)page, bytes + PAGE, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	EXPECT(other == (void *)page);
	EXPECT(!image_paths(image, "copy", sm_90, 1, &paths) && paths.reason == PATHS_UNSEEN);
	memcpy((void *)(uintptr_t)held, file, bytes);
	EXPECT(!image_paths(image, "copy", sm_90, 1, &paths) && paths.reason == PATHS_UNSEEN);
	/* What the loader says is the same library: another one at its address and in its memory. */
	same_object = (struct link_map *)(uintptr_t)image->object;
	image_set_object_finder(find_same_object);
	EXPECT(image_present(image));
	((uint8_t *)(uintptr_t)held)[100] ^= 1;
	EXPECT(!image_present(image));
	fake_start(sm_90, 1);
	munmap(other, bytes + PAGE);
	EXPECT(!image_paths(copied, "copy", sm_90, 1, &paths) && paths.reason == PATHS_CLEAR);
	kernel_paths_free(&paths);
	image_put(image);
	image_put(copied);
	free(file);
}

/* Packed code is unpacked once for the kernels of an image, and no more of it is held than stated, however many images are asked about. */
static void unpacked_once(void)
{
	enum { IMAGES = 40 };
	struct image *images[IMAGES];
	struct code *held[IMAGES];
	size_t bytes = (size_t)3 << 20, small, fatbin_bytes;
	const uint8_t *cubin = which_cubin(1, &small);
	uint8_t *padded = calloc(1, bytes);
	memcpy(padded, cubin, small);
	struct entry entry = {.kind = 2, .sm = 90, .packing = LZ4, .code = padded, .bytes = bytes};
	uint8_t *fatbin = make_fatbin(&entry, 1, &fatbin_bytes);
	const struct fatbin_entry whole = {
		.kind = FATBIN_CUBIN, .packing = FATBIN_LZ4, .payload_bytes = fatbin_bytes - 80, .bytes = bytes};
	for (int i = 0; i < IMAGES; i++) {
		struct code *again;
		int slot;
		images[i] = image_keep(fatbin);
		EXPECT(reason_of(images[i], &slot) == PATHS_CLEAR && slot == 1);
		EXPECT(!image_code(images[i], 80, &whole, &held[i]) && !image_code(images[i], 80, &whole, &again));
		EXPECT(again == held[i] && again->length == bytes && !memcmp(again->bytes, padded, bytes));
		code_put(again);
	}
	/* Held by whom it was given to, and by the cache where it has room. */
	int cached = 0;
	for (int i = 0; i < IMAGES; i++)
		cached += atomic_load(&held[i]->references) == 2;
	EXPECT(cached >= 1 && (size_t)cached * bytes <= (size_t)32 << 20 &&
	       atomic_load(&held[IMAGES - 1]->references) == 2);
	for (int i = 0; i < IMAGES; i++) {
		image_put(images[i]);
		EXPECT(atomic_load(&held[i]->references) == 1 && !memcmp(held[i]->bytes, padded, bytes));
		code_put(held[i]);
	}
	free(fatbin);
	free(padded);
}

/* Two packed entries of one image, in turns. */
static void entries_apart(void)
{
	struct entry entries[2] = {{.kind = 2, .sm = 80, .packing = LZ4}, {.kind = 2, .sm = 90, .packing = LZ4}};
	size_t bytes;
	for (unsigned i = 0; i < 2; i++)
		entries[i].code = which_cubin(i, &entries[i].bytes);
	uint8_t *fatbin = make_fatbin(entries, 2, &bytes);
	struct image *image = image_keep(fatbin);
	for (int round = 0; round < 4; round++) {
		struct kernel_paths paths;
		EXPECT(!image_paths(image, "which", (unsigned[]){round % 2 ? 90 : 80}, 1, &paths));
		EXPECT(stored_slot(&paths) == round % 2);
		kernel_paths_free(&paths);
	}
	image_put(image);
	free(fatbin);
}

/* Seeded damage to containers whose entries are packed in every way: an answer, whatever it is. */
static void damaged(const char *fatbin_path)
{
	uint64_t random = 88172645463325252u;
	size_t lengths[3], cubin_bytes;
	struct entry entries[3] = {
		{.kind = 2, .sm = 90, .packing = LZ4}, {.kind = 2, .sm = 90, .packing = ZSTD}, {.kind = 1, .sm = 80}};
	entries[0].code = entries[1].code = which_cubin(0, &cubin_bytes);
	entries[0].bytes = entries[1].bytes = cubin_bytes;
	char *text = which_ptx(0);
	entries[2].code = text;
	entries[2].bytes = strlen(text) + 1;
	uint8_t *images[3] = {read_all(fatbin_path, &lengths[0]), make_fatbin(entries, 3, &lengths[1]),
	                      make_fatbin(entries + 1, 2, &lengths[2])};
	for (int round = 0; round < 3000; round++) {
		size_t which = (size_t)round % 3, bytes = lengths[which];
		uint8_t *changed = before_the_end(images[which], bytes, pages_for(bytes));
		for (int i = 0; i < 1 + round % 4; i++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			/* Headers more often than what they tell of. */
			size_t at = random >> 60 < 10 ? (random >> 8) % 160 % bytes : (random >> 8) % bytes;
			changed[at] = random >> 58 & 1 ? (uint8_t)random : changed[at] ^ (uint8_t)(1u << (random & 7));
		}
		struct image *image = image_keep(changed);
		munmap(changed + bytes - pages_for(bytes) * PAGE, pages_for(bytes) * PAGE);
		struct kernel_paths paths;
		EXPECT(image && !image_paths(image, which ? "which" : "copy", (unsigned[]){90, 80}, 2, &paths));
		kernel_paths_free(&paths);
		image_put(image);
	}
	for (int i = 0; i < 3; i++)
		free(images[i]);
	free(text);
}

/* The program's own read-only data. */
static void in_the_program(void)
{
	static const char text[] = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry which(.param .u64 p)\n"
				   "{\n.reg .b64 %a;\nld.param.u64 %a, [p];\nst.global.u64 [%a], 7;\nret;\n}\n";
	struct image *image = image_keep(text);
	EXPECT(!image->copied && image_present(image) && reason_of(image, NULL) == PATHS_CLEAR);
	image_put(image);
}

int main(int argc, char **argv)
{
	EXPECT(argc == 4);
	code_folder = argv[1];
	fake_start(sm_90, 1);
	exactly_as_long();
	cut();
	lies();
	nothing();
	too_large();
	files();
	held(argv[2], argv[3]);
	in_the_program();
	unpacked_once();
	entries_apart();
	damaged(argv[3]);
	return 0;
}
