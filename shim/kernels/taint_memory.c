#include <errno.h>

#include "shim/kernels/taint.h"

/* Memory: what a load may bring, what a store leaves behind, and which addresses are judged. */

static unsigned uniform_field(const struct taint *t, uint8_t field)
{
	return field & t->program->machine.uniform_mask;
}

static void write_words(struct taint *t, const struct sass_insn *insn, unsigned reg, set_id set, unsigned words)
{
	for (unsigned i = 0; i < words && reg != SASS_RZ && reg + i < SASS_RZ; i++)
		taint_write(t, insn, reg + i, set);
}

static set_id read_words(struct taint *t, const struct sass_insn *insn, unsigned reg, unsigned words)
{
	set_id set = 0;
	for (unsigned i = 0; i < words && reg != SASS_RZ && reg + i < SASS_RZ; i++)
		set = taint_join(t, set, taint_read(t, insn, reg + i));
	return set;
}

static struct taint_words join_words(struct taint *t, struct taint_words a, struct taint_words b)
{
	return (struct taint_words){{taint_join(t, a.of[0], b.of[0]), taint_join(t, a.of[1], b.of[1])}};
}

static set_id whole(struct taint *t, struct taint_words words)
{
	return taint_join(t, words.of[0], words.of[1]);
}

/* What word `i` of a load of so many words may bring. */
static set_id recall(struct taint *t, struct taint_words memory, unsigned i, unsigned words)
{
	return words > 1 ? memory.of[i % 2] : whole(t, memory);
}

static void write_recalled(struct taint *t, const struct sass_insn *insn, unsigned reg, struct taint_words memory,
                           unsigned words)
{
	for (unsigned i = 0; i < words && reg != SASS_RZ && reg + i < SASS_RZ; i++)
		taint_write(t, insn, reg + i, recall(t, memory, i, words));
}

/* A loaded value: in a wide load low words come to even registers. `extra`: what memory of this kind may hold besides. */
static void write_loaded(struct taint *t, const struct sass_insn *insn, unsigned reg, struct taint_words extra,
                         unsigned words)
{
	for (unsigned i = 0; i < words && reg != SASS_RZ && reg + i < SASS_RZ; i++) {
		enum taint_member member = words == 1      ? FROM_LOADED_32
		                           : (reg + i) % 2 ? FROM_LOADED_HIGH
		                                           : FROM_LOADED_LOW;
		taint_write(t, insn, reg + i,
		            taint_join(t, taint_one(t, member), recall(t, extra, (reg + i) % 2, words)));
	}
}

static void remember(struct taint *t, set_id *memory, set_id set)
{
	set_id joined = taint_join(t, *memory, set);
	t->memory_version += joined != *memory;
	*memory = joined;
}

static void remember_words(struct taint *t, struct taint_words *memory, struct taint_words words)
{
	for (unsigned parity = 0; parity < 2; parity++)
		remember(t, &memory->of[parity], words.of[parity]);
}

static void remember_anywhere(struct taint *t, struct taint_words *memory, set_id set)
{
	remember_words(t, memory, (struct taint_words){{set, set}});
}

/* Registers that are stored, by the parity that their words have in memory. */
static struct taint_words read_parity(struct taint *t, const struct sass_insn *insn, unsigned reg, unsigned words)
{
	struct taint_words read = {{0, 0}};
	for (unsigned i = 0; i < words && reg != SASS_RZ && reg + i < SASS_RZ; i++)
		read.of[i % 2] = taint_join(t, read.of[i % 2], taint_read(t, insn, reg + i));
	if (words < 2)
		read.of[1] = read.of[0];
	return read;
}

/* A store through a generic address may reach all kinds of memory. */
static void remember_generic(struct taint *t, struct taint_words words)
{
	remember_words(t, &t->shared, words);
	remember_words(t, &t->local_any, words);
	remember_words(t, &t->local_unplaced, words);
}

