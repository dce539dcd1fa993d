#include "tests/kernels/values_generate.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/kernels/random_text.h"

struct generator {
	FILE *out;
	uint64_t random;
	unsigned words, predicates, labels, depth, addresses;
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

static const char *word(struct generator *g)
{
	static const char *const names[] = {"%a", "%b", "%c"};

	return names[pick(g, 3)];
}

/* A number made of parameters; not known to compilers. */
static unsigned number(struct generator *g)
{
	/* Each leaves a wider register filled with zeros, or with the sign. */
	static const char *const cuts[] = {"s8.s32", "s16.s32", "s8.u32", "u8.s32", "u16.u32", "s32.s8", "u32.s16"};
	unsigned to = g->words++, before;
	const char *x = word(g), *y = word(g);

	switch (pick(g, 11)) {
	case 0:
		put(g, "add.s32 %%r%u, %s, %s;", to, x, y);
		break;
	case 1:
		put(g, "xor.b32 %%r%u, %s, %s;", to, x, y);
		break;
	case 2:
		put(g, "shr.u32 %%r%u, %s, 1;", to, x);
		break;
	case 3:
		put(g, "sub.s32 %%r%u, %s, %s;", to, x, y);
		break;
	case 4:
		put(g, "shl.b32 %%r%u, %s, 2;", to, x);
		break;
	case 5:
		put(g, "mul.lo.s32 %%r%u, %s, %s;", to, x, y);
		break;
	case 6:
		put(g, "shr.s32 %%r%u, %s, %u;", to, x, pick(g, 4));
		break;
	case 7:
		put(g, "not.b32 %%r%u, %s;", to, x);
		break;
	case 8:
	case 9:
		before = g->words++;
		put(g, "shl.b32 %%r%u, %s, %u;", before, x, 4 + pick(g, 11));
		put(g, "cvt.%s %%r%u, %%r%u;", cuts[pick(g, 7)], to, before);
		break;
	default:
		put(g, "mov.u32 %%r%u, %s;", to, x);
	}
	return to;
}

/*
 * A predicate of one of the many forms that one word, or several, can decide; now and then one that the lane decides. What is picked is picked in lines of its own: compilers choose the
 * order of arguments, and the kernels of a seed are those that ptxas was given.
 */
static unsigned condition(struct generator *g, bool params_only)
{
	static const char *const relations[] = {"eq", "ne", "lt", "le", "gt", "ge"};
	const char *relation = relations[pick(g, 6)], *x, *y, *kind;
	unsigned to = g->predicates++, first, second, value, bound;

	switch (pick(g, params_only ? 12 : 14)) {
	case 0:
		bound = pick(g, 4);
		x = word(g);
		kind = pick(g, 2) ? "eq" : "ne";
		put(g, "setp.%s.u32 %%p%u, %s, %u;", kind, to, x, bound);
		break;
	case 1:
		value = g->words++;
		bound = pick(g, 3);
		x = word(g);
		put(g, "and.b32 %%r%u, %s, %u;", value, x, 1u << bound);
		put(g, "setp.%s.s32 %%p%u, %%r%u, 0;", pick(g, 2) ? "eq" : "ne", to, value);
		break;
	case 2:
		bound = pick(g, 7);
		x = word(g);
		kind = pick(g, 2) ? "s32" : "u32";
		put(g, "setp.%s.%s %%p%u, %s, %d;", relation, kind, to, x, (int)bound - 1);
		break;
	case 3:
		y = word(g);
		x = word(g);
		put(g, "setp.%s.s32 %%p%u, %s, %s;", relation, to, x, y);
		break;
	case 4:
		value = number(g);
		bound = pick(g, 9);
		kind = pick(g, 2) ? "s32" : "u32";
		put(g, "setp.%s.%s %%p%u, %%r%u, %d;", relation, kind, to, value, (int)bound - 2);
		break;
	case 5:
		first = condition(g, params_only), second = condition(g, params_only);
		put(g, "%s.pred %%p%u, %%p%u, %%p%u;",
		    pick(g, 2)   ? "and"
		    : pick(g, 2) ? "or"
		                 : "xor",
		    to, first, second);
		break;
	case 6:
		first = condition(g, params_only);
		put(g, "not.pred %%p%u, %%p%u;", to, first);
		break;
	case 7:
		x = pick(g, 2) ? "4294967296" : pick(g, 2) ? "-1" : "5";
		kind = pick(g, 2) ? "s64" : "u64";
		put(g, "setp.%s.%s %%p%u, %%d, %s;", relation, kind, to, x);
		break;
	case 8:
		bound = pick(g, 2);
		kind = pick(g, 2) ? "eq" : "ne";
		put(g, "setp.%s.s16 %%p%u, %%f, %u;", kind, to, bound);
		break;
	case 9:
		/* A range: one comparison of a difference. */
		value = g->words++;
		put(g, "add.s32 %%r%u, %s, -1;", value, word(g));
		put(g, "setp.lt.u32 %%p%u, %%r%u, %u;", to, value, 1 + pick(g, 3));
		break;
	case 10:
		first = condition(g, params_only);
		bound = pick(g, 4);
		x = word(g);
		put(g, "setp.%s.and.u32 %%p%u, %s, %u, %%p%u;", relation, to, x, bound, first);
		break;
	case 11:
		put(g, "setp.ne.u64 %%p%u, %%rd3, 0;", to);
		break;
	default:
		value = g->words++;
		put(g, "and.b32 %%r%u, %%lane, %u;", value, 1 + pick(g, 3));
		put(g, "setp.eq.u32 %%p%u, %%r%u, 0;", to, value);
	}
	return to;
}

/* An address: of a buffer, from the table, or what a variable holds. */
static const char *address(struct generator *g, char text[16])
{
	unsigned to;

	switch (pick(g, 5)) {
	case 0:
		to = g->addresses++;
		put(g, "ld.global.u64 %%t%u, [%%table+%u];", to, 8 * pick(g, 2));
		snprintf(text, 16, "%%t%u", to);
		break;
	case 1:
	case 2:
		snprintf(text, 16, "%%v%u", pick(g, 2));
		break;
	default:
		snprintf(text, 16, "%%rd%u", pick(g, 3));
	}
	return text;
}

static void statement(struct generator *g);

static void branch(struct generator *g)
{
	unsigned label = g->labels++, end = g->labels++, predicate = condition(g, false);

	g->depth++;
	put(g, "@%s%%p%u bra L%u;", pick(g, 2) ? "!" : "", predicate, label);
	statement(g);
	statement(g);
	if (pick(g, 2)) {
		put(g, "bra L%u;", end);
		put(g, "L%u:", label);
		statement(g);
		put(g, "L%u:", end);
	} else {
		put(g, "L%u:", label);
	}
	g->depth--;
}

/* As often as a parameter says, or four times. */
static void loop(struct generator *g)
{
	unsigned label = g->labels++, predicate = g->predicates++, count = g->words++, end = g->labels++;
	unsigned leaves = condition(g, false);

	g->depth++;
	put(g, "mov.u32 %%r%u, 0;", count);
	put(g, "L%u:", label);
	statement(g);
	put(g, "@%%p%u bra L%u;", leaves, end);
	statement(g);
	put(g, "add.u32 %%r%u, %%r%u, 1;", count, count);
	put(g, "setp.lt.u32 %%p%u, %%r%u, %s;", predicate, count, pick(g, 2) ? "4" : word(g));
	put(g, "@%%p%u bra L%u;", predicate, label);
	put(g, "L%u:", end);
	g->depth--;
}

static void choose(struct generator *g)
{
	unsigned end = g->labels++, next = 0;
	const char *by = word(g);

	g->depth++;
	for (unsigned i = 0; i < 3; i++) {
		unsigned predicate = g->predicates++;

		next = g->labels++;
		put(g, "setp.ne.u32 %%p%u, %s, %u;", predicate, by, i);
		put(g, "@%%p%u bra L%u;", predicate, next);
		statement(g);
		put(g, "bra L%u;", end);
		put(g, "L%u:", next);
	}
	statement(g);
	put(g, "L%u:", end);
	g->depth--;
}

static void store(struct generator *g)
{
	char text[16];
	const char *at = address(g, text);
	unsigned predicate;

	switch (pick(g, 4)) {
	case 0:
		predicate = condition(g, false);
		put(g, "@%s%%p%u st.global.u32 [%s], %%lane;", pick(g, 2) ? "!" : "", predicate, at);
		break;
	case 1:
		put(g, "{ .param .b64 q0; st.param.b64 [q0], %s; call.uni write, (q0); }", at);
		break;
	default:
		put(g, "st.global.u32 [%s], %%lane;", at);
	}
}

static void assign(struct generator *g)
{
	char first[16], second[16];
	const char *x = address(g, first), *y = address(g, second);
	unsigned predicate, to = pick(g, 2);

	switch (pick(g, 3)) {
	case 0:
		predicate = condition(g, false);
		put(g, "selp.b64 %%v%u, %s, %s, %%p%u;", to, x, y, predicate);
		break;
	case 1:
		predicate = condition(g, false);
		put(g, "@%%p%u mov.u64 %%v%u, %s;", predicate, to, x);
		break;
	default:
		put(g, "mov.u64 %%v%u, %s;", to, x);
	}
}

/* A buffer that may not be there. */
static void optional(struct generator *g)
{
	unsigned predicate = g->predicates++;

	put(g, "setp.eq.u64 %%p%u, %%rd3, 0;", predicate);
	put(g, "@!%%p%u st.global.u32 [%%rd3+8], %%lane;", predicate);
}

static void statement(struct generator *g)
{
	unsigned kind = pick(g, 16);

	if (kind < 4)
		store(g);
	else if (kind < 8 || g->depth > 2)
		assign(g);
	else if (kind < 13)
		branch(g);
	else if (kind < 14)
		loop(g);
	else if (kind < 15)
		choose(g);
	else
		optional(g);
}

struct values_kernel values_generate(uint64_t seed)
{
	struct generator g = {.random = seed * 0x9e3779b97f4a7c15ull + 1};
	struct values_kernel made = {.text = NULL};
	char *body = NULL;
	size_t body_bytes;

