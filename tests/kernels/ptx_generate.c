#include "tests/kernels/ptx_generate.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/kernels/random_text.h"

#define POINTERS_MAX 64
#define REACH 4096 /* no pointer is further into its buffer; tables of pointers lie behind */

struct pointer {
	unsigned number; /* %rd<number>, or %v<number> */
	bool variable;   /* assigned more than once */
	unsigned reach;
};

struct generator {
	FILE *out;
	uint64_t random;
	struct pointer pointers[POINTERS_MAX];
	unsigned count, registers, words, predicates, labels, tables, cells, variables;
	unsigned params;
	unsigned depth;
};

static unsigned pick(struct generator *g, unsigned below)
{
	return random_below(&g->random, below);
}

static void put(struct generator *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct generator *g, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	put_line(g->out, format, list);
	va_end(list);
}

struct name {
	char text[16];
};

static struct name spell(const struct pointer *pointer)
{
	struct name name;

	snprintf(name.text, sizeof(name.text), "%%%s%u", pointer->variable ? "v" : "rd", pointer->number);
	return name;
}

static const struct pointer *any(struct generator *g)
{
	return &g->pointers[pick(g, g->count)];
}

/* A register for a new pointer; it counts as one when the text that sets it is out. */
static unsigned fresh(struct generator *g)
{
	return g->registers++;
}

/* In a branch that may not be taken, what is new is not there afterwards. */
static void found(struct generator *g, unsigned number, unsigned reach)
{
	struct pointer pointer = {.number = number, .reach = reach};

	if (g->count < POINTERS_MAX)
		g->pointers[g->count++] = pointer;
	else
		g->pointers[g->params + g->variables + pick(g, POINTERS_MAX - g->params - g->variables)] = pointer;
}

static unsigned condition(struct generator *g)
{
	unsigned predicate = g->predicates++, word = g->words++;

	/* By thread, by parameter, or both: no compiler could know. */
	put(g, "shr.u32 %%r%u, %%mixed, %u;", word, pick(g, 3));
	put(g, "and.b32 %%r%u, %%r%u, 1;", word, word);
	put(g, "setp.eq.u32 %%p%u, %%r%u, %u;", predicate, word, pick(g, 2));
	return predicate;
}

static void by_halves(struct generator *g, const char *from, unsigned to)
{
	unsigned low = g->words++, high = g->words++, third = g->words++;

	switch (pick(g, 8)) {
	case 0:
		put(g, "mov.b64 {%%r%u, %%r%u}, %s;", low, high, from);
		put(g, "mov.b64 %%rd%u, {%%r%u, %%r%u};", to, low, high);
		break;
	case 1:
		put(g, "cvt.u32.u64 %%r%u, %s;", low, from);
		put(g, "shr.u64 %%t0, %s, 32;", from);
		put(g, "shl.b64 %%t0, %%t0, 32;");
		put(g, "cvt.u64.u32 %%t1, %%r%u;", low);
		put(g, "or.b64 %%rd%u, %%t0, %%t1;", to);
		break;
	case 2:
		put(g, "shr.u64 %%t0, %s, 32;", from);
		put(g, "bfi.b64 %%rd%u, %%t0, %s, 32, 32;", to, from);
		break;
	case 3:
		put(g, "mov.b64 {%%r%u, %%r%u}, %s;", low, high, from);
		put(g, "prmt.b32 %%r%u, %%r%u, %%r%u, 0x7654;", third, low, high);
		put(g, "mov.b64 %%rd%u, {%%r%u, %%r%u};", to, low, third);
		break;
	case 4:
		put(g, "mov.b64 {%%h0, %%h1, %%h2, %%h3}, %s;", from);
		put(g, "mov.b64 %%rd%u, {%%h0, %%h1, %%h2, %%h3};", to);
		break;
	case 5:
		put(g, "mov.b64 {%%r%u, %%r%u}, %s;", low, high, from);
		put(g, "add.cc.u32 %%r%u, %%r%u, 8;", third, low);
		put(g, "addc.u32 %%r%u, %%r%u, 0;", high, high);
		put(g, "mov.b64 %%t0, {%%r%u, %%r%u};", third, high);
		put(g, "add.s64 %%rd%u, %%t0, -8;", to);
		break;
	case 6:
		put(g, "mov.b64 {%%r%u, %%r%u}, %s;", low, high, from);
		put(g, "shfl.sync.bfly.b32 %%r%u, %%r%u, 0, 31, -1;", third, high);
		put(g, "mov.b64 %%rd%u, {%%r%u, %%r%u};", to, low, third);
		break;
	default:
		put(g, "shl.b64 %%t0, %s, 13;", from);
		put(g, "shr.u64 %%rd%u, %%t0, 13;", to);
		break;
	}
}