static struct taint_cell *find_cell(struct taint *t, int32_t word)
{
	for (size_t at = ((uint32_t)word * 0x9e3779b1u) & (t->cell_count - 1); t->cell_count;
	     at = (at + 1) & (t->cell_count - 1))
		if (!t->cells[at].used || t->cells[at].word == word)
			return &t->cells[at];
	return NULL;
}

static int more_cells(struct taint *t)
{
	if (2 * t->cell_used < t->cell_count)
		return 0;
	struct taint_cell *old = t->cells;
	size_t old_count = t->cell_count, count = old_count ? 2 * old_count : 64;
	struct taint_cell *cells = arena_get_zeroed(t->program->arena, count, sizeof *cells);
	if (!cells)
		return -ENOMEM;
	t->cells = cells;
	t->cell_count = count;
	for (size_t i = 0; i < old_count; i++)
		if (old[i].used)
			*find_cell(t, old[i].word) = old[i];
	arena_put(t->program->arena, old, old_count * sizeof *old);
	return 0;
}

/* The stack offset of a local access in 4-byte words; false where it is not known. */
static bool stack_word(const struct taint *t, const struct sass_insn *insn, int32_t *ret_word)
{
	int32_t offset = (int32_t)(sass_field(insn, 40, 64) << 8) >> 8;
	if (insn->a != 1 || insn->bit91 || t->now.stack == STACK_ANY || t->now.stack == STACK_NONE)
		return false;
	*ret_word = (int32_t)(((int64_t)t->now.stack + offset) >> 2);
	return true;
}

static void store_local(struct taint *t, const struct sass_insn *insn)
{
	int32_t word = 0;
	unsigned words = sass_memory_words(insn);
	bool placed = stack_word(t, insn, &word);
	if (!placed)
		remember_words(t, &t->local_unplaced, read_parity(t, insn, insn->b, words));
	for (unsigned i = 0; i < words && insn->b != SASS_RZ && insn->b + i < SASS_RZ; i++) {
		set_id set = taint_read(t, insn, insn->b + i);
		int32_t at = word + (int32_t)i;
		if (!placed && words < 2)
			remember_anywhere(t, &t->local_any, set);
		else
			remember(t, &t->local_any.of[(placed ? (uint32_t)at : i) % 2], set);
		if (!placed || !set)
			continue;
		if (more_cells(t)) {
			t->error = -ENOMEM;
			return;
		}
		struct taint_cell *cell = find_cell(t, at);
		if (!cell->used) {
			*cell = (struct taint_cell){at, true, 0};
			t->cell_used++;
		}
		remember(t, &cell->set, set);
	}
}

static void load_local(struct taint *t, const struct sass_insn *insn)
{
	int32_t word = 0;
	unsigned words = sass_memory_words(insn);
	bool placed = stack_word(t, insn, &word);
	for (unsigned i = 0; i < words && insn->d != SASS_RZ && insn->d + i < SASS_RZ; i++) {
		set_id set = recall(t, t->local_any, i, words);
		if (placed) {
			uint32_t at = (uint32_t)word + i;
			struct taint_cell *cell = find_cell(t, (int32_t)at);
			set = taint_join(t, t->local_unplaced.of[at % 2], cell && cell->used ? cell->set : 0);
		}
		taint_write(t, insn, insn->d + i, set);
	}
}

/* [Ra(.64 or .U32) + UR + immediate]; without the UR where that is a descriptor. */
static struct taint_pair address_of(struct taint *t, const struct sass_insn *insn, unsigned uniform, bool with_uniform)
{
	struct taint_pair address = taint_read_pair(t, insn, insn->a);
	if (taint_fact(t, t->insn) & FACT_NULL)
		address = (struct taint_pair){0, 0};
	if (!with_uniform)
		return address;
	struct taint_pair u = taint_read_uniform_pair(t, insn, uniform);
	bool wide = sass_field(insn, 90, 91);
	address.low = taint_join(t, address.low, u.low);
	/* Bit 90 clear: the register adds 32 bits, and the high word is the uniform one's. */
	address.high = wide || !insn->row || insn->row->class != SASS_STORE ? taint_join(t, address.high, u.high)
	                                                                    : u.high;
	return address;
}

