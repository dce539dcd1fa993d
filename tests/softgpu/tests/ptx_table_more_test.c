/* Instructions that compilers seldom write: packed integers and halves, video, .xorsign, and .sat of products. */
#include "tests/softgpu/tests/ptx_rows.h"

Test(ptx_table_more, packed_integers, .timeout = 60)
{
	const struct row rows[] = {
		{"add.u16x2 %r0, %r1, %r2;", 'r', 0xffff0001, 0x00010002, 0, 0x00000003},
		{"min.u16x2 %r0, %r1, %r2;", 'r', 0xffff0001, 0x00010002, 0, 0x00010001},
		{"min.s16x2 %r0, %r1, %r2;", 'r', 0xffff0001, 0x00010002, 0, 0xffff0001},
		{"max.s16x2 %r0, %r1, %r2;", 'r', 0xffff0001, 0x00010002, 0, 0x00010002},
		{"max.s16x2.relu %r0, %r1, %r2;", 'r', 0xffff0001, 0xfffe0002, 0, 0x00000002},
		{"vabsdiff4.u32.u32.u32 %r0, %r1, %r2, %r3;", 'r', 0x01ff8010, 0x0200ff10, 9, 0x01ff7f00},
		{"vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3;", 'r', 0x01ff8010, 0x0200ff10, 9, 1 + 255 + 127 + 9},
		{"vadd2.s32.s32.s32.sat %r0, %r1, %r2, %r3;", 'r', 0x7fff8000, 0x0001ffff, 0, 0x7fff8000},
		{"vadd4.u32.u32.u32 %r0, %r1, %r2, %r3;", 'r', 0xff010203, 0x01010101, 0, 0x00020304},
		{"vsub4.u32.u32.u32.sat %r0, %r1, %r2, %r3;", 'r', 0x01020304, 0x02010304, 0, 0x00010000},
		{"vmax4.s32.s32.s32 %r0, %r1, %r2, %r3;", 'r', 0x80ff007f, 0x00000080, 0, 0x0000007f},
		{"vmin2.u32.u32.u32 %r0, %r1, %r2, %r3;", 'r', 0x80ff007f, 0x00010080, 0, 0x0001007f},
		{"vset4.u32.u32.lt %r0, %r1, %r2, %r3;", 'r', 0x01020304, 0x02020104, 0, 0x01000000},
		{"vset2.s32.s32.ge.add %r0, %r1, %r2, %r3;", 'r', 0x0001ffff, 0x0000ffff, 5, 7},
		{"mad.hi.sat.s32 %r0, %r1, %r2, %r3;", 'r', 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff},
		{"mad.hi.sat.s32 %r0, %r1, %r2, %r3;", 'r', 0x80000000, 0x7fffffff, 0x80000000, 0x80000000},
		{"mad24.hi.sat.s32 %r0, %r1, %r2, %r3;", 'r', 0x7fffff, 0x7fffff, 0x7fffffff, 0x7fffffff},
	};

	RUN_ROWS(rows);
}

Test(ptx_table_more, packed_halves, .timeout = 60)
{
	const struct row rows[] = {
		{"setp.lt.f16x2 %p4|%p0, %r1, %r2;", 'p', 0x3c004000, 0x40003c00, 0, 1},
		{"setp.lt.f16x2 %p0|%p4, %r1, %r2;", 'p', 0x3c004000, 0x40003c00, 0, 0},
		{"setp.gtu.and.bf16x2 %p0|%p4, %r1, %r2, %p3;", 'p', 0x00007fc0, 0x3f803f80, 1, 1},
		{"set.le.f16x2.f16x2 %r0, %r1, %r2;", 'r', 0x3c004000, 0x3c003c00, 0, 0x3c000000},
		{"set.ne.u32.f16x2 %r0, %r1, %r2;", 'r', 0x3c007e00, 0x40003c00, 0, 0xffff0000},
		{"set.nan.bf16x2.bf16x2 %r0, %r1, %r2;", 'r', 0x3c007fff, 0x40003c00, 0, 0x00003f80},
		{"min.xorsign.abs.f32 %r0, %r1, %r2;", 'r', f(-2), f(3), 0, f(-2)},
		{"max.xorsign.abs.f32 %r0, %r1, %r2;", 'r', f(-2), f(-3), 0, f(3)},
		{"max.ftz.xorsign.abs.f32 %r0, %r1, %r2;", 'r', 0x80000001, 1, 0, 0x80000000},
		{"min.xorsign.abs.f16 %h0, %h1, %h2;", 'h', 0xc000, 0x3c00, 0, 0xbc00},
		{"max.xorsign.abs.bf16x2 %r0, %r1, %r2;", 'r', 0xbf803f80, 0x4000c000, 0, 0xc000c000},
		{"cvt.rna.tf32.f32 %r0, %r1;", 'r', 0x3f801000, 0, 0, 0x3f802000},
		{"cvt.rna.tf32.f32 %r0, %r1;", 'r', 0xbf800fff, 0, 0, 0xbf800000},
		{"cvt.rna.tf32.f32 %r0, %r1;", 'r', 0x7f7fffff, 0, 0, 0x7f800000},
	};

	RUN_ROWS(rows);
}

