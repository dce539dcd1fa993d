/*
 * Texts that are cut, changed, nested, huge: an answer that is not clear or one that is, never a crash, never a read outside, in bounded time. Built
 * with sanitizers it shows more: the text is copied to the end of a page-exact allocation.
 *
 * usage: ptx_hostile FILE.ptx ... (hand-written kernels first)
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/kernels/paths.h"
#include "shim/kernels/ptx_list.h"
#include "tests/kernels/file.h"

static unsigned long answers, clear, failures;

static void expect(bool good, const char *what, size_t at)
{
	if (good)
		return;
	failures++;
	fprintf(stderr, "%s (%zu)\n", what, at);
}

static int nothing(void *ctx, const char *name, size_t length)
{
	return 0;
}

/* As long as it is: the byte behind it is not ours. */
static enum paths_reason ask(const char *text, size_t bytes, const char *kernel)
{
	struct kernel_paths paths;
	char *copy = malloc(bytes ? bytes : 1);
	enum paths_reason reason = PATHS_DAMAGED;
	int answer;

	if (!copy)
		exit(1);
	memcpy(copy, text, bytes);
	answer = paths_of_ptx(copy, bytes, kernel, &paths);
	expect(answer == 0 || answer == -ENOENT, "an answer that is none", bytes);
	answers++;
	if (answer == 0) {
		reason = paths.reason;
		clear += reason == PATHS_CLEAR;
		expect(reason <= PATHS_LIMIT && paths.slot_count <= 4096, "nonsense", bytes);
		for (size_t i = 0; i < paths.slot_count; i++)
			expect(paths.slots[i].use <= SLOT_STORE, "nonsense in a slot", i);
		kernel_paths_free(&paths);
	}
	free(copy);
	return reason;
}

/* A module that is cut somewhere is damaged, or lacks the kernel: it is clear only when what is missing are other kernels behind it. */
static void cut_everywhere(void)
{
	static const char text[] =
		".version 8.0\n.target sm_80\n.address_size 64\n// x\n.global .align 4 .b8 v[8] = {1,2};\n"
		".func (.param .b64 r) f(.param .b64 p)\n{\n.reg .b64 %a;\nld.param.b64 %a,[p];\nst.param.b64 [r],%a;\nret;\n}\n"
		".visible .entry k(.param .u64 k_a, .param .align 8 .b8 k_s[16])\n.maxntid 32\n{\n.reg .pred %p<3>;\n.reg .b64 %rd<9>;\n"
		".reg .b32 %r<4>;\n.local .align 8 .b8 d[16];\nld.param.u64 %rd1,[k_a];\nsetp.eq.s64 %p1,%rd1,0;\n@%p1 bra L;\n"
		"{ .param .b64 q0; .param .b64 q1; st.param.b64 [q0],%rd1; call.uni (q1),f,(q0); ld.param.b64 %rd2,[q1]; }\n"
		"mov.b64 {%r1,%r2},%rd2;\nst.local.v2.u32 [d],{%r1,%r2};\nld.local.u64 %rd3,[d];\nst.global.u32 [%rd3+4],0x1f;\nL:\nret;\n}\n";

	expect(ask(text, sizeof(text) - 1, "k") == PATHS_CLEAR, "the whole text is clear", 0);
	for (size_t bytes = 0; bytes + 2 < sizeof(text) - 1; bytes++)
		expect(ask(text, bytes, "k") != PATHS_CLEAR, "clear although cut", bytes);
}

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