static bool overlaps_window(const struct taint *t, struct taint_pair address)
{
	return sets_has(&t->sets, address.high, FROM_WINDOW) || sets_has(&t->sets, address.low, FROM_WINDOW);
}

static void load(struct taint *t, const struct sass_insn *insn)
{
	/* The last size is none of a load. */
	unsigned size = sass_memory_words(insn), words = insn->row->class == SASS_LOAD_256 || size > 4 ? 4 : size;
	struct taint_pair address = taint_read_pair(t, insn, insn->a);
	/* Bit 91: a UR is a descriptor or part of the address; taken for part of it. */
	if (insn->bit91) {
		struct taint_pair u = taint_read_uniform_pair(t, insn, uniform_field(t, insn->b));
		address = (struct taint_pair){taint_join(t, address.low, u.low), taint_join(t, address.high, u.high)};
	}
	taint_loaded(t, address);
	struct taint_words extra = t->global;
	/* Nothing but the parameters' own address and indices: what comes is a parameter. */
	if (address.high && address.high == taint_one(t, FROM_BLOCK)) {
		write_words(t, insn, insn->d, t->all_params, words);
		if (insn->row->class == SASS_LOAD_256)
			write_words(t, insn, insn->c, t->all_params, words);
		return;
	}
	if (sets_has(&t->sets, address.low, FROM_BLOCK) || sets_has(&t->sets, address.high, FROM_BLOCK))
		extra = join_words(t, extra, (struct taint_words){{t->all_params, t->all_params}});
	if (insn->base == OP_LD || overlaps_window(t, address))
		extra = join_words(t, extra, join_words(t, t->local_any, t->shared));
	write_loaded(t, insn, insn->d, extra, words);
	if (insn->row->class == SASS_LOAD_256)
		write_loaded(t, insn, insn->c, extra, 4);
}

static void store(struct taint *t, const struct sass_insn *insn)
{
	unsigned words = sass_memory_words(insn);
	bool legacy = insn->row->class == SASS_STORE_GENERIC;
	struct taint_words data = read_parity(t, insn, legacy ? insn->c : insn->b, words);
	struct taint_pair address;
	if (insn->row->class == SASS_STORE_256) {
		data = join_words(t, read_parity(t, insn, insn->b, 4), read_parity(t, insn, insn->d, 4));
		address = taint_read_pair(t, insn, insn->a);
	} else {
		address = address_of(t, insn, uniform_field(t, insn->c), insn->bit91 && !sass_field(insn, 76, 77));
	}
	if (insn->base == OP_ST)
		remember_generic(t, data);
	remember_words(t, &t->global, data);
	taint_handed_out(t, whole(t, data));
	taint_stored(t, address, insn->row->name);
}

/* An address lies in an even register and the next one: what is read beside it for want of knowing better is not handed out. */
static void hand_out_aligned(struct taint *t, const struct sass_insn *insn, unsigned reg, bool swap)
{
	bool large = swap && reg % 4 == 0 && t->program->machine.sm >= 90;
	taint_handed_out(t, read_words(t, insn, reg, large ? 4 : 2 - reg % 2));
}

