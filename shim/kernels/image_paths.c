/*
 * From an image to the store paths of one of its kernels. Of a fatbin the driver takes one entry for a device. Its rules are public only in part, so where
 * they leave a choice every entry that it may take is analysed, and the answers are put together on the safe side.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/fatbin.h"
#include "shim/kernels/image.h"

#define MAX_ENTRIES 65536
#define FLAG_EXACT 0x100000  /* sm_90a: for that machine only */
#define FLAG_FAMILY 0x200000 /* sm_100f: for machines of that major number */

struct candidate {
	struct fatbin_entry entry;
	size_t payload; /* offset in the image */
	bool chosen;
};

struct candidates {
	struct candidate *list;
	size_t count, room;
};

static int failed(int err, struct kernel_paths *ret_paths)
{
	enum paths_reason reason;
	switch (err) {
	case -ENOMEM:
		return -ENOMEM;
	case -ENOTSUP:
		reason = PATHS_UNPACKED;
		break;
	case -ENOENT:
		reason = PATHS_NO_CODE;
		break;
	case -EFAULT:
		reason = PATHS_UNSEEN;
		break;
	case -E2BIG:
		reason = PATHS_LIMIT;
		break;
	default:
		reason = PATHS_DAMAGED;
	}
	*ret_paths = (struct kernel_paths){.reason = reason};
	return 0;
}

/* The second answer is joined to the first, and given back: the kernel may be either. */
static int join(struct kernel_paths *paths, struct kernel_paths *other)
{
	if (other->slot_count > paths->slot_count) {
		struct slot_paths *slots = realloc(paths->slots, other->slot_count * sizeof *slots);
		if (!slots)
			return -ENOMEM;
		memset(slots + paths->slot_count, 0, (other->slot_count - paths->slot_count) * sizeof *slots);
		paths->slots = slots;
		paths->slot_count = other->slot_count;
	}
	for (size_t i = 0; i < paths->slot_count; i++) {
		const struct slot_paths none = {0};
		const struct slot_paths *theirs = i < other->slot_count ? &other->slots[i] : &none;
		struct slot_paths *ours = &paths->slots[i];
		ours->use = theirs->use > ours->use ? theirs->use : ours->use;
		ours->loaded |= theirs->loaded;
		ours->only_base &= theirs->only_base;
		ours->compared |= theirs->compared;
	}
	if (paths->reason == PATHS_CLEAR && other->reason != PATHS_CLEAR) {
		paths->reason = other->reason;
		paths->reason_offset = other->reason_offset;
	}
	for (size_t i = 0; i < paths->store_count && i < PATHS_STORES; i++)
		if (paths->stores[i].base < paths->slot_count && !paths->slots[paths->stores[i].base].only_base)
			paths->stores[i].base = UINT32_MAX;
	kernel_paths_free(other);
	return 0;
}

static int analyse(struct code *code, bool ptx, const char *kernel, struct kernel_paths *ret_paths)
{
	const struct ptx_module *module;
	if (!ptx)
		return paths_of_cubin(code->bytes, code->length, kernel, ret_paths);
	int err = code_module(code, &module);
	return err ? err : ptx_module_paths(module, kernel, NULL, ret_paths);
}

/* What is asked for: one kernel, for any values of its parameters, or for those that they have. */
struct question {
	const char *kernel;
	struct paths_values *values; /* NULL: any */
	uint8_t *used;               /* values->used of all entries so far */
	bool better;                 /* ... was one of them */
};

/* For any values. */
static int entry_paths_any(struct code *code, bool ptx, const char *kernel, struct kernel_paths *ret_paths)
{
	bool on_disk = code->hash.bytes;
	if (on_disk && cache_get(&code->hash, kernel, ret_paths))
		return 0;
	int err = analyse(code, ptx, kernel, ret_paths);
	if (!err && on_disk)
		cache_put(&code->hash, kernel, ret_paths);
	return err;
}

static int analyse_for(struct code *code, bool ptx, struct question *question, struct kernel_paths *ret_paths,
                       bool *ret_better)
{
	struct paths_values *values = question->values;
	bool on_disk = code->hash.bytes;
	if (on_disk && cache_get_values(&code->hash, question->kernel, values, ret_paths, ret_better))
		return 0;
	int err = ptx ? paths_for_ptx((const char *)code->bytes, strnlen((const char *)code->bytes, code->length),
	                              question->kernel, values, ret_paths, ret_better)
	              : paths_for_cubin(code->bytes, code->length, question->kernel, values, ret_paths, ret_better);
	if (!err && on_disk)
		cache_put_values(&code->hash, question->kernel, values, *ret_better ? ret_paths : NULL);
	return err;
}

