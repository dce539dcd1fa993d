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