static void mutate(const char *file, size_t bytes, unsigned rounds)
{
	static const char marks[] = "{}()[];,.:@!%$_<>|+-0123456789abcdefx\"/*\n ";
	char *text = malloc(bytes);

	if (!text)
		exit(1);
	for (unsigned round = 0; round < rounds; round++) {
		const char *entry = memmem(file, bytes, ".entry ", 7);
		char name[64] = "";

		/* A window around one kernel, so that the round is short. */
		for (unsigned skip = (unsigned)(random_next() % 100); skip && entry; skip--) {
			const char *next = memmem(entry + 7, bytes - (size_t)(entry + 7 - file), ".entry ", 7);

			if (!next)
				break;
			entry = next;
		}
		if (!entry || sscanf(entry, ".entry %63[^( \n]", name) != 1)
			break;
		memcpy(text, file, bytes);
		for (unsigned change = 1 + (unsigned)(random_next() % 4); change; change--) {
			size_t span = bytes - (size_t)(entry - file) < 2048 ? bytes - (size_t)(entry - file) : 2048;
			size_t at = (size_t)(entry - file) + random_next() % span, from = random_next() % bytes,
			       length = random_next() % 16;

			switch (random_next() % 3) {
			case 0:
				text[at] = marks[random_next() % (sizeof(marks) - 1)];
				break;
			case 1:
				text[at] = (char)random_next();
				break;
			default:
				if (at + length <= bytes && from + length <= bytes)
					memmove(text + at, file + from, length);
			}
		}
		ask(text, bytes, name);
	}
	free(text);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Writes one text by pieces: what stands in front, a piece so many times (# is its number, & the next one), what stands behind. */
static void repeated(const char *what, const char *front, const char *piece, unsigned times, const char *behind,
                     bool may_be_clear)
{
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	double start;
	enum paths_reason reason;

	fprintf(out, ".version 8.0\n.target sm_80\n.address_size 64\n%s", front);
	for (unsigned i = 0; i < times; i++)
		for (const char *at = piece; *at; at++)
			*at == '#' || *at == '&' ? fprintf(out, "%u", i + (*at == '&')) : fputc(*at, out);
	fputs(behind, out);
	fclose(out);
	start = seconds();
	reason = ask(text, bytes, "k");
	expect(may_be_clear || reason != PATHS_CLEAR, what, 0);
	expect(seconds() - start < 10, what, (size_t)(seconds() - start));
	printf("%s: reason %d, %.2f s, %zu bytes\n", what, reason, seconds() - start, bytes);
	free(text);
}

static void huge(void)
{
	static const char entry[] =
		".entry k(.param .u64 a){ .reg .b64 %rd<100000>; .reg .b32 %r<9>; .reg .pred %p<9>;\n ld.param.u64 %rd1,[a];\n";

	repeated("braces", ".entry k(.param .u64 a)", "{", 100000, "", false);
	repeated("closed braces", ".entry k(){", "{", 60000, "}", false);
	repeated("scopes", entry, "{ .reg .b64 %x#; } ", 100000, "ret; }", true);
	repeated("labels", entry, "L#: bra L&;\n", 100000, "L100000: st.global.u32 [%rd1],%r1; ret; }", true);
	repeated("backward labels", entry, "L#: @%p1 bra L0; mov.u64 %rd2,%rd1; mov.u64 %rd3,%rd2;\n", 50000,
	         "st.global.u32 [%rd3],%r1; ret; }", true);
	repeated("chain", ".entry k(.param .u64 a){ .reg .b64 %rd<100001>; .reg .b32 %r<9>; ld.param.u64 %rd0,[a];\n",
	         "mov.u64 %rd&,%rd#;\n", 99999, "st.global.u32 [%rd99999],%r1; ret; }", true);
	repeated("parameters", ".entry k(", ".param .u64 p#, ", 5000, ".param .u64 q){ ret; }", false);
	repeated("wide parameter", ".entry k(.param .b8 p[4000000000]", " ", 1, "){ ret; }", false);
	repeated("variables", "", ".global .b8 v#[1000000000];\n", 70000, ".entry k(){ ret; }", false);
	repeated("locals", ".entry k(){ ", ".local .b8 v#[60000];\n", 10000, "ret; }", true);
	repeated("comment", "/*", "/* x", 100000, "", false);
	repeated("vector", entry, "ld.global.v4.u32 {%r1,%r2,%r3,%r4},[%rd1];", 1000, " mov.b64 %rd2,{%r1,,};ret; }",
	         false);
	repeated("operands", ".entry k(){ call f,(", "1,", 100000, "1); ret; }", false);
	repeated("functions", "", ".func f#(){ call f&; ret; }\n", 40000, ".entry k(){ call f0; ret; }", true);
	repeated("targets", ".entry k(){ .reg .b32 %r<2>; T: .branchtargets ", "L,", 100000,
	         "L; brx.idx %r1,T; L: ret; }", true);
}

/* Many slots joined in many ways: sets are bounded. */
static void many_slots(void)
{
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	double start = seconds();

	fputs(".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .align 8 .b8 s[32000]){ .reg .b64 %v<4001>; .reg .pred %p; .reg .b64 %t;\n",
	      out);
	for (unsigned i = 0; i < 4000; i++)
		fprintf(out, "ld.param.u64 %%v%u,[s+%u];\n", i, 8 * i);
	for (unsigned i = 0; i < 4000; i++)
		fprintf(out, "L%u: selp.b64 %%v%u,%%v%u,%%v%u,%%p; @%%p bra L%u;\n", i, i, (i * 7) % 4000,
		        (i * 13 + 1) % 4000, i / 2);
	fputs("st.global.u32 [%v1],0; ret; }", out);
	fclose(out);
	ask(text, bytes, "k");
	expect(seconds() - start < 10, "many slots", (size_t)(seconds() - start));
	printf("many slots: %.2f s\n", seconds() - start);
	free(text);
}

int main(int argc, char **argv)
{
	unsigned rounds = getenv("HOSTILE_ROUNDS") ? (unsigned)atoi(getenv("HOSTILE_ROUNDS")) : 300;

	cut_everywhere();
	huge();
	many_slots();
	for (int i = 1; i < argc; i++) {
		size_t bytes;
		char *text = read_whole(argv[i], &bytes);

		expect(text != NULL, argv[i], 0);
		if (!text)
			continue;
		mutate(text, bytes, rounds);
		ptx_kernels(text, bytes / 2, nothing, NULL, NULL);
		free(text);
	}
	printf("%lu answers, %lu of them clear, %lu failures\n", answers, clear, failures);
	return failures || answers < 500;
}