	for (int i = 0; i < 8; i++)
		pick(&g, 2);
	g.out = open_memstream(&body, &body_bytes);
	for (unsigned i = 2 + pick(&g, 5); i; i--)
		statement(&g);
	fclose(g.out);
	g.out = open_memstream(&made.text, &made.bytes);
	fputs(".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3, .param .u64 table, .param .u32 a, .param .u32 b,\n"
	      "\t.param .u32 c, .param .u8 f, .param .u64 d)\n{\n",
	      g.out);
	fprintf(g.out,
	        "\t.reg .b64 %%rd<4>, %%v<2>, %%table, %%d, %%t<%u>;\n\t.reg .b32 %%r<%u>, %%a, %%b, %%c, %%lane;\n\t.reg .b16 %%f;\n"
	        "\t.reg .pred %%p<%u>;\n",
	        g.addresses + 1, g.words + 1, g.predicates + 1);
	for (unsigned i = 0; i < 4; i++)
		put(&g, "ld.param.u64 %%rd%u, [p%u];", i, i);
	put(&g,
	    "ld.param.u64 %%table, [table];\n\tld.param.u32 %%a, [a];\n\tld.param.u32 %%b, [b];\n\tld.param.u32 %%c, [c];");
	put(&g, "ld.param.u8 %%f, [f];\n\tld.param.u64 %%d, [d];\n\tmov.u32 %%lane, %%tid.x;");
	put(&g, "mov.u64 %%v0, %%rd0;\n\tmov.u64 %%v1, %%rd1;");
	fputs(body, g.out);
	put(&g, "ret;\n}");
	fclose(g.out);
	free(body);
	return made;
}

const char values_head[] =
	".version 8.0\n.target sm_75\n.address_size 64\n"
	".func write(.param .b64 p)\n{\n\t.reg .b64 %a;\n\tld.param.b64 %a, [p];\n\tst.global.u32 [%a+8], 5;\n\tret;\n}\n";