/* Sums whose parts cancel out. */
static void by_arithmetic(struct generator *g, const char *from, const char *other, unsigned to)
{
	switch (pick(g, 8)) {
	case 0:
		put(g, "xor.b64 %%t0, %s, %s;", from, other);
		put(g, "xor.b64 %%rd%u, %%t0, %s;", to, other);
		break;
	case 1:
		put(g, "sub.s64 %%t0, %s, %s;", from, other);
		put(g, "add.s64 %%rd%u, %%t0, %s;", to, other);
		break;
	case 2:
		put(g, "not.b64 %%t0, %s;", from);
		put(g, "not.b64 %%rd%u, %%t0;", to);
		break;
	case 3:
		put(g, "neg.s64 %%t0, %s;", from);
		put(g, "sub.s64 %%rd%u, 0, %%t0;", to);
		break;
	case 4:
		/* Times 3, times the inverse of 3. */
		put(g, "mul.lo.u64 %%t0, %s, 3;", from);
		put(g, "mul.lo.u64 %%rd%u, %%t0, 0xaaaaaaaaaaaaaaab;", to);
		break;
	case 5:
		put(g, "and.b64 %%t0, %s, 0xffffffff00000000;", from);
		put(g, "and.b64 %%t1, %s, 0x00000000ffffffff;", from);
		put(g, "add.s64 %%rd%u, %%t1, %%t0;", to);
		break;
	case 6:
		put(g, "shr.u64 %%t0, %s, 3;", from);
		put(g, "mad.lo.u64 %%rd%u, %%t0, 8, 0;", to);
		break;
	default:
		put(g, "mov.b64 %%d0, %s;", from);
		put(g, "neg.f64 %%d0, %%d0;");
		put(g, "neg.f64 %%d0, %%d0;");
		put(g, "mov.b64 %%rd%u, %%d0;", to);
		break;
	}
}

