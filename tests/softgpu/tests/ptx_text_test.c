/* Texts: what is accepted, what is refused and with which words. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/softgpu/tests/ptx_rig.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define BODY(text)                                                                                                     \
	HEAD ".entry k(.param .u64 p)\n{\n.reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p<4>; .reg .f32 %f<4>;\n" text \
	     "\n}\n"

static const struct {
	const char *text;
	enum ptx_status status;
	const char *log;
} refused[] = {
	{"", PTX_INVALID, "ptx line 1: the text does not begin with .version"},
	{"\n\nhello", PTX_INVALID, "ptx line 3: the text does not begin with .version"},
	{".version 8\n", PTX_INVALID, "ptx line 1: a version like 7.0 is due here"},
	{".version 12.0\n.target sm_90", PTX_UNSUPPORTED_VERSION, "ptx line 1: PTX of version 10 or newer"},
	{".version 8.0\n.entry", PTX_INVALID, "ptx line 2: .target is due after .version"},
	{".version 8.0 .target sm_900", PTX_INVALID, "ptx line 1: there is no target 'sm_900'"},
	{".version 8.0 .target sm_90 .address_size 32", PTX_UNSUPPORTED, "ptx line 1: addresses of 32 bits"},
	{HEAD "/* no end", PTX_INVALID, "ptx line 4: a comment does not end"},
	{HEAD "\001", PTX_INVALID, "ptx line 4: character 0x01 has no meaning here"},
	{HEAD ".entry k() {", PTX_INVALID, "ptx line 4: the text ends inside a function"},
	{HEAD ".entry k() }", PTX_INVALID, "ptx line 4: '{' is due here"},
	{HEAD ".entry k() { ret; } .entry k() { ret; }", PTX_INVALID, "ptx line 4: 'k' is declared twice"},
	{HEAD ".global .u32 x; .global .u32 x;", PTX_INVALID, "ptx line 4: 'x' is declared twice"},
	{HEAD ".global .u32 x[2] = {1, 2, 3};", PTX_INVALID, "ptx line 4: more initial values than 'x' holds"},
	{HEAD ".global .u32 x[0];", PTX_INVALID, "ptx line 4: an array's size is out of range"},
	{HEAD ".global .u32 x[0xffffffffffffffff];", PTX_INVALID, "ptx line 4: an array's size is out of range"},
	{HEAD ".global .u32 x[0x10000000000000000];", PTX_INVALID, "ptx line 4: an integer constant does not fit 64 bits"},
	{HEAD ".global .b8 x[0x100000000000];", PTX_OUT_OF_MEMORY,
         "ptx line 4: no device memory for 'x' of 17592186044416 bytes"},
	{HEAD ".shared .b8 x[300000];", PTX_INVALID, "ptx line 4: 'x' does not fit: the limit is 232448 bytes"},
	{HEAD ".global .align 3 .b8 x[4];", PTX_INVALID, "ptx line 4: the alignment is not a power of two up to 2^20"},
	{HEAD ".global .u64 x = y;", PTX_INVALID, "ptx line 4: 'y' is not declared"},
	{HEAD ".global .u32 x = 1 / 0;", PTX_INVALID, "ptx line 4: a constant is divided by zero"},
	{HEAD ".global .u32 x = 1.5;", PTX_INVALID, "ptx line 4: a float constant where an integer is due"},
	{HEAD ".extern .global .u32 x;", PTX_UNSUPPORTED, "ptx line 4: 'x' is declared .extern and never defined"},
	{HEAD ".func f() { ret; } .alias g, f;", PTX_UNSUPPORTED, "ptx line 4: directive .alias"},
	{HEAD ".entry k() .wobble { ret; }", PTX_UNSUPPORTED, "ptx line 4: directive .wobble"},
	{BODY("frobnicate.u32 %r1, %r2;"), PTX_INVALID, "ptx line 7: frobnicate: there is no such instruction"},
	{BODY("add.s128 %r1, %r2, %r3;"), PTX_UNSUPPORTED, "ptx line 7: instruction 'add.s128' is not supported"},
	{BODY("add.wobble.s32 %r1, %r2, %r3;"), PTX_UNSUPPORTED,
         "ptx line 7: instruction 'add.wobble.s32' is not supported"},
	{BODY("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1,%r2,%r3,%r1}, {%r1}, {%r2}, {%r3};"), PTX_INVALID,
         "ptx line 7: mma: a fragment's number of registers is not the shape's"},
	{BODY("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1,%r2,%r3,%r1}, {%r1}, {%r2}, {%r3};"),
         PTX_UNSUPPORTED, "ptx line 7: instruction 'mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32' is not supported"},
	{BODY("\n\nadd.s32 %r1, %r2;"), PTX_INVALID, "ptx line 9: add: wrong number of operands"},
	{BODY("add.s32 %r1, %r2, %r9;"), PTX_INVALID, "ptx line 7: '%r9' is not declared"},
	{BODY("mov.u32 %r1, %envreg1;"), PTX_UNSUPPORTED, "ptx line 7: '%envreg1' is not supported"},
	{BODY("add.s32 %r1, %r2, %d1;"), PTX_INVALID, "ptx line 7: add: an operand's width is not the instruction's"},
	{BODY("add.s32 %d1, %r2, %r3;"), PTX_INVALID, "ptx line 7: add: the destination's width is not the instruction's"},
	{BODY("add.s32 %p1, %r2, %r3;"), PTX_INVALID, "ptx line 7: add: a predicate and a number are mixed up"},
	{BODY("add.s32 5, %r2, %r3;"), PTX_INVALID, "ptx line 7: add: a register is due as destination"},
	{BODY("add.s32 %tid.x, %r2, %r3;"), PTX_INVALID, "ptx line 7: add: a register is due as destination"},
	{BODY("add.s32 %r1, %r2, 1.0;"), PTX_INVALID, "ptx line 7: a float constant where an integer is due"},
	{BODY("add.f32 %f1, %f2, 0f3F80;"), PTX_INVALID, "ptx line 7: a float constant needs 8 hexadecimal digits"},
	{BODY("add.f32 %f1, %f2, 1;"), PTX_INVALID, "ptx line 7: an integer constant where a float is due"},
	{BODY("mul.s32 %r1, %r2, %r3;"), PTX_INVALID, "ptx line 7: mul: one of .lo, .hi and .wide is due"},
	{BODY("cvt.s32.f32 %r1, %f1;"), PTX_INVALID, "ptx line 7: cvt: one of .rni, .rzi, .rmi and .rpi is due"},
	{BODY("cvt.f32.s32 %f1, %r1;"), PTX_INVALID, "ptx line 7: cvt: a rounding is due"},
	{BODY("bra nowhere;"), PTX_INVALID, "ptx line 7: there is no label 'nowhere'"},
	{BODY("{ x: ret; } bra x;"), PTX_INVALID, "ptx line 7: there is no label 'x'"},
	{BODY("x: x: ret;"), PTX_INVALID, "ptx line 7: 'x' is declared twice"},
	{BODY("@%r1 ret;"), PTX_INVALID, "ptx line 7: '%r1' is not a predicate"},
	{BODY("@%p9 ret;"), PTX_INVALID, "ptx line 7: '%p9' is not a predicate"},
	{BODY("ld.global.v4.u32 {%r1, %r2}, [%d1];"), PTX_INVALID,
         "ptx line 7: ld: the vector's length is not the instruction's"},
	{BODY("ld.global.v8.u64 {%d1,%d1,%d1,%d1,%d1,%d1,%d1,%d1}, [%d1];"), PTX_INVALID,
         "ptx line 7: ld: more than 32 bytes"},
	{BODY("ld.global.u32 %r1, %d1;"), PTX_INVALID, "ptx line 7: ld: an address in brackets is due"},
	{BODY("ld.shared.u32 %r1, [p];"), PTX_INVALID, "ptx line 7: ld: the variable is in another state space"},
	{BODY("st.param.u32 [p], 1;"), PTX_INVALID, "ptx line 7: st: this state space cannot be written"},
	{BODY("ld.global.u32 %r1, [%d1"), PTX_INVALID, "ptx line 8: ']' is due here"},
	{BODY("call missing;"), PTX_INVALID, "ptx line 7: call: the function is not declared"},
	{BODY("call %d1;"), PTX_UNSUPPORTED,
         "ptx line 7: instruction 'call' is not supported: only functions of the module can be called, by name"},
	{BODY("call k;"), PTX_UNSUPPORTED, "ptx line 7: instruction 'call' is not supported: a kernel cannot be called"},
	{HEAD ".extern .func f();\n"
              ".entry k() { call f; ret; }",
         PTX_UNSUPPORTED, "ptx line 4: a call of 'f', which has no body"},
	{BODY("brx.idx %r1, nothing;"), PTX_INVALID, "ptx line 7: brx: a list of branch targets, declared before, is due"},
	{BODY(".reg .b32 %many<2000000>;"), PTX_UNSUPPORTED, "ptx line 7: more than 1048576 registers"},
	{BODY("bar.sync;"), PTX_INVALID, "ptx line 7: bar: wrong number of operands"},
	{BODY("lop3.b32 %r1, %r1, %r2, %r3, 256;"), PTX_INVALID, "ptx line 7: lop3: a table from 0 to 255 is due"},
	{BODY("add.s32.s32.s32.s32.s32.s32.s32.s32.s32.s32.s32.s32.s32.s32.s32.s32.s32 %r1, %r2, %r3;"), PTX_INVALID,
         "ptx line 7: more than 16 modifiers"},
};

Test(ptx_text, refused, .timeout = 30)
{
	for (size_t n = 0; n < sizeof(refused) / sizeof(refused[0]); n++) {
		struct rig rig;

		rig_create(&rig);
		enum ptx_status status = rig_load(&rig, refused[n].text);
		cr_expect_eq(status, refused[n].status, "%s\n-> %d %s", refused[n].text, status, rig.log);
		cr_expect_str_eq(rig.log, refused[n].log, "%s\n-> %s", refused[n].text, rig.log);
		cr_expect_null(rig.module);
		cr_expect_eq(rig.range_count, 0, "device memory was not given back");
		rig_destroy(&rig);
	}
}

Test(ptx_text, nesting, .timeout = 30)
{
	static char text[400000];
	struct rig rig;

	rig_create(&rig);
	strcpy(text, HEAD ".entry k() ");
	memset(text + strlen(text), '{', 100000);
	cr_assert_eq(rig_load(&rig, text), PTX_INVALID);
	cr_assert_str_eq(rig.log, "ptx line 4: braces nest deeper than 64");
	memset(text, 0, sizeof(text));
	strcpy(text, HEAD ".global .u32 x = ");
	memset(text + strlen(text), '(', 100000);
	cr_assert_eq(rig_load(&rig, text), PTX_INVALID);
	memset(text, 0, sizeof(text));
	strcpy(text, HEAD ".global .u32 x = ");
	memset(text + strlen(text), '-', 100000);
	cr_assert_eq(rig_load(&rig, text), PTX_INVALID);
	memset(text, 0, sizeof(text));
	strcpy(text, HEAD ".global .u32 x = ");
	memset(text + strlen(text), '{', 100000);
	cr_assert_eq(rig_load(&rig, text), PTX_INVALID);
	rig_destroy(&rig);
}

Test(ptx_text, accepted, .timeout = 30)
{
	static const char *const texts[] = {
		HEAD,
		HEAD ".file 1 \"a.cu\", 12, 34\n.section .debug_str { .b8 1 \n x: .b8 2 }\n",
		HEAD ".weak .global .align 16 .v4 .f32 v[2] = {{1.0, 2.0, 3.0, 4.0}, {0f3F800000}};",
		HEAD
		".visible .entry k() .maxntid 1, 2, 3 .minnctapersm 2 .maxnreg 40 .pragma \"x\"; { .loc 1 2 3\n .pragma \"nounroll\"; ; ret; }",
		HEAD
		".entry k(.param .align 8 .b8 s[24], .param .u64 .ptr .global .align 4 q) { L: { L: bra L; } bra L; }",
		HEAD ".func (.param .b32 r) f(.param .b32 x); .func (.param .b32 r) f(.param .b32 x) { ret; }",
		HEAD
		".entry k() { .reg .b32 %r1<4>, %r<4>, a; mov.u32 %r12, 1; mov.u32 %r3, %r12; mov.u32 a, %r3; prefetch.global.L2 [0]; }",
		HEAD
		".entry k() { .reg .b32 r; mov.u32 r, (1 + 2) * 3 << 4; mov.u32 r, 017; mov.u32 r, 0b101U; mov.u32 r, WARP_SZ; }",
		".version 7.0 .target sm_75, texmode_independent .address_size 64 // end",
		".version 9.0\r\n.target sm_100a\r\n.address_size 64\r\n",
	};

	for (size_t n = 0; n < sizeof(texts) / sizeof(texts[0]); n++) {
		struct rig rig;

		rig_create(&rig);
		enum ptx_status status = rig_load(&rig, texts[n]);
		cr_expect_eq(status, PTX_OK, "%s\n-> %d %s", texts[n], status, rig.log);
		rig_destroy(&rig);
	}
}

/*
 * A function's name enters the outer scope while its results are in the inner one: neither may take the other's place
 * in the table.
 */