static int entry_paths_for(struct code *code, bool ptx, struct question *question, struct kernel_paths *ret_paths)
{
	struct paths_values *values = question->values;
	bool better;
	int err = analyse_for(code, ptx, question, ret_paths, &better);
	if (err)
		return err;
	for (size_t i = 0; i < values->count; i++)
		if (values->used[i] && question->used[i] != VALUE_EXACT)
			question->used[i] = values->used[i];
	question->better |= better;
	if (better)
		return 0;
	return entry_paths_any(code, ptx, question->kernel, ret_paths);
}

static int entry_paths(const struct image *image, size_t offset, const struct fatbin_entry *entry,
                       struct question *question, struct kernel_paths *ret_paths)
{
	struct code *code;
	int err = image_code(image, offset, entry, &code);
	if (err)
		return err;
	bool ptx = entry->kind == FATBIN_PTX;
	err = question->values ? entry_paths_for(code, ptx, question, ret_paths)
	                       : entry_paths_any(code, ptx, question->kernel, ret_paths);
	code_put(code);
	return err;
}

/* An image that is no container: as its own one entry. */
static int whole_paths(const struct image *image, struct question *question, struct kernel_paths *ret_paths)
{
	const struct fatbin_entry entry = {.kind = image->form == IMAGE_PTX ? FATBIN_PTX : FATBIN_CUBIN,
	                                   .payload_bytes = image->length,
	                                   .bytes = image->length};
	return entry_paths(image, 0, &entry, question, ret_paths);
}

static int add_candidate(struct candidates *candidates, const struct candidate *candidate)
{
	if (candidates->count == candidates->room) {
		size_t room = candidates->room ? 2 * candidates->room : 16;
		struct candidate *list = realloc(candidates->list, room * sizeof *list);
		if (!list)
			return -ENOMEM;
		candidates->list = list;
		candidates->room = room;
	}
	candidates->list[candidates->count++] = *candidate;
	return 0;
}

static int list_entries(const struct image *image, struct candidates *ret)
{
	uint8_t header[FATBIN_ENTRY_BYTES];
	int err = image_read(image, 0, header, 16);
	if (err)
		return err;
	size_t at = elf_u16(header + 6), entries = 0, payload = 0, step = 0;
	if (at < 16 || at > image->length || elf_u16(header + 4) != 1)
		return -EINVAL;
	while (image->length - at >= sizeof header) {
		struct candidate candidate = {.chosen = false};
		if (++entries > MAX_ENTRIES)
			return -E2BIG;
		err = image_read(image, at, header, sizeof header);
		if (!err)
			err = fatbin_entry(header, image->length - at, &candidate.entry, &payload, &step);
		candidate.payload = at + payload;
		/* Others are for the linker, and there are many. */
		if (!err && (candidate.entry.kind == FATBIN_PTX || candidate.entry.kind == FATBIN_CUBIN))
			err = add_candidate(ret, &candidate);
		if (err)
			return err;
		at += step;
	}
	return 0;
}

/* How well an entry fits a machine; 0: it does not run there. Equal ranks are equally likely. */
static unsigned rank(const struct fatbin_entry *entry, unsigned kind, unsigned machine)
{
	bool major = entry->sm / 10 == machine / 10;
	if (entry->kind != kind || entry->sm > machine || (entry->flags & FLAG_EXACT && entry->sm != machine) ||
	    ((kind == FATBIN_CUBIN || entry->flags & FLAG_FAMILY) && !major))
		return 0;
	return entry->sm;
}

/* Marks the best of a kind; returns its rank. */
static unsigned choose_kind(struct candidates *candidates, unsigned kind, unsigned machine)
{
	unsigned best = 0;
	for (size_t i = 0; i < candidates->count; i++) {
		unsigned fit = rank(&candidates->list[i].entry, kind, machine);
		best = fit > best ? fit : best;
	}
	for (size_t i = 0; best && i < candidates->count; i++)
		candidates->list[i].chosen |= rank(&candidates->list[i].entry, kind, machine) == best;
	return best;
}

static _Atomic bool compiles; /* the driver compiles PTX even where there is machine code */

static bool set(const char *variable)
{
	const char *value = secure_getenv(variable);
	return value && *value && strcmp(value, "0") != 0;
}