/* Numbers that no address looks like, made back into the address. */
static void by_numbers(struct generator *g, const char *from, unsigned to)
{
	unsigned low = g->words++, high = g->words++, third = g->words++, fourth = g->words++, predicate;

	switch (pick(g, 13)) {
	case 0:
		put(g, "mov.b64 {%%r%u, %%r%u}, %s;", low, high, from);
		put(g, "shf.l.wrap.b32 %%r%u, %%r%u, %%r%u, 7;", third, low, high);
		put(g, "shf.l.wrap.b32 %%r%u, %%r%u, %%r%u, 7;", fourth, high, low);
		put(g, "shf.r.wrap.b32 %%r%u, %%r%u, %%r%u, 7;", low, fourth, third);
		put(g, "shf.r.wrap.b32 %%r%u, %%r%u, %%r%u, 7;", high, third, fourth);
		put(g, "mov.b64 %%rd%u, {%%r%u, %%r%u};", to, low, high);
		break;
	case 1:
		put(g, "mul.lo.u64 %%t0, %s, 5;", from);
		put(g, "shl.b64 %%t1, %s, 2;", from);
		put(g, "sub.s64 %%rd%u, %%t0, %%t1;", to);
		break;
	case 2:
		put(g, "brev.b64 %%t0, %s;", from);
		put(g, "add.s64 %%t0, %%t0, %%m;");
		put(g, "sub.s64 %%t0, %%t0, %%m;");
		put(g, "brev.b64 %%rd%u, %%t0;", to);
		break;
	case 3:
		/* Addresses have 47 bits, a double 53. */
		put(g, "cvt.rn.f64.u64 %%d0, %s;", from);
		put(g, "cvt.rzi.u64.f64 %%rd%u, %%d0;", to);
		break;
	case 4:
		/* By 3 or by 1, which only the launch knows. */
		predicate = g->predicates++;
		put(g, "setp.gt.u32 %%p%u, %%n, 1;", predicate);
		put(g, "selp.b64 %%t0, 3, 1, %%p%u;", predicate);
		put(g, "selp.b64 %%t1, 0xaaaaaaaaaaaaaaab, 1, %%p%u;", predicate);
		put(g, "mul.lo.u64 %%t0, %s, %%t0;", from);
		put(g, "mul.lo.u64 %%rd%u, %%t0, %%t1;", to);
		break;
	case 5:
		put(g, "mul.lo.u64 %%t0, %s, 16;", from);
		put(g, "add.s64 %%t0, %%t0, %%m;");
		put(g, "div.u64 %%rd%u, %%t0, 16;", to);
		break;
	case 6:
		put(g, "bfe.u64 %%t0, %s, 0, 20;", from);
		put(g, "shr.u64 %%t1, %s, 20;", from);
		put(g, "bfi.b64 %%rd%u, %%t1, %%t0, 20, 44;", to);
		break;
	case 7:
		put(g, "xor.b64 %%t0, %s, %%m;", from);
		put(g, "xor.b64 %%rd%u, %%t0, %%m;", to);
		break;
	case 8:
		put(g, "mad.lo.u64 %%t0, %s, 7, %%m;", from);
		put(g, "sub.s64 %%t0, %%t0, %%m;");
		put(g, "mul.lo.u64 %%rd%u, %%t0, 0x6db6db6db6db6db7;", to);
		break;
	case 9:
		put(g, "div.u64 %%t0, %s, 3;", from);
		put(g, "rem.u64 %%t1, %s, 3;", from);
		put(g, "mad.lo.u64 %%rd%u, %%t0, 3, %%t1;", to);
		break;
	case 10:
		put(g, "mov.b64 {%%r%u, %%r%u}, %s;", low, high, from);
		put(g, "mul.wide.u32 %%t0, %%r%u, 0x10000;", low);
		put(g, "shr.u64 %%t0, %%t0, 16;");
		put(g, "mul.wide.u32 %%t1, %%r%u, 0x10000;", high);
		put(g, "shl.b64 %%t1, %%t1, 16;");
		put(g, "or.b64 %%rd%u, %%t0, %%t1;", to);
		break;
	case 11:
		/* By a count that only the launch knows. */
		put(g, "add.u32 %%r%u, %%n, 3;", low);
		put(g, "shl.b64 %%t0, %s, %%r%u;", from, low);
		put(g, "shr.u64 %%rd%u, %%t0, %%r%u;", to, low);
		break;
	default:
		/* The half that counts goes up by a product and down by the high word of another. */
		put(g, "mov.b64 {%%r%u, %%r%u}, %s;", low, high, from);
		put(g, "mul.lo.u32 %%r%u, %%r%u, 0x10000;", third, high);
		put(g, "mul.hi.u32 %%r%u, %%r%u, 0x10000;", third, third);
		put(g, "mov.b64 %%rd%u, {%%r%u, %%r%u};", to, low, third);
		break;
	}
}