Test(ptx_text, names_of_functions_outlive_their_results, .timeout = 60)
{
	struct rig rig;

	rig_create(&rig);
	for (unsigned n = 0; n < 8192; n++) {
		char text[256];

		snprintf(text, sizeof(text),
		         HEAD
		         ".func (.param .b32 result) f%u() { ret; } .entry k() { .param .b32 x; call (x), f%u; ret; }",
		         n, n);
		cr_assert_eq(rig_load(&rig, text), PTX_OK, "%s", rig.log);
	}
	rig_destroy(&rig);
}

Test(ptx_text, initial_values, .timeout = 30)
{
	struct rig rig;
	uint64_t a, b, c;
	size_t bytes;

	rig_create(&rig);
	cr_assert_eq(rig_load(&rig, HEAD
	                      ".global .u16 a[2][3] = {{1, 2, 3}, {-1}}; .const .u64 b[3] = {a, a + 4, generic(a)+2};\n"
	                      ".global .f32 c[] = {1.5, -2.5, 0f40400000}; .global .b8 d[4] = {104, 0x69, 0};"),
	             PTX_OK, "%s", rig.log);
	cr_assert(ptx_global(rig.module, "a", &a, &bytes));
	cr_assert_eq(bytes, 12);
	const uint16_t words[6] = {1, 2, 3, 0xffff, 0, 0};
	cr_assert_arr_eq(RIG_AT(uint16_t, a), words, 12);
	cr_assert(ptx_global(rig.module, "b", &b, &bytes));
	const uint64_t addresses[3] = {a, a + 4, a + 2};
	cr_assert_arr_eq(RIG_AT(uint64_t, b), addresses, 24);
	cr_assert(ptx_global(rig.module, "c", &c, &bytes));
	cr_assert_eq(bytes, 12);
	cr_assert_eq(RIG_AT(float, c)[1], -2.5f);
	cr_assert_eq(RIG_AT(float, c)[2], 3.0f);
	rig_destroy(&rig);
}

