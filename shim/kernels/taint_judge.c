#include "shim/kernels/taint.h"

#define SLOT_MEMBERS 0x5555555555555555u /* the even ones: low words of slots */

static uint64_t params_only(size_t word, uint64_t bits)
{
	return word ? bits : bits & ~(uint64_t)0 << FROM_PARAMS;
}

/* Slots of which the low word is in `low` and the high word in `high`, as the members of their low words. */
static uint64_t slots_in(size_t word, uint64_t low, uint64_t high)
{
	return params_only(word, low & high >> 1) & SLOT_MEMBERS;
}

static uint32_t slot_of(size_t word, unsigned bit)
{
	return (uint32_t)((word * 64 + bit - FROM_PARAMS) / 2);
}

/* Is there a word among the bits that is part of a struct, or smaller than an address? Those of 64-bit parameters are no halves of two. */
static bool has_half(const struct taint *t, size_t word, uint64_t bits)
{
	for (bits = params_only(word, bits); bits; bits &= bits - 1)
		if (!t->whole[slot_of(word, (unsigned)__builtin_ctzll(bits))])
			return true;
	return false;
}

static struct taint_findings find_slots(const struct taint *t, struct taint_pair address)
{
	struct taint_findings found = {0};
	bool stray_low = false, stray_high = false, differ = false;
	const uint64_t *low = sets_bits(&t->sets, address.low), *high = sets_bits(&t->sets, address.high);
	size_t half = t->sets.half;
	for (size_t i = 0; i < half; i++) {
		uint64_t plain = slots_in(i, low[i], high[i]);
		uint64_t others = params_only(i, ~(plain | plain << 1));
		/* A slot whose halves changed places. */
		found.stray |= (low[i] >> 1 & high[i] & others & SLOT_MEMBERS) != 0;
		stray_low |= has_half(t, i, low[i] & others);
		stray_high |= has_half(t, i, high[i] & others);
		/* What is in both is an index, also where its high word comes from a product that left the low one scaled. */
		differ |= has_half(t, i, low[i] & others & ~(high[i] | high[half + i]));
		differ |= has_half(t, i, high[i] & others & ~(low[i] | low[half + i]));
		for (; plain; plain &= plain - 1) {
			uint32_t slot = slot_of(i, (unsigned)__builtin_ctzll(plain));
			found.plain++;
			found.slot = slot;
			if (t->wide[slot])
				found.plain_wide++, found.slot_wide = slot;
		}
	}
	found.stray |= stray_low && stray_high && differ;
	return found;
}

static void mark_slot(struct taint *t, uint32_t slot, enum slot_use use)
{
	struct slot_paths *paths = &t->paths->slots[slot];
	paths->use = paths->use > use ? paths->use : (uint8_t)use;
	paths->loaded |= use == SLOT_LOAD;
	if (use == SLOT_STORE && t->watch && t->watch->base)
		t->watch->base(t->watch->ctx, t->paths->store_count, slot);
}

static void mark_slots(struct taint *t, struct taint_pair address, enum slot_use use, bool scaled_too)
{
	const uint64_t *low = sets_bits(&t->sets, address.low), *high = sets_bits(&t->sets, address.high);
	size_t half = t->sets.half;
	for (size_t i = 0; i < half; i++) {
		uint64_t bits = scaled_too ? slots_in(i, low[i] | low[half + i], high[i] | high[half + i])
		                           : slots_in(i, low[i], high[i]);
		for (; bits; bits &= bits - 1)
			mark_slot(t, slot_of(i, (unsigned)__builtin_ctzll(bits)), use);
	}
}

static struct taint_judged *judge(struct taint *t, struct taint_pair address)
{
	struct taint_judged *judged =
		&t->judged[(address.low * 0x9e3779b1u ^ address.high * 0x85ebca6bu) >> 16 & (TAINT_JUDGED - 1)];
	if (!judged->filled || judged->address.low != address.low || judged->address.high != address.high)
		*judged = (struct taint_judged){address, find_slots(t, address), true, false, false};
	return judged;
}

static bool any_param(const struct taint *t, set_id set)
{
	const uint64_t *bits = sets_bits(&t->sets, set);
	for (size_t i = 0; i < t->sets.half; i++)
		if (params_only(i, bits[i] | bits[t->sets.half + i]))
			return true;
	return false;
}

static bool either(const struct taint *t, struct taint_pair address, enum taint_member member)
{
	return sets_has(&t->sets, address.low, member) || sets_has(&t->sets, address.high, member);
}

/* Why an address may be something that is not based on a parameter; PATHS_CLEAR if it cannot. */
static enum paths_reason foreign_base(const struct taint *t, struct taint_pair address, bool has_base)
{
	const struct sets *sets = &t->sets;
	bool loaded_low = sets_has(sets, address.low, FROM_LOADED_LOW) || sets_has(sets, address.low, FROM_LOADED_32);
	bool loaded_high = sets_has(sets, address.high, FROM_LOADED_HIGH) || sets_has(sets, address.high, FROM_LOADED_32);
	if (either(t, address, FROM_GLOBAL))
		return PATHS_GLOBAL;
	if (loaded_low && loaded_high)
		return PATHS_TABLE;
	if (either(t, address, FROM_BLOCK))
		return PATHS_SPLIT;
	if (sets_has(sets, address.low, FROM_PIECE) && sets_has(sets, address.high, FROM_PIECE))
		return PATHS_SPLIT;
	if (has_base || sets_has(sets, address.high, FROM_WINDOW))
		return PATHS_CLEAR;
	for (unsigned member = FROM_LOADED_LOW; member <= FROM_LOADED_32; member++)
		if (either(t, address, member) || sets_has_scaled(sets, address.low, member) ||
		    sets_has_scaled(sets, address.high, member))
			return PATHS_TABLE;
	if (sets_has_scaled(sets, address.low, FROM_GLOBAL) || sets_has_scaled(sets, address.high, FROM_GLOBAL))
		return PATHS_GLOBAL;
	return any_param(t, address.low) || any_param(t, address.high) ? PATHS_SPLIT : PATHS_NO_BASE;
}