static void by_memory(struct generator *g, const char *from, const char *other, unsigned to)
{
	unsigned cell = g->cells++ % 4, word = g->words++, second = g->words++;

	switch (pick(g, 9)) {
	case 0:
		put(g, "st.local.u64 [depot+%u], %s;", 8 * cell, from);
		put(g, "ld.local.u64 %%rd%u, [depot+%u];", to, 8 * cell);
		break;
	case 1:
		put(g, "st.local.v2.u64 [depot+16], {%s, %s};", from, other);
		put(g, "and.b32 %%r%u, %%mixed, 1;", word);
		put(g, "mad.wide.u32 %%t0, %%r%u, 8, %%depot_at;", word);
		put(g, "ld.local.u64 %%rd%u, [%%t0+16];", to);
		break;
	case 2:
		put(g, "cvta.local.u64 %%t0, %%depot_at;");
		put(g, "add.s64 %%t0, %%t0, %u;", 8 * cell);
		put(g, "st.u64 [%%t0], %s;", from);
		put(g, "ld.u64 %%rd%u, [%%t0];", to);
		break;
	case 3:
		put(g, "mov.b64 {%%r%u, %%r%u}, %s;", word, second, from);
		put(g, "st.local.u32 [depot+%u], %%r%u;", 8 * cell, word);
		put(g, "st.local.u32 [depot+%u], %%r%u;", 8 * cell + 4, second);
		put(g, "ld.local.u64 %%rd%u, [depot+%u];", to, 8 * cell);
		break;
	case 4:
		put(g, "st.local.u64 [depot+8], %s;", from);
		for (unsigned byte = 0; byte < 8; byte++) {
			put(g, "ld.local.u8 %%h0, [depot+%u];", 8 + byte);
			put(g, "st.local.u8 [depot+%u], %%h0;", 24 + byte);
		}
		put(g, "ld.local.u64 %%rd%u, [depot+24];", to);
		break;
	case 5:
		put(g, "{ .param .b64 q0; .param .b64 q1;");
		put(g, "st.param.b64 [q0], %s;", from);
		put(g, "call.uni (q1), same, (q0);");
		put(g, "ld.param.b64 %%rd%u, [q1]; }", to);
		break;
	case 6:
		put(g, "st.local.u64 [depot+%u], %s;", 8 * cell, from);
		put(g, "{ .param .b64 q0; .param .b64 q1;");
		put(g, "cvta.local.u64 %%t0, %%depot_at;");
		put(g, "st.param.b64 [q0], %%t0;");
		put(g, "call.uni (q1), fetch%u, (q0);", cell);
		put(g, "ld.param.b64 %%rd%u, [q1]; }", to);
		break;
	case 7:
		/* Once in a while: a kernel with it is not clear. */
		if (pick(g, 6) == 0) {
			unsigned table = g->tables++ % 4, base = pick(g, g->params);

			put(g, "mad.wide.u32 %%t0, %%lane, 8, %%rd%u;", base);
			put(g, "st.global.u64 [%%t0+%u], %s;", REACH + 1024 + 256 * table, from);
			put(g, "ld.global.u64 %%rd%u, [%%t0+%u];", to, REACH + 1024 + 256 * table);
			break;
		}
		/* fall through */
	default:
		put(g, "mad.wide.u32 %%t0, %%lane, 8, %%shared_at;");
		put(g, "st.shared.u64 [%%t0+%u], %s;", 256 * cell, from);
		if (pick(g, 2)) {
			put(g, "atom.shared.exch.b64 %%rd%u, [%%t0+%u], %s;", to, 256 * cell, other);
		} else {
			put(g, "bar.warp.sync -1;");
			put(g, "xor.b32 %%r%u, %%lane, 1;", word);
			put(g, "mad.wide.u32 %%t0, %%r%u, 8, %%shared_at;", word);
			put(g, "ld.shared.u64 %%rd%u, [%%t0+%u];", to, 256 * cell);
			put(g, "bar.warp.sync -1;");
		}
	}
}

static void derive(struct generator *g)
{
	const struct pointer *from = any(g), *other = any(g);
	struct name a = spell(from), b = spell(other);
	unsigned to = fresh(g), reach = from->reach > other->reach ? from->reach : other->reach, predicate;

	switch (pick(g, 9)) {
	case 0:
		if (reach + 512 > REACH) {
			put(g, "mov.u64 %%rd%u, %s;", to, a.text);
			break;
		}
		reach += 512;
		if (pick(g, 2)) {
			put(g, "add.s64 %%rd%u, %s, %u;", to, a.text, 8 * pick(g, 32));
		} else if (pick(g, 2)) {
			put(g, "mad.wide.u32 %%rd%u, %%lane, 8, %s;", to, a.text);
		} else {
			put(g, "shl.b64 %%t0, %%m, 3;");
			put(g, "add.s64 %%rd%u, %%t0, %s;", to, a.text);
		}
		break;
	case 1:
		predicate = condition(g);
		put(g, "selp.b64 %%rd%u, %s, %s, %%p%u;", to, a.text, b.text, predicate);
		break;
	case 2:
		predicate = condition(g);
		put(g, "mov.u64 %%rd%u, %s;", to, a.text);
		put(g, "@%%p%u mov.u64 %%rd%u, %s;", predicate, to, b.text);
		break;
	case 3:
		put(g, pick(g, 2) ? "min.u64 %%rd%u, %s, %s;" : "max.u64 %%rd%u, %s, %s;", to, a.text, b.text);
		break;
	case 4:
		put(g, "cvta.to.global.u64 %%rd%u, %s;", to, a.text);
		break;
	case 5:
		/* Divergent lanes must not wait for each other. */
		if (g->depth == 0) {
			by_memory(g, a.text, b.text, to);
			break;
		}
		/* fall through */
	case 6:
		if (g->depth == 0) {
			by_halves(g, a.text, to);
			break;
		}
		/* fall through */
	case 7:
		by_numbers(g, a.text, to);
		break;
	default:
		by_arithmetic(g, a.text, b.text, to);
	}
	found(g, to, reach);
}