Test(ptx_text, look_ups, .timeout = 30)
{
	struct rig rig;
	size_t at, bytes;

	rig_create(&rig);
	cr_assert_eq(
		rig_load(&rig, HEAD
	                 ".func f() { ret; } .entry a(.param .u8 x, .param .align 16 .b8 y[20], .param .u64 z) { ret; } .entry b() { ret; }"),
		PTX_OK, "%s", rig.log);
	cr_assert_eq(ptx_function_count(rig.module), 2);
	cr_assert_null(ptx_find(rig.module, "f"));
	cr_assert_str_eq(ptx_function_name(ptx_function_at(rig.module, 1)), "b");
	const struct ptx_function *a = ptx_find(rig.module, "a");
	cr_assert(ptx_function_param(a, 1, &at, &bytes) && at == 16 && bytes == 20);
	cr_assert(ptx_function_param(a, 2, &at, &bytes) && at == 40 && bytes == 8);
	at = 77;
	cr_assert(!ptx_function_param(a, 3, &at, &bytes));
	cr_assert_eq(at, 77);
	cr_assert_eq(ptx_function_params_bytes(a), 48);
	/* A short log is cut, and none at all is fine. */
	char small[12];
	struct ptx_module *module = NULL;
	cr_assert_eq(ptx_load("x", 1, &rig.memory, small, sizeof(small), &module), PTX_INVALID);
	cr_assert_str_eq(small, "ptx line 1:");
	cr_assert_eq(ptx_load("x", 1, &rig.memory, NULL, 0, &module), PTX_INVALID);
	cr_assert_null(module);
	ptx_unload(&module);
	ptx_unload(NULL);
	rig_destroy(&rig);
}