static void atomic(struct taint *t, const struct sass_insn *insn)
{
	/* Types differ between bases and machines: data of up to 4 words is read, and a result of up to 4 is written without forgetting more than one. */
	bool swap = insn->base == OP_ATOM_CAS || insn->base == OP_ATOMG_CAS,
	     result = insn->base != OP_RED && insn->base != OP_RED_LATER;
	bool generic = insn->base == OP_ATOM || insn->base == OP_ATOM_CAS || insn->base == OP_ATOM_LATER;
	struct taint_pair address = address_of(t, insn, uniform_field(t, insn->c), insn->bit91);
	set_id data = read_words(t, insn, insn->b, 4);
	if (swap)
		data = taint_join(t, data, read_words(t, insn, insn->c, 4));
	remember_anywhere(t, &t->global, data);
	hand_out_aligned(t, insn, insn->b, swap);
	if (swap)
		hand_out_aligned(t, insn, insn->c, swap);
	if (generic)
		remember_generic(t, (struct taint_words){{data, data}});
	taint_stored(t, address, insn->row->name);
	taint_loaded(t, address);
	set_id extra = whole(t, t->global);
	if (generic)
		extra = taint_join(t, extra, taint_join(t, whole(t, t->shared), whole(t, t->local_any)));
	for (unsigned i = 0; result && i < 4 && insn->d != SASS_RZ && insn->d + i < SASS_RZ; i++) {
		set_id value = taint_join(t, taint_one(t, (insn->d + i) % 2 ? FROM_LOADED_HIGH : FROM_LOADED_LOW), extra);
		value = taint_join(t, value, taint_one(t, FROM_LOADED_32));
		if (i)
			value = taint_join(t, value, taint_read(t, insn, insn->d + i));
		taint_write(t, insn, insn->d + i, value);
	}
}

static void atomic_shared(struct taint *t, const struct sass_insn *insn)
{
	unsigned words = t->program->machine.sm >= 90 ? 4 : 2;
	set_id data = read_words(t, insn, insn->b, words);
	if (insn->base == OP_ATOMS_CAS)
		data = taint_join(t, data, read_words(t, insn, insn->c, words));
	remember_anywhere(t, &t->shared, data);
	set_id held = whole(t, t->shared);
	for (unsigned i = 0; i < words && insn->d != SASS_RZ && insn->d + i < SASS_RZ; i++)
		taint_write(t, insn, insn->d + i, i ? taint_join(t, held, taint_read(t, insn, insn->d + i)) : held);
}

static void load_const(struct taint *t, const struct sass_insn *insn)
{
	bool uniform = insn->row->class == SASS_LOAD_CONST_UNIFORM;
	unsigned words = sass_memory_words(insn), bytes = 4;
	uint32_t bank = sass_field(insn, 54, 59),
		 offset = insn->base == OP_LDCU ? sass_field(insn, 37, 54) : sass_field(insn, 38, 54);
	bool bindless = (insn->base == OP_LDC && (insn->form == 2 || insn->bit91)) ||
	                (insn->base == OP_ULDC && insn->bit91) || (insn->base == OP_LDCU && insn->form == 5);
	unsigned index = uniform ? uniform_field(t, insn->a) : insn->a;
	bool indexed = insn->base == OP_ULDC_INDEXED ||
	               (insn->base == OP_LDCU && index != t->program->machine.uniform_zero) ||
	               (insn->base == OP_LDC && index != SASS_RZ);
	const struct taint_known *known = &t->known[uniform ? TAINT_UNIFORM + index : index];
	if (indexed && known->stamp == t->stamp) {
		offset = (offset + known->value) & 0xffff;
		indexed = false;
	}
	for (unsigned i = 0; i < words; i++) {
		set_id set;
		if (bindless)
			set = t->loaded;
		else if (indexed && bank == 0)
			set = offset <= t->program->params_at ? t->all_params : t->indexed_params;
		else if (indexed)
			set = taint_join(t, t->loaded,
			                 bank == 4 ? taint_one(t, FROM_GLOBAL) : taint_const(t, bank, UINT32_MAX));
		else
			set = taint_const(t, bank, offset + bytes * i);
		if (set && bank == 0 && sass_field(insn, 73, 76) < 4)
			set = taint_join(t, set, taint_one(t, FROM_PIECE));
		if (uniform)
			taint_write_uniform(t, insn, (insn->d & t->program->machine.uniform_mask) + i, set);
		else if (insn->d != SASS_RZ && insn->d + i < SASS_RZ)
			taint_write(t, insn, insn->d + i, set);
	}
}