/* What the battery found on an H200: each row is a difference that there was. */
Test(ptx_table_more, as_on_the_hardware, .timeout = 60)
{
	const uint64_t quiet = UINT64_C(0x7ff8de1a3910750c), signaling = UINT64_C(0xfff0ef6c0acd5f62);
	const struct row rows[] = {
		{"neg.f32 %r0, %r1;", 'r', 0x7fe2335b, 0, 0, 0x7fffffff},
		{"abs.ftz.f32 %r0, %r1;", 'r', 0xffb77ee8, 0, 0, 0x7fffffff},
		{"neg.f64 %d0, %d1;", 'd', signaling, 0, 0, UINT64_C(0xfff8ef6c0acd5f62)},
		{"abs.f64 %d0, %d1;", 'd', UINT64_C(0xfff8000000000000), 0, 0, UINT64_C(0xfff8000000000000)},
		{"abs.f16 %h0, %h1;", 'h', 0xfdd9, 0, 0, 0x7fff},
		{"neg.ftz.f16x2 %r0, %r1;", 'r', 0xce007cba, 0, 0, 0x4e007fff},
		{"neg.bf16x2 %r0, %r1;", 'r', 0xc38bffe2, 0, 0, 0x438b7fff},
		{"add.rz.f64 %d0, %d1, %d2;", 'd', quiet, signaling, 0, quiet},
		{"mul.f64 %d0, %d1, %d2;", 'd', quiet, signaling, 0, quiet},
		{"fma.rn.f64 %d0, %d1, %d2, %d3;", 'd', g(1), quiet, signaling, quiet},
		{"max.f64 %d0, %d1, %d2;", 'd', quiet, signaling, 0, UINT64_C(0xfff8ef6c0acd5f62)},
		{"min.f64 %d0, %d1, %d2;", 'd', signaling, g(2), 0, g(2)},
		{"cvt.rn.f32.f64 %r0, %d1;", 'r', signaling, 0, 0, 0xffc77b60},
		{"cvt.rz.f16.f64 %h0, %d1;", 'h', signaling, 0, 0, 0xfe3b},
		{"cvt.rp.bf16.f64 %h0, %d1;", 'h', signaling, 0, 0, 0xffc7},
		{"cvt.f32.bf16 %r0, %h1;", 'r', 0xfffa, 0, 0, 0xfffa0000},
		{"cvt.f64.f16 %d0, %h1;", 'd', 0x7fff, 0, 0, UINT64_C(0x7ffffc0000000000)},
		{"cvt.ftz.f64.f32 %d0, %r1;", 'd', 0xffcd5f62, 0, 0, UINT64_C(0x7fffffffe0000000)},
		{"cvt.rmi.f64.f64 %d0, %d1;", 'd', signaling, 0, 0, UINT64_C(0xfff8ef6c0acd5f62)},
		{"cvt.rm.ftz.f16.f32 %h0, %r1;", 'h', 0x8003d095, 0, 0, 0x8001},
		{"cvt.rna.tf32.f32 %r0, %r1;", 'r', 0xffde5804, 0, 0, 0xffde4000},
		{"testp.normal.f32 %p0, %r1;", 'p', 0, 0, 0, 1},
		{"testp.normal.f64 %p0, %d1;", 'p', 1, 0, 0, 0},
		{"rem.s64 %d0, %d1, %d2;", 'd', 5, 0, 0, ALL64},
		{"rem.u16 %h0, %h1, %h2;", 'h', 0x9350, 0, 0, 0xffff},
		{"bfe.s64 %d0, %d1, 0, %r2;", 'd', 0x4d197e6f, 0xffc00000, 0, 0x4d197e6f},
		{"bfe.u64 %d0, %d1, %r2, 8;", 'd', ALL64, 0x101, 0, 0},
		{"bfe.u32 %r0, %r1, %r2, 8;", 'r', 0x1fe, 0x101, 0, 0xff},
		{"bfi.b64 %d0, %d1, %d1, 1, %r2;", 'd', 0x3953b320, 0x3953b320, 0, 0x72a76640},
		{"div.approx.f32 %r0, %r1, %r2;", 'r', 0x676b43c4, 0x7f7fffff, 0, 0},
		{"div.approx.f32 %r0, %r1, %r2;", 'r', f(INF), 0x7f7fffff, 0, 0x7fffffff},
		{"rcp.approx.ftz.f64 %d0, %d1;", 'd', signaling, 0, 0, UINT64_C(0x7fffffff00000000)},
		{"rcp.approx.ftz.f64 %d0, %d1;", 'd', UINT64_C(0x7fefffffffffffff), 0, 0, 0},
		{"rcp.approx.ftz.f64 %d0, %d1;", 'd', g(4), 0, 0, g(0.25)},
		{"rsqrt.approx.ftz.f64 %d0, %d1;", 'd', UINT64_C(0x63cf5066ed49), 0, 0, g(INF)},
		{"st.global.b32 [%d5], 0x7fb835eb; atom.global.add.f32 %r0, [%d5], 0f00000000; ld.global.b32 %r0, [%d5];",
	         'r', 0, 0, 0, 0x7fffffff},
		{"st.global.b32 [%d5], 0; red.global.add.f32 [%d5], 0f003FA098; ld.global.b32 %r0, [%d5];", 'r', 0, 0,
	         0, 0},
		{"st.global.b64 [%d5], 0; red.global.add.f64 [%d5], 0dFFF0EF6C0ACD5F62; ld.global.b64 %d0, [%d5];", 'd',
	         0, 0, 0, signaling},
		{".shared .b64 own; st.shared.b64 [own], 0; red.shared.add.f64 [own], 0dFFF0EF6C0ACD5F62; ld.shared.b64 %d0, [own];",
	         'd', 0, 0, 0, UINT64_C(0xfff8ef6c0acd5f62)},
		{".shared .b32 own; st.shared.b32 [own], 1; red.shared.add.f32 [own], 0f80000000; ld.shared.b32 %r0, [own];",
	         'r', 0, 0, 0, 1},
	};

	RUN_ROWS(rows);
}