void image_read_environment(void)
{
	atomic_store(&compiles, set("CUDA_FORCE_PTX_JIT") || set("CUDA_FORCE_JIT"));
}

/*
 * Machine code for the very machine is always taken. Where there is only code for an older one of the same major number, the driver may compile PTX
 * instead (CU_JIT_FALLBACK_STRATEGY): both.
 */
static void choose(struct candidates *candidates, unsigned machine)
{
	if (atomic_load(&compiles) && choose_kind(candidates, FATBIN_PTX, machine))
		return;
	if (choose_kind(candidates, FATBIN_CUBIN, machine) != machine)
		choose_kind(candidates, FATBIN_PTX, machine);
}

/* All chosen entries that have the kernel; -ENOENT: none has. */
static int chosen_paths(const struct image *image, const struct candidates *candidates, struct question *question,
                        struct kernel_paths *ret_paths)
{
	struct kernel_paths paths = {0};
	bool found = false;
	int err = 0;
	for (size_t i = 0; i < candidates->count && !err; i++) {
		struct kernel_paths next;
		if (!candidates->list[i].chosen)
			continue;
		err = entry_paths(image, candidates->list[i].payload, &candidates->list[i].entry, question, &next);
		if (err == -ENOENT) {
			err = 0;
			continue;
		}
		if (err && (err = failed(err, &next)))
			break;
		if (found && (err = join(&paths, &next))) {
			kernel_paths_free(&next);
		} else if (!found) {
			paths = next;
			found = true;
		}
	}
	if (err || !found) {
		kernel_paths_free(&paths);
		return err ? err : -ENOENT;
	}
	*ret_paths = paths;
	return 0;
}

static int fatbin_paths(const struct image *image, struct question *question, const unsigned *machines,
                        size_t machine_count, struct kernel_paths *ret_paths)
{
	struct candidates candidates = {0};
	int err = list_entries(image, &candidates);
	for (size_t i = 0; !err && i < machine_count; i++)
		choose(&candidates, machines[i]);
	if (!err)
		err = chosen_paths(image, &candidates, question, ret_paths);
	free(candidates.list);
	return err;
}

static int answer(const struct image *image, struct question *question, const unsigned *machines, size_t machine_count,
                  struct kernel_paths *ret_paths)
{
	if (image->reason != PATHS_CLEAR || !image_present(image)) {
		*ret_paths = (struct kernel_paths){.reason = image->reason != PATHS_CLEAR ? image->reason : PATHS_UNSEEN};
		return 0;
	}
	int err = image->form == IMAGE_FATBIN ? fatbin_paths(image, question, machines, machine_count, ret_paths)
	                                      : whole_paths(image, question, ret_paths);
	/* What was read lay there from the beginning to the end. */
	if (!err && !image_present(image)) {
		kernel_paths_free(ret_paths);
		err = -EFAULT;
	}
	return err ? failed(err, ret_paths) : 0;
}

int image_paths(const struct image *image, const char *kernel, const unsigned *machines, size_t machine_count,
                struct kernel_paths *ret_paths)
{
	struct question question = {.kernel = kernel};
	return answer(image, &question, machines, machine_count, ret_paths);
}

/* What one entry needs to be small, and another knows a byte of: both hold where the whole word is known. */
static void settle_words(uint8_t *used, size_t count)
{
	for (size_t at = 0; at + 4 <= count; at += 4) {
		bool small = false, exact = false;
		for (size_t i = at; i < at + 4; i++) {
			small |= used[i] == VALUE_SMALL;
			exact |= used[i] == VALUE_EXACT;
		}
		if (small && exact)
			memset(used + at, VALUE_EXACT, 4);
	}
}

int image_paths_for(const struct image *image, const char *kernel, const unsigned *machines, size_t machine_count,
                    struct paths_values *values, struct kernel_paths *ret_paths, bool *ret_better)
{
	struct question question = {.kernel = kernel, .values = values, .used = calloc(values->count + 1, 1)};
	int err = question.used ? answer(image, &question, machines, machine_count, ret_paths) : -ENOMEM;
	/* Nothing to keep: a library that was closed meanwhile may be there again. */
	if (!err && ret_paths->reason == PATHS_UNSEEN)
		err = -EFAULT;
	*ret_better = !err && question.better;
	if (question.used) {
		settle_words(question.used, values->count);
		memcpy(values->used, question.used, values->count);
	}
	if (!err ? !question.better : err == -EFAULT)
		kernel_paths_free(ret_paths);
	free(question.used);
	return err;
}