/* Copies of 8 bytes and more keep the parity, narrower ones need not. */
static void copy_to_shared(struct taint *t)
{
	remember_anywhere(t, &t->shared, taint_join(t, t->loaded, whole(t, t->global)));
}

static void bulk(struct taint *t, const struct sass_insn *insn)
{
	unsigned direction = sass_field(insn, 73, 75);
	if (direction == 1 || direction == 3) {
		copy_to_shared(t);
		if (direction == 1)
			taint_loaded(t, taint_read_uniform_pair(t, insn, uniform_field(t, insn->a)));
		return;
	}
	remember_words(t, &t->global, t->shared);
	taint_handed_out(t, whole(t, t->shared));
	taint_stored(t, taint_read_uniform_pair(t, insn, uniform_field(t, insn->b)), insn->row->name);
}

void taint_memory(struct taint *t, const struct sass_insn *insn)
{
	switch (insn->row->class) {
	case SASS_LOAD_CONST:
	case SASS_LOAD_CONST_UNIFORM:
		load_const(t, insn);
		return;
	case SASS_LOAD:
	case SASS_LOAD_256:
		load(t, insn);
		return;
	case SASS_LOAD_LOCAL:
		load_local(t, insn);
		return;
	case SASS_LOAD_SHARED:
		write_recalled(t, insn, insn->d, t->shared, sass_memory_words(insn));
		return;
	case SASS_LOAD_MATRIX:
		write_words(t, insn, insn->d, whole(t, t->shared),
		            sass_field(insn, 72, 74) < 3 ? 1u << sass_field(insn, 72, 74) : 4);
		return;
	case SASS_LOAD_REDUCE:
		taint_loaded(t, taint_read_pair(t, insn, insn->a));
		write_words(t, insn, insn->d, t->loaded, 4);
		return;
	case SASS_TEXTURE:
		write_words(t, insn, insn->d, t->loaded, 4);
		write_words(t, insn, insn->c, t->loaded, 4);
		return;
	case SASS_STORE:
	case SASS_STORE_GENERIC:
	case SASS_STORE_256:
		store(t, insn);
		return;
	case SASS_STORE_UNIFORM:
		remember_anywhere(t, &t->global, read_words(t, insn, insn->b, 4));
		taint_stored(t, taint_read_uniform_pair(t, insn, uniform_field(t, insn->a)), insn->row->name);
		return;
	case SASS_STORE_LOCAL:
		store_local(t, insn);
		return;
	case SASS_STORE_SHARED:
		remember_words(t, &t->shared, read_parity(t, insn, insn->b, sass_memory_words(insn)));
		return;
	case SASS_STORE_REMOTE:
		remember_anywhere(t, &t->shared,
		                  taint_join(t, read_words(t, insn, insn->b, 4), read_words(t, insn, insn->c, 4)));
		return;
	case SASS_ATOMIC:
		atomic(t, insn);
		return;
	case SASS_ATOMIC_SHARED:
		atomic_shared(t, insn);
		return;
	case SASS_CACHE:
		/* Discarding a line loses what it holds. */
		if (sass_field(insn, 87, 91) == 0xb)
			taint_stored(t, taint_read_pair(t, insn, insn->a), TAINT_KIND_DISCARD);
		return;
	case SASS_BULK:
		bulk(t, insn);
		return;
	case SASS_TENSOR_STORE:
		remember_words(t, &t->global, t->shared);
		taint_stored_indirectly(t, insn->row->name);
		return;
	case SASS_SURFACE:
		write_words(t, insn, insn->d, t->loaded, insn->row->words);
		taint_stored_indirectly(t, insn->row->name);
		return;
	case SASS_COPY_TO_SHARED:
		copy_to_shared(t);
		if (insn->base == OP_LDGSTS)
			taint_loaded(t, taint_read_pair(t, insn, insn->a));
		return;
	default:
		return;
	}
}