static void use(struct generator *g)
{
	struct name at = spell(any(g));
	unsigned word = g->words++, offset = 8 * pick(g, 8);

	switch (pick(g, 10)) {
	case 0:
		put(g, "st.global.u32 [%s+%u], %%lane;", at.text, offset);
		break;
	case 1:
		put(g, "st.u32 [%s+%u], %%lane;", at.text, offset);
		break;
	case 2:
		put(g, "atom.global.add.u32 %%r%u, [%s+%u], 1;", word, at.text, offset);
		break;
	case 3:
		put(g, "red.global.add.u32 [%s+%u], 1;", at.text, offset);
		break;
	case 4:
		put(g, "{ .param .b64 q0; st.param.b64 [q0], %s; call.uni write, (q0); }", at.text);
		break;
	case 5:
		put(g, "@%%p%u st.global.u8 [%s+%u], %%lane;", condition(g), at.text, offset);
		break;
	default:
		put(g, "ld.global.u32 %%r%u, [%s+%u];", word, at.text, offset);
	}
}

static void assign(struct generator *g)
{
	const struct pointer *from = any(g);
	struct pointer *variable = &g->pointers[g->params + pick(g, g->variables)];

	if (from->reach > variable->reach)
		return;
	put(g, "mov.u64 %%v%u, %s;", variable->number, spell(from).text);
}

static void statements(struct generator *g, unsigned count);

static void control(struct generator *g)
{
	unsigned label = g->labels++, predicate = condition(g), known = g->count, word = g->words++;
	struct pointer kept[POINTERS_MAX];
	bool loop = pick(g, 3) == 0;

	for (unsigned i = 0; i < known; i++)
		kept[i] = g->pointers[i];
	g->depth++;
	if (loop) {
		put(g, "mov.u32 %%r%u, 0;", word);
		put(g, "L%u:", label);
		statements(g, 1 + pick(g, 4));
		assign(g);
		assign(g);
		put(g, "add.u32 %%r%u, %%r%u, 1;", word, word);
		put(g, "setp.lt.u32 %%p%u, %%r%u, 4;", predicate, word);
		put(g, "@%%p%u bra L%u;", predicate, label);
	} else {
		put(g, "@%%p%u bra L%u;", predicate, label);
		statements(g, 1 + pick(g, 4));
		if (pick(g, 2)) {
			unsigned end = g->labels++;

			put(g, "bra L%u;", end);
			put(g, "L%u:", label);
			g->count = known;
			for (unsigned i = 0; i < known; i++)
				g->pointers[i] = kept[i];
			statements(g, 1 + pick(g, 4));
			label = end;
		}
		put(g, "L%u:", label);
	}
	g->depth--;
	g->count = known;
	for (unsigned i = 0; i < known; i++)
		g->pointers[i] = kept[i];
	put(g, "bar.warp.sync -1;");
}

static void statements(struct generator *g, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned kind = pick(g, 16);

		if (kind < 7)
			derive(g);
		else if (kind < 11)
			use(g);
		else if (kind < 14)
			assign(g);
		else if (g->depth < 1)
			control(g);
	}
}

static const char head[] =
	".version 8.0\n.target sm_80\n.address_size 64\n"
	".func (.param .b64 r) same(.param .b64 p)\n{\n\t.reg .b64 %a;\n\tld.param.b64 %a, [p];\n\tst.param.b64 [r], %a;\n\tret;\n}\n"
	".func write(.param .b64 p)\n{\n\t.reg .b64 %a;\n\tld.param.b64 %a, [p];\n\tst.u32 [%a+8], 5;\n\tret;\n}\n";