static uint32_t offset_now(const struct taint *t)
{
	return (t->insn - t->program->entry) * SASS_BYTES;
}

static void add_site(struct taint *t, uint32_t base, const char *kind)
{
	struct kernel_paths *paths = t->paths;
	if (paths->store_count < PATHS_STORES)
		paths->stores[paths->store_count] =
			(struct store_site){.offset = offset_now(t), .base = base, .kind = kind};
	paths->store_count++;
}

void taint_reason(struct taint *t, enum paths_reason reason)
{
	if (!t->recording || t->paths->reason != PATHS_CLEAR)
		return;
	t->paths->reason = reason;
	t->paths->reason_offset = offset_now(t);
}

void taint_stored(struct taint *t, struct taint_pair address, const char *kind)
{
	/* Through null, for given values of the parameters: such an instruction is one that other values are for. */
	bool nowhere = taint_fact(t, t->insn) & FACT_NULL && !address.low && !address.high;
	if (!t->recording || nowhere)
		return;
	struct taint_judged *judged = judge(t, address);
	struct taint_findings found = judged->found;
	enum paths_reason foreign = foreign_base(t, address, found.plain);
	if (foreign == PATHS_CLEAR && found.plain && found.stray)
		foreign = PATHS_SPLIT;
	uint32_t base = UINT32_MAX;
	if (foreign == PATHS_CLEAR && !found.plain) {
		/* Into a window: local or shared memory by a generic address. */
		return;
	}
	if (foreign == PATHS_CLEAR && !sets_has(&t->sets, address.high, FROM_WINDOW)) {
		if (found.plain_wide == 1)
			base = found.slot_wide;
		else if (!found.plain_wide && found.plain == 1)
			base = found.slot;
	}
	if (!judged->stored || t->watch)
		mark_slots(t, address, SLOT_STORE, !found.plain);
	judged->stored = true;
	if (base != UINT32_MAX)
		t->paths->slots[base].only_base = true;
	if (foreign != PATHS_CLEAR)
		taint_reason(t, foreign);
	add_site(t, base, kind);
}

void taint_stored_indirectly(struct taint *t, const char *kind)
{
	if (!t->recording)
		return;
	taint_reason(t, PATHS_TABLE);
	add_site(t, UINT32_MAX, kind);
}

void taint_loaded(struct taint *t, struct taint_pair address)
{
	struct taint_judged *judged = t->recording ? judge(t, address) : NULL;
	if (!judged || judged->loaded)
		return;
	mark_slots(t, address, SLOT_LOAD, !judged->found.plain);
	judged->loaded = true;
}

/* The slots of which any word is in the set, plain: as the members of their low words. */
static uint64_t touched(const struct taint *t, set_id set, size_t word)
{
	uint64_t bits = params_only(word, sets_bits(&t->sets, set)[word]);
	return (bits | bits >> 1) & SLOT_MEMBERS;
}

/* What matters about a set where it is compared or handed out; worked out once for each. */
enum trait {
	TRAIT_KNOWN = 1,
	TRAIT_SLOTS = 2,
	TRAIT_LOADED = 4,
	TRAIT_MARKED = 8 /* its slots are marked as compared */
};

static uint8_t traits_of(const struct taint *t, set_id set)
{
	uint8_t traits = t->sets.marks[set];
	if (traits)
		return traits;
	traits = TRAIT_KNOWN;
	for (size_t i = 0; i < t->sets.half; i++)
		if (touched(t, set, i))
			traits |= TRAIT_SLOTS;
	if (sets_has(&t->sets, set, FROM_LOADED_LOW) || sets_has(&t->sets, set, FROM_LOADED_HIGH))
		traits |= TRAIT_LOADED;
	return t->sets.marks[set] = traits;
}

/* Have they words of more than one slot? */
static bool several_slots(const struct taint *t, set_id a, set_id b)
{
	unsigned slots = 0;
	for (size_t i = 0; i < t->sets.half && slots < 2; i++)
		for (uint64_t bits = touched(t, a, i) | touched(t, b, i); bits && slots < 2; bits &= bits - 1)
			slots++;
	return slots > 1;
}

static void mark_compared(struct taint *t, set_id set)
{
	if (t->sets.marks[set] & TRAIT_MARKED)
		return;
	t->sets.marks[set] |= TRAIT_MARKED;
	for (size_t i = 0; i < t->sets.half; i++)
		for (uint64_t bits = touched(t, set, i); bits; bits &= bits - 1)
			t->paths->slots[slot_of(i, (unsigned)__builtin_ctzll(bits))].compared = true;
}

void taint_compared(struct taint *t, set_id a, set_id b)
{
	if (!t->recording || !a || !b)
		return;
	uint8_t of_a = traits_of(t, a), of_b = traits_of(t, b);
	bool loaded = (of_a & TRAIT_SLOTS && of_b & TRAIT_LOADED) || (of_b & TRAIT_SLOTS && of_a & TRAIT_LOADED);
	if ((of_a & of_b & TRAIT_MARKED) || (!loaded && !(of_a & of_b & TRAIT_SLOTS)))
		return;
	if (!loaded && !several_slots(t, a, b))
		return;
	mark_compared(t, a);
	mark_compared(t, b);
}

void taint_handed_out(struct taint *t, set_id set)
{
	if (t->recording && traits_of(t, set) & TRAIT_SLOTS)
		mark_compared(t, set);
}