struct generated ptx_generate(uint64_t seed)
{
	struct generated made = {.text = NULL};
	struct generator g = {.random = seed * 0x9e3779b97f4a7c15ull + 1};
	char *body = NULL;
	size_t body_bytes;
	FILE *out;
	bool array;

	for (int i = 0; i < 8; i++)
		pick(&g, 2);
	g.params = 2 + pick(&g, 5);
	g.variables = 2;
	array = pick(&g, 3) == 0;
	g.registers = g.params;
	g.out = open_memstream(&body, &body_bytes);
	for (unsigned i = 0; i < g.params; i++) {
		put(&g, array ? "ld.param.u64 %%rd%u, [k_0+%u];" : "ld.param.u64 %%rd%u, [k_%u];", i, array ? 8 * i : i);
		g.pointers[g.count++] = (struct pointer){.number = i};
	}
	put(&g,
	    "ld.param.u32 %%n, [k_n];\n\tld.param.u64 %%m, [k_m];\n\tmov.u32 %%lane, %%tid.x;\n\tadd.u32 %%mixed, %%lane, %%n;");
	put(&g, "mov.u64 %%depot_at, depot;\n\tmov.u64 %%shared_at, cells;");
	for (unsigned i = 0; i < g.variables; i++) {
		put(&g, "mov.u64 %%v%u, %%rd%u;", i, pick(&g, g.params));
		g.pointers[g.count++] = (struct pointer){.number = i, .variable = true, .reach = REACH / 2};
	}
	/* So that what is read before it is written is a pointer too. */
	put(&g, "st.local.v2.u64 [depot], {%%rd0, %%rd0};\n\tst.local.v2.u64 [depot+16], {%%rd0, %%rd0};");
	put(&g, "mad.wide.u32 %%t0, %%lane, 8, %%shared_at;");
	for (unsigned i = 0; i < 4; i++)
		put(&g, "st.shared.u64 [%%t0+%u], %%rd0;", 256 * i);
	put(&g, "bar.sync 0;");
	if (array && pick(&g, 2)) {
		unsigned to = fresh(&g);

		put(&g,
		    "rem.u32 %%r0, %%mixed, %u;\n\tmov.b64 %%t0, k_0;\n\tmad.wide.u32 %%t0, %%r0, 8, %%t0;\n\tld.param.u64 %%rd%u, [%%t0];",
		    g.params, to);
		g.words = 1;
		found(&g, to, 0);
	}
	statements(&g, 6 + pick(&g, 20));
	fclose(g.out);

	out = open_memstream(&made.text, &made.bytes);
	fputs(head, out);
	for (unsigned i = 0; i < 4; i++)
		fprintf(out,
		        ".func (.param .b64 r) fetch%u(.param .b64 p)\n{\n\t.reg .b64 %%a;\n\tld.param.b64 %%a, [p];\n\tld.u64 %%a, [%%a+%u];\n"
		        "\tst.param.b64 [r], %%a;\n\tret;\n}\n",
		        i, 8 * i);
	fputs(".visible .entry k(", out);
	if (array)
		fprintf(out, ".param .align 8 .b8 k_0[%u], ", 8 * g.params);
	for (unsigned i = 0; i < g.params && !array; i++)
		fprintf(out, ".param .u64 k_%u, ", i);
	fprintf(out,
	        ".param .u32 k_n, .param .u64 k_m)\n{\n\t.local .align 16 .b8 depot[32];\n\t.shared .align 16 .b8 cells[1024];\n"
	        "\t.reg .b64 %%rd<%u>, %%v<4>, %%t<2>, %%m, %%depot_at, %%shared_at;\n\t.reg .b32 %%r<%u>, %%n, %%lane, %%mixed;\n"
	        "\t.reg .b16 %%h<4>;\n\t.reg .f64 %%d<1>;\n\t.reg .pred %%p<%u>;\n%s\tret;\n}\n",
	        g.registers + 1, g.words + 1, g.predicates + 1, body);
	fclose(out);
	free(body);
	made.slots = g.params + 2;
	made.pointers = g.params;
	return made;
}
