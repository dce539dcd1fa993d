/* One instruction at a time: operands in, bits out, with the edges the ISA describes. */
#include <criterion/criterion.h>

#include "tests/softgpu/tests/ptx_rows.h"

Test(ptx_table, integers, .timeout = 60)
{
	const struct row rows[] = {
		{"add.s32 %r0, %r1, %r2;", 'r', 0x7fffffff, 1, 0, MIN32},
		{"add.u32 %r0, %r1, -1;", 'r', 0, 0, 0, ALL32},
		{"add.u16 %h0, %h1, %h2;", 'h', 0xffff, 2, 0, 1},
		{"add.s64 %d0, %d1, %d2;", 'd', ALL64, 2, 0, 1},
		{"add.sat.s32 %r0, %r1, %r2;", 'r', 0x7fffffff, 1, 0, 0x7fffffff},
		{"sub.sat.s32 %r0, %r1, %r2;", 'r', MIN32, 1, 0, MIN32},
		{"sub.u32 %r0, %r1, %r2;", 'r', 0, 1, 0, ALL32},
		{"mul.lo.u32 %r0, %r1, %r2;", 'r', 0x10001, 0x10001, 0, 0x20001},
		{"mul.hi.u32 %r0, %r1, %r2;", 'r', ALL32, ALL32, 0, 0xfffffffe},
		{"mul.hi.s32 %r0, %r1, %r2;", 'r', ALL32, ALL32, 0, 0},
		{"mul.hi.u64 %d0, %d1, %d2;", 'd', ALL64, ALL64, 0, ALL64 - 1},
		{"mul.hi.s64 %d0, %d1, %d2;", 'd', MIN64, 2, 0, ALL64},
		{"mul.lo.u16 %h0, %h1, %h2;", 'h', 0xffff, 0xffff, 0, 1},
		{"mul.hi.u16 %h0, %h1, %h2;", 'h', 0xffff, 0xffff, 0, 0xfffe},
		{"mul.wide.u16 %r0, %h1, %h2;", 'r', 0xffff, 0xffff, 0, 0xfffe0001},
		{"mul.wide.s16 %r0, %h1, %h2;", 'r', 0xffff, 2, 0, NEG32(2)},
		{"mul.wide.u32 %d0, %r1, %r2;", 'd', ALL32, ALL32, 0, UINT64_C(0xfffffffe00000001)},
		{"mul.wide.s32 %d0, %r1, 3;", 'd', ALL32, 0, 0, NEG(3)},
		{"mad.lo.s32 %r0, %r1, %r2, %r3;", 'r', 7, NEG32(3), 5, NEG32(16)},
		{"mad.hi.u32 %r0, %r1, %r2, %r3;", 'r', ALL32, 2, 5, 6},
		{"mad.lo.u64 %d0, %d1, %d2, %d3;", 'd', UINT64_C(0x9e3779b97f4a7c15), 3, 1,
	         UINT64_C(0x9e3779b97f4a7c15) * 3 + 1},
		{"mad.wide.u32 %d0, %r1, %r2, %d3;", 'd', ALL32, 2, ALL64, UINT64_C(0x1fffffffd)},
		{"mad.wide.s32 %d0, %r1, %r2, %d3;", 'd', ALL32, 2, 1, ALL64},
		{"mul24.lo.u32 %r0, %r1, %r2;", 'r', 0xff000003, 0x80000005, 0, 15},
		{"mul24.lo.s32 %r0, %r1, %r2;", 'r', 0x00ffffff, 5, 0, NEG32(5)},
		{"mul24.hi.u32 %r0, %r1, %r2;", 'r', 0xffffff, 0xffffff, 0, 0xfffffe00},
		{"mad24.lo.u32 %r0, %r1, %r2, %r3;", 'r', 3, 5, 7, 22},
		{"sad.u32 %r0, %r1, %r2, %r3;", 'r', 3, 10, 100, 107},
		{"sad.s32 %r0, %r1, %r2, %r3;", 'r', NEG32(3), 10, 100, 113},
		{"div.s32 %r0, %r1, %r2;", 'r', NEG32(7), 2, 0, NEG32(3)},
		{"div.s32 %r0, %r1, %r2;", 'r', MIN32, ALL32, 0, MIN32},
		{"div.s32 %r0, %r1, %r2;", 'r', 5, 0, 0, ALL32},
		{"div.u64 %d0, %d1, %d2;", 'd', 5, 0, 0, ALL64},
		{"div.s16 %h0, %h1, %h2;", 'h', 0x8000, 0xffff, 0, 0x8000},
		{"rem.s32 %r0, %r1, %r2;", 'r', NEG32(7), 3, 0, NEG32(1)},
		{"rem.s32 %r0, %r1, %r2;", 'r', MIN32, ALL32, 0, 0},
		{"rem.u32 %r0, %r1, %r2;", 'r', 9, 0, 0, ALL32},
		{"rem.s64 %d0, %d1, %d2;", 'd', MIN64, ALL64, 0, 0},
		{"abs.s32 %r0, %r1;", 'r', NEG32(9), 0, 0, 9},
		{"abs.s32 %r0, %r1;", 'r', MIN32, 0, 0, MIN32},
		{"neg.s64 %d0, %d1;", 'd', MIN64, 0, 0, MIN64},
		{"neg.s16 %h0, %h1;", 'h', 1, 0, 0, 0xffff},
		{"min.s32 %r0, %r1, %r2;", 'r', NEG32(1), 1, 0, ALL32},
		{"min.u32 %r0, %r1, %r2;", 'r', ALL32, 1, 0, 1},
		{"max.s64 %d0, %d1, %d2;", 'd', MIN64, 1, 0, 1},
		{"max.u16 %h0, %h1, %h2;", 'h', 0xffff, 1, 0, 0xffff},
		{"add.cc.u32 %r4, %r1, %r2; addc.u32 %r0, %r3, 0;", 'r', ALL32, 1, 5, 6},
		{"add.cc.u32 %r4, %r1, %r2; addc.cc.u32 %r4, %r1, 0; addc.u32 %r0, 0, 0;", 'r', ALL32, 1, 0, 1},
		{"sub.cc.u32 %r4, %r1, %r2; subc.u32 %r0, %r3, 0;", 'r', 0, 1, 5, 4},
		{"sub.cc.u32 %r4, %r1, %r2; addc.u32 %r0, 0, 0;", 'r', 0, 1, 0, 0},
		{"sub.cc.u32 %r4, %r1, %r2; addc.u32 %r0, 0, 0;", 'r', 1, 1, 0, 1},
		{"sub.cc.u32 %r4, %r1, %r2; subc.cc.u32 %r4, %r3, 0; addc.u32 %r0, 0, 0;", 'r', 0, 1, 0, 0},
		{"sub.cc.u64 %d6, %d1, %d2; subc.u64 %d0, %d3, 0;", 'd', 1, 1, 5, 5},
		{"mad.lo.cc.u32 %r4, %r1, %r1, %r2; madc.hi.u32 %r0, %r1, %r1, %r3;", 'r', ALL32, ALL32, 0, 0xffffffff},
		{"mad.lo.cc.u64 %d6, %d1, %d1, %d2; madc.hi.u64 %d0, %d1, %d1, 0;", 'd', ALL64, ALL64, 0, ALL64},
	};

	RUN_ROWS(rows);
}

Test(ptx_table, bits, .timeout = 60)
{
	const struct row rows[] = {
		{"and.b32 %r0, %r1, %r2;", 'r', 0xff00ff, 0x0ff0, 0, 0xf0},
		{"or.b64 %d0, %d1, %d2;", 'd', MIN64, 1, 0, MIN64 | 1},
		{"xor.pred %p0, %p1, %p2;", 'p', 1, 1, 0, 0},
		{"not.pred %p0, %p1;", 'p', 0, 0, 0, 1},
		{"not.b16 %h0, %h1;", 'h', 0x00ff, 0, 0, 0xff00},
		{"cnot.b32 %r0, %r1;", 'r', 0, 0, 0, 1},
		{"cnot.b64 %d0, %d1;", 'd', MIN64, 0, 0, 0},
		{"shl.b32 %r0, %r1, %r2;", 'r', 1, 31, 0, MIN32},
		{"shl.b32 %r0, %r1, %r2;", 'r', 1, 32, 0, 0},
		{"shl.b64 %d0, %d1, %r2;", 'd', 1, 63, 0, MIN64},
		{"shl.b64 %d0, %d1, %r2;", 'd', 1, ALL32, 0, 0},
		{"shl.b16 %h0, %h1, %r2;", 'h', 0xffff, 16, 0, 0},
		{"shr.u32 %r0, %r1, %r2;", 'r', MIN32, 31, 0, 1},
		{"shr.u32 %r0, %r1, %r2;", 'r', ALL32, 32, 0, 0},
		{"shr.s32 %r0, %r1, %r2;", 'r', MIN32, 200, 0, ALL32},
		{"shr.s64 %d0, %d1, %r2;", 'd', MIN64, 64, 0, ALL64},
		{"shr.s16 %h0, %h1, 4;", 'h', 0x8000, 0, 0, 0xf800},
		{"shr.b64 %d0, %d1, 1;", 'd', ALL64, 0, 0, ALL64 >> 1},
		{"clz.b32 %r0, %r1;", 'r', 0, 0, 0, 32},
		{"clz.b64 %r0, %d1;", 'r', 1, 0, 0, 63},
		{"popc.b32 %r0, %r1;", 'r', ALL32, 0, 0, 32},
		{"popc.b64 %r0, %d1;", 'r', ALL64, 0, 0, 64},
		{"brev.b32 %r0, %r1;", 'r', 1, 0, 0, MIN32},
		{"brev.b64 %d0, %d1;", 'd', 6, 0, 0, UINT64_C(3) << 61},
		{"bfe.u32 %r0, %r1, 4, 8;", 'r', 0xabcdef, 0, 0, 0xde},
		{"bfe.s32 %r0, %r1, 4, 8;", 'r', 0xabcdef, 0, 0, 0xffffffde},
		{"bfe.s32 %r0, %r1, 28, 8;", 'r', 0x90000000, 0, 0, 0xfffffff9},
		{"bfe.u32 %r0, %r1, 40, 8;", 'r', ALL32, 0, 0, 0},
		{"bfe.s32 %r0, %r1, 40, 8;", 'r', ALL32, 0, 0, ALL32},
		{"bfe.u32 %r0, %r1, 0, 0;", 'r', ALL32, 0, 0, 0},
		{"bfe.u64 %d0, %d1, 0, 64;", 'd', ALL64, 0, 0, ALL64},
		{"bfi.b32 %r0, %r1, %r2, 8, 4;", 'r', 0xff, 0, 0, 0xf00},
		{"bfi.b32 %r0, %r1, %r2, 32, 4;", 'r', 0xff, 7, 0, 7},
		{"bfi.b64 %d0, %d1, %d2, 60, 8;", 'd', 0xff, 1, 0, UINT64_C(0xf000000000000001)},
		{"bfind.u32 %r0, %r1;", 'r', 0, 0, 0, ALL32},
		{"bfind.u32 %r0, %r1;", 'r', 0x100, 0, 0, 8},
		{"bfind.shiftamt.u32 %r0, %r1;", 'r', 0x100, 0, 0, 23},
		{"bfind.s32 %r0, %r1;", 'r', ALL32, 0, 0, ALL32},
		{"bfind.s64 %r0, %d1;", 'r', NEG(256), 0, 0, 7},
		{"lop3.b32 %r0, %r1, %r2, %r3, 0xe8;", 'r', 0xf0, 0xcc, 0xaa, 0xe8},
		{"lop3.b32 %r0, %r1, %r2, %r3, 0x96;", 'r', 0xf0, 0xcc, 0xaa, 0x96},
		{"prmt.b32 %r0, %r1, %r2, 0x5410;", 'r', 0x44332211, 0x88776655, 0, 0x66552211},
		{"prmt.b32 %r0, %r1, %r2, 0x000f;", 'r', 0x11, 0x80000000, 0, 0x111111ff},
		{"prmt.b32.f4e %r0, %r1, %r2, %r3;", 'r', 0x44332211, 0x88776655, 1, 0x55443322},
		{"prmt.b32.b4e %r0, %r1, %r2, %r3;", 'r', 0x44332211, 0x88776655, 1, 0x77881122},
		{"prmt.b32.rc8 %r0, %r1, %r2, %r3;", 'r', 0x44332211, 0, 2, 0x33333333},
		{"prmt.b32.ecl %r0, %r1, %r2, %r3;", 'r', 0x44332211, 0, 2, 0x44333333},
		{"prmt.b32.ecr %r0, %r1, %r2, %r3;", 'r', 0x44332211, 0, 2, 0x33332211},
		{"prmt.b32.rc16 %r0, %r1, %r2, %r3;", 'r', 0x44332211, 0, 1, 0x44334433},
		{"shf.l.wrap.b32 %r0, %r1, %r2, 8;", 'r', 0x11223344, 0xaabbccdd, 0, 0xbbccdd11},
		{"shf.r.wrap.b32 %r0, %r1, %r2, 40;", 'r', 0x11223344, 0xaabbccdd, 0, 0xdd112233},
		{"shf.l.clamp.b32 %r0, %r1, %r2, 40;", 'r', 0x11223344, 0xaabbccdd, 0, 0x11223344},
		{"shf.r.clamp.b32 %r0, %r1, %r2, 32;", 'r', 0x11223344, 0xaabbccdd, 0, 0xaabbccdd},
		{"dp4a.u32.u32 %r0, %r1, %r2, %r3;", 'r', 0x01020304, 0xff010101, 10, 255 + 9 + 10},
		{"dp4a.s32.s32 %r0, %r1, %r2, %r3;", 'r', 0xff020304, 0x01010101, 0, 8},
		{"dp4a.s32.u32 %r0, %r1, %r2, %r3;", 'r', 0x000000ff, 0x000000ff, 0, NEG32(255)},
		{"dp2a.lo.s32.s32 %r0, %r1, %r2, %r3;", 'r', 0xffff0002, 0x0305, 1, 8},
		{"dp2a.hi.u32.u32 %r0, %r1, %r2, %r3;", 'r', 0x00010002, 0x03050000, 0, 13},
		{"bmsk.clamp.b32 %r0, %r1, %r2;", 'r', 4, 8, 0, 0xff0},
		{"bmsk.clamp.b32 %r0, %r1, %r2;", 'r', 28, 40, 0, 0xf0000000},
		{"szext.clamp.s32 %r0, %r1, %r2;", 'r', 0x80, 8, 0, 0xffffff80},
		{"szext.wrap.u32 %r0, %r1, %r2;", 'r', 0x1ff, 40, 0, 0xff},
		{"fns.b32 %r0, %r1, %r2, %r3;", 'r', 0xf0, 0, 2, 5},
		{"fns.b32 %r0, %r1, %r2, %r3;", 'r', 0xf0, 6, NEG32(2), 5},
		{"fns.b32 %r0, %r1, %r2, %r3;", 'r', 0xf0, 0, 9, ALL32},
		{"mov.b64 %d0, {%r1, %r2};", 'd', 1, 2, 0, UINT64_C(0x200000001)},
		{"mov.b64 {%r4, %r0}, %d1;", 'r', UINT64_C(0x700000009), 0, 0, 7},
		{"mov.b64 {_, %r0}, %d1;", 'r', UINT64_C(0x700000009), 0, 0, 7},
		{"mov.b32 %r0, {%h1, %h2};", 'r', 0x1234, 0x5678, 0, 0x56781234},
		{"mov.b32 {%h1, %h0}, %r1;", 'h', 0xabcd1234, 0, 0, 0xabcd},
		{"selp.b64 %d0, %d1, %d2, %p3;", 'd', 5, 6, 0, 6},
		{"selp.b32 %r0, %r1, 9, %p3;", 'r', 5, 6, 1, 5},
		{"slct.s32.s32 %r0, %r1, %r2, %r3;", 'r', 5, 6, NEG32(1), 6},
		{"slct.u64.s32 %d0, %d1, %d2, %r3;", 'd', 5, 6, 0, 5},
		{"slct.f32.f32 %r0, %r1, %r2, %r3;", 'r', 5, 6, f(-0.0f), 5},
		{"slct.f32.f32 %r0, %r1, %r2, %r3;", 'r', 5, 6, f(NAN), 6},
		{"slct.ftz.f32.f32 %r0, %r1, %r2, %r3;", 'r', 5, 6, 0x80000001, 5},
		{"copysign.f32 %r0, %r1, %r2;", 'r', f(-1), f(2.5f), 0, f(-2.5f)},
		{"copysign.f64 %d0, %d1, %d2;", 'd', g(1), g(-2.5), 0, g(2.5)},
		{"testp.finite.f32 %p0, %r1;", 'p', f(INF), 0, 0, 0},
		{"testp.infinite.f64 %p0, %d1;", 'p', g(-INF), 0, 0, 1},
		{"testp.notanumber.f32 %p0, %r1;", 'p', 0x7f800001, 0, 0, 1},
		{"testp.number.f32 %p0, %r1;", 'p', f(INF), 0, 0, 1},
		{"testp.normal.f32 %p0, %r1;", 'p', 0x00400000, 0, 0, 0},
		{"testp.subnormal.f32 %p0, %r1;", 'p', 0x80400000, 0, 0, 1},
	};

	RUN_ROWS(rows);
}

Test(ptx_table, compare, .timeout = 60)
{
	const struct row rows[] = {
		{"setp.lt.s32 %p0, %r1, %r2;", 'p', ALL32, 0, 0, 1},
		{"setp.lt.u32 %p0, %r1, %r2;", 'p', ALL32, 0, 0, 0},
		{"setp.lo.u32 %p0, %r1, %r2;", 'p', 0, 1, 0, 1},
		{"setp.hs.u64 %p0, %d1, %d2;", 'p', ALL64, 1, 0, 1},
		{"setp.gt.s64 %p0, %d1, %d2;", 'p', ALL64, 0, 0, 0},
		{"setp.ge.s16 %p0, %h1, %h2;", 'p', 0x8000, 0, 0, 0},
		{"setp.eq.b32 %p0, %r1, %r2;", 'p', 5, 5, 0, 1},
		{"setp.ne.and.u32 %p0, %r1, %r2, %p3;", 'p', 5, 6, 0, 0},
		{"setp.ne.or.u32 %p0, %r1, %r2, %p3;", 'p', 5, 5, 1, 1},
		{"setp.eq.xor.u32 %p0, %r1, %r2, %p3;", 'p', 5, 5, 1, 0},
		{"setp.eq.and.u32 %p0, %r1, %r2, !%p3;", 'p', 5, 5, 0, 1},
		{"setp.eq.u32 %p4|%p0, %r1, %r2;", 'p', 5, 5, 0, 0},
		{"setp.eq.or.u32 %p4|%p0, %r1, %r2, %p3;", 'p', 5, 5, 1, 1},
		{"setp.eq.f32 %p0, %r1, %r2;", 'p', f(0), f(-0.0f), 0, 1},
		{"setp.ne.f32 %p0, %r1, %r2;", 'p', f(NAN), f(1), 0, 0},
		{"setp.neu.f32 %p0, %r1, %r2;", 'p', f(NAN), f(1), 0, 1},
		{"setp.lt.f32 %p0, %r1, %r2;", 'p', f(NAN), f(1), 0, 0},
		{"setp.ltu.f32 %p0, %r1, %r2;", 'p', f(NAN), f(1), 0, 1},
		{"setp.geu.f64 %p0, %d1, %d2;", 'p', g(1), g(2), 0, 0},
		{"setp.equ.f64 %p0, %d1, %d2;", 'p', g(NAN), g(2), 0, 1},
		{"setp.num.f32 %p0, %r1, %r2;", 'p', f(1), f(NAN), 0, 0},
		{"setp.nan.f32 %p0, %r1, %r2;", 'p', f(1), f(NAN), 0, 1},
		{"setp.gt.f32 %p0, %r1, 0f00000000;", 'p', 1, 0, 0, 1},
		{"setp.gt.ftz.f32 %p0, %r1, 0f00000000;", 'p', 1, 0, 0, 0},
		{"setp.lt.f16 %p0, %h1, %h2;", 'p', 0xbc00, 0x3c00, 0, 1},
		{"setp.lt.bf16 %p0, %h1, %h2;", 'p', 0x3f80, 0x4000, 0, 1},
		{"set.lt.u32.s32 %r0, %r1, %r2;", 'r', ALL32, 0, 0, ALL32},
		{"set.gt.f32.f32 %r0, %r1, %r2;", 'r', f(2), f(1), 0, f(1)},
		{"set.eq.and.s32.u32 %r0, %r1, %r2, %p3;", 'r', 1, 1, 0, 0},
	};

	RUN_ROWS(rows);
}

Test(ptx_table, floats, .timeout = 60)
{
	float third = 1.0f / 3.0f;
	const struct row rows[] = {
		{"add.f32 %r0, %r1, %r2;", 'r', f(1), f(0x1p-24f), 0, f(1)},
		{"add.rn.f32 %r0, %r1, %r2;", 'r', f(1), f(0x1.8p-24f), 0, f(1 + 0x1p-23f)},
		{"add.rz.f32 %r0, %r1, %r2;", 'r', f(1), f(0x1.8p-24f), 0, f(1)},
		{"add.rp.f32 %r0, %r1, %r2;", 'r', f(1), f(0x1p-60f), 0, f(1 + 0x1p-23f)},
		{"add.rm.f32 %r0, %r1, %r2;", 'r', f(1), f(-0x1p-60f), 0, f(1 - 0x1p-24f)},
		{"add.f32 %r0, %r1, %r2;", 'r', f(INF), f(-INF), 0, 0x7fffffff},
		{"add.f32 %r0, %r1, %r2;", 'r', 1, 1, 0, 2},
		{"add.ftz.f32 %r0, %r1, %r2;", 'r', 1, 1, 0, 0},
		{"add.ftz.f32 %r0, %r1, %r2;", 'r', 0x80000001, 0x80000001, 0, 0x80000000},
		{"add.sat.f32 %r0, %r1, %r2;", 'r', f(3), f(1), 0, f(1)},
		{"add.sat.f32 %r0, %r1, %r2;", 'r', f(NAN), f(1), 0, 0},
		{"sub.f64 %d0, %d1, %d2;", 'd', g(1), g(0.1), 0, g(1 - 0.1)},
		{"sub.rp.f64 %d0, %d1, %d2;", 'd', g(1), g(-0x1p-90), 0, g(1 + 0x1p-52)},
		{"mul.f32 %r0, %r1, %r2;", 'r', f(third), f(3), 0, f(third * 3)},
		{"mul.rz.f32 %r0, %r1, %r2;", 'r', f(FLT_MAX), f(2), 0, f(FLT_MAX)},
		{"mul.sat.f32 %r0, %r1, %r2;", 'r', f(-2), f(2), 0, 0},
		{"mul.f32 %r0, %r1, 0f3F000000;", 'r', f(3), 0, 0, f(1.5f)},
		{"fma.rn.f32 %r0, %r1, %r2, %r3;", 'r', f(1 + 0x1p-12f), f(1 + 0x1p-12f), f(-1), f(0x1p-11f + 0x1p-24f)},
		{"fma.rz.f64 %d0, %d1, %d2, %d3;", 'd', g(1), g(1), g(-0x1p-80), g(1 - 0x1p-53)},
		{"mad.rn.f32 %r0, %r1, %r2, %r3;", 'r', f(2), f(3), f(4), f(10)},
		{"div.rn.f32 %r0, %r1, %r2;", 'r', f(1), f(3), 0, f(third)},
		{"div.rp.f32 %r0, %r1, %r2;", 'r', f(1), f(3), 0, f(third)},
		{"div.rm.f32 %r0, %r1, %r2;", 'r', f(1), f(3), 0, f(third) - 1},
		{"div.rn.f64 %d0, %d1, %d2;", 'd', g(1), g(0), 0, g(INF)},
		{"rcp.rn.f32 %r0, %r1;", 'r', f(-0.0f), 0, 0, f(-INF)},
		{"rcp.rn.f64 %d0, %d1;", 'd', g(7), 0, 0, g(1.0 / 7)},
		{"sqrt.rn.f32 %r0, %r1;", 'r', f(2), 0, 0, f(sqrtf(2))},
		{"sqrt.rn.f32 %r0, %r1;", 'r', f(-1), 0, 0, 0x7fffffff},
		{"sqrt.rn.f64 %d0, %d1;", 'd', g(2), 0, 0, g(sqrt(2))},
		{"rsqrt.approx.f32 %r0, %r1;", 'r', f(4), 0, 0, f(0.5f)},
		{"ex2.approx.f32 %r0, %r1;", 'r', f(10), 0, 0, f(1024)},
		{"ex2.approx.ftz.f32 %r0, %r1;", 'r', f(-130), 0, 0, 0},
		{"lg2.approx.f32 %r0, %r1;", 'r', f(8), 0, 0, f(3)},
		{"lg2.approx.f32 %r0, %r1;", 'r', f(0), 0, 0, f(-INF)},
		{"sin.approx.f32 %r0, %r1;", 'r', f(-0.0f), 0, 0, f(-0.0f)},
		{"cos.approx.f32 %r0, %r1;", 'r', f(0), 0, 0, f(1)},
		{"tanh.approx.f32 %r0, %r1;", 'r', f(INF), 0, 0, f(1)},
		{"min.f32 %r0, %r1, %r2;", 'r', f(NAN), f(1), 0, f(1)},
		{"min.NaN.f32 %r0, %r1, %r2;", 'r', f(NAN), f(1), 0, 0x7fffffff},
		{"min.f32 %r0, %r1, %r2;", 'r', f(0), f(-0.0f), 0, f(-0.0f)},
		{"max.f32 %r0, %r1, %r2;", 'r', f(-0.0f), f(0), 0, 0},
		{"max.f64 %d0, %d1, %d2;", 'd', g(NAN), g(-4), 0, g(-4)},
		{"abs.f32 %r0, %r1;", 'r', f(-INF), 0, 0, f(INF)},
		{"abs.ftz.f32 %r0, %r1;", 'r', 0x80000001, 0, 0, 0},
		{"neg.f64 %d0, %d1;", 'd', 0, 0, 0, MIN64},
		{"add.f16 %h0, %h1, %h2;", 'h', 0x3c00, 0x3c00, 0, 0x4000},
		{"add.f16 %h0, %h1, %h2;", 'h', 0x7bff, 0x7bff, 0, 0x7c00},
		{"mul.f16 %h0, %h1, %h2;", 'h', 0x0001, 0x3800, 0, 0},
		{"fma.rn.f16 %h0, %h1, %h2, %h3;", 'h', 0x3c01, 0x3c01, 0xbc00, 0x1800},
		{"sub.f16x2 %r0, %r1, %r2;", 'r', 0x40003c00, 0x3c003c00, 0, 0x3c000000},
		{"fma.rn.bf16 %h0, %h1, %h2, %h3;", 'h', 0x3f81, 0x3f81, 0x0080, 0x3f82},
		{"fma.rn.bf16x2 %r0, %r1, %r2, %r3;", 'r', 0x40003f80, 0x40004000, 0x3f803f80, 0x40a04040},
		{"max.bf16 %h0, %h1, %h2;", 'h', 0xffc0, 0x3f80, 0, 0x3f80},
		{"neg.f16x2 %r0, %r1;", 'r', 0x3c00bc00, 0, 0, 0xbc003c00},
		{"abs.bf16 %h0, %h1;", 'h', 0xbf80, 0, 0, 0x3f80},
	};

	RUN_ROWS(rows);
}

Test(ptx_table, conversions, .timeout = 60)
{
	const struct row rows[] = {
		{"cvt.s64.s32 %d0, %r1;", 'd', ALL32, 0, 0, ALL64},
		{"cvt.u64.u32 %d0, %r1;", 'd', ALL32, 0, 0, ALL32},
		{"cvt.u32.u64 %r0, %d1;", 'r', UINT64_C(0x123456789), 0, 0, 0x23456789},
		{"cvt.s32.s8 %r0, %r1;", 'r', 0x180, 0, 0, 0xffffff80},
		{"cvt.u32.u8 %r0, %r1;", 'r', 0x180, 0, 0, 0x80},
		{"cvt.s8.s32 %r0, %r1;", 'r', 0x1ff, 0, 0, ALL32},
		{"cvt.u16.u32 %r0, %r1;", 'r', 0x12345, 0, 0, 0x2345},
		{"cvt.s16.s8 %h0, %h1;", 'h', 0x80, 0, 0, 0xff80},
		{"cvt.sat.s8.s32 %r0, %r1;", 'r', 1000, 0, 0, 127},
		{"cvt.sat.s8.s32 %r0, %r1;", 'r', NEG32(1000), 0, 0, NEG32(128)},
		{"cvt.sat.u8.s32 %r0, %r1;", 'r', NEG32(5), 0, 0, 0},
		{"cvt.sat.s32.u32 %r0, %r1;", 'r', ALL32, 0, 0, 0x7fffffff},
		{"cvt.sat.u32.s64 %r0, %d1;", 'r', UINT64_C(1) << 40, 0, 0, ALL32},
		{"cvt.rzi.s32.f32 %r0, %r1;", 'r', f(-1.9f), 0, 0, NEG32(1)},
		{"cvt.rni.s32.f32 %r0, %r1;", 'r', f(2.5f), 0, 0, 2},
		{"cvt.rmi.s32.f32 %r0, %r1;", 'r', f(-1.1f), 0, 0, NEG32(2)},
		{"cvt.rpi.s32.f32 %r0, %r1;", 'r', f(1.1f), 0, 0, 2},
		{"cvt.rzi.s32.f32 %r0, %r1;", 'r', f(1e20f), 0, 0, 0x7fffffff},
		{"cvt.rzi.s32.f32 %r0, %r1;", 'r', f(-INF), 0, 0, MIN32},
		{"cvt.rzi.s32.f32 %r0, %r1;", 'r', f(NAN), 0, 0, 0},
		{"cvt.rzi.u32.f32 %r0, %r1;", 'r', f(-3), 0, 0, 0},
		{"cvt.rzi.u32.f32 %r0, %r1;", 'r', f(INF), 0, 0, ALL32},
		{"cvt.rzi.u8.f32 %r0, %r1;", 'r', f(300), 0, 0, 255},
		{"cvt.rzi.s32.f64 %r0, %d1;", 'r', g(NAN), 0, 0, MIN32},
		{"cvt.rzi.s64.f32 %d0, %r1;", 'd', f(NAN), 0, 0, MIN64},
		{"cvt.rzi.u64.f64 %d0, %d1;", 'd', g(0x1p63), 0, 0, MIN64},
		{"cvt.rzi.u64.f64 %d0, %d1;", 'd', g(1e30), 0, 0, ALL64},
		{"cvt.rzi.s64.f64 %d0, %d1;", 'd', g(-0x1p63), 0, 0, MIN64},
		{"cvt.rzi.s64.f64 %d0, %d1;", 'd', g(0x1p63), 0, 0, MIN64 - 1},
		{"cvt.rni.f32.f32 %r0, %r1;", 'r', f(2.5f), 0, 0, f(2)},
		{"cvt.rpi.f64.f64 %d0, %d1;", 'd', g(-0.5), 0, 0, g(-0.0)},
		{"cvt.rmi.f32.f32 %r0, %r1;", 'r', f(-0.5f), 0, 0, f(-1)},
		{"cvt.rn.f32.s32 %r0, %r1;", 'r', 0x1000001, 0, 0, f(0x1p24f)},
		{"cvt.rp.f32.s32 %r0, %r1;", 'r', 0x1000001, 0, 0, f(0x1.000002p24f)},
		{"cvt.rz.f32.s32 %r0, %r1;", 'r', NEG32(0x1000001), 0, 0, f(-0x1p24f)},
		{"cvt.rm.f32.s32 %r0, %r1;", 'r', NEG32(0x1000001), 0, 0, f(-0x1.000002p24f)},
		{"cvt.rn.f32.u64 %r0, %d1;", 'r', ALL64, 0, 0, f(0x1p64f)},
		{"cvt.rz.f32.u64 %r0, %d1;", 'r', ALL64, 0, 0, f(0x1.fffffep63f)},
		{"cvt.rn.f64.s64 %d0, %d1;", 'd', MIN64, 0, 0, g(-0x1p63)},
		{"cvt.rn.f64.u32 %d0, %r1;", 'd', ALL32, 0, 0, g(4294967295.0)},
		{"cvt.f64.f32 %d0, %r1;", 'd', f(1.5f), 0, 0, g(1.5)},
		{"cvt.ftz.f64.f32 %d0, %r1;", 'd', 0x80000001, 0, 0, g(-0.0)},
		{"cvt.rn.f32.f64 %r0, %d1;", 'r', g(0.1), 0, 0, f(0.1f)},
		{"cvt.rz.f32.f64 %r0, %d1;", 'r', g(1e300), 0, 0, f(FLT_MAX)},
		{"cvt.rp.f32.f64 %r0, %d1;", 'r', g(1e300), 0, 0, f(INF)},
		{"cvt.rn.ftz.f32.f64 %r0, %d1;", 'r', g(1e-40), 0, 0, 0},
		{"cvt.rn.sat.f32.f64 %r0, %d1;", 'r', g(7), 0, 0, f(1)},
		{"cvt.sat.f32.f32 %r0, %r1;", 'r', f(NAN), 0, 0, 0},
		{"cvt.rn.f16.f32 %h0, %r1;", 'h', f(65520), 0, 0, 0x7c00},
		{"cvt.rz.f16.f32 %h0, %r1;", 'h', f(65535), 0, 0, 0x7bff},
		{"cvt.rn.f16.f32 %h0, %r1;", 'h', f(1 + 0x1p-11f), 0, 0, 0x3c00},
		{"cvt.rn.f16.f32 %h0, %r1;", 'h', f(1 + 0x1.8p-11f), 0, 0, 0x3c01},
		{"cvt.rn.f16.f32 %h0, %r1;", 'h', f(0x1p-25f), 0, 0, 0},
		{"cvt.rn.f16.f32 %h0, %r1;", 'h', f(0x1.8p-25f), 0, 0, 1},
		{"cvt.rn.f16.f32 %h0, %r1;", 'h', f(NAN), 0, 0, 0x7fff},
		{"cvt.f32.f16 %r0, %h1;", 'r', 0x0001, 0, 0, f(0x1p-24f)},
		{"cvt.f32.f16 %r0, %h1;", 'r', 0xfc00, 0, 0, f(-INF)},
		{"cvt.rn.bf16.f32 %h0, %r1;", 'h', 0x3f808000, 0, 0, 0x3f80},
		{"cvt.rn.bf16.f32 %h0, %r1;", 'h', 0x3f818000, 0, 0, 0x3f82},
		{"cvt.rn.relu.bf16.f32 %h0, %r1;", 'h', f(-3), 0, 0, 0},
		{"cvt.f32.bf16 %r0, %h1;", 'r', 0x4049, 0, 0, 0x40490000},
		{"cvt.rn.f16x2.f32 %r0, %r1, %r2;", 'r', f(1), f(-2), 0, 0x3c00c000},
		{"cvt.rn.bf16x2.f32 %r0, %r1, %r2;", 'r', f(1), f(-2), 0, 0x3f80c000},
		{"cvt.rzi.s32.f16 %r0, %h1;", 'r', 0xc100, 0, 0, NEG32(2)},
		{"cvt.rn.f16.s32 %h0, %r1;", 'h', 2049, 0, 0, 0x6800},
	};

	RUN_ROWS(rows);
}

Test(ptx_table, memory_forms, .timeout = 60)
{
	const struct row rows[] = {
		{"ld.global.s8 %r0, [%d5];", 'r', 0x80, 0, 0, 0xffffff80},
		{"ld.global.u8 %r0, [%d5];", 'r', 0x80, 0, 0, 0x80},
		{"ld.global.s16 %d0, [%d5];", 'd', 0x8000, 0, 0, NEG(0x8000)},
		{"ld.global.nc.L1::no_allocate.u32 %r0, [%d5];", 'r', 7, 0, 0, 7},
		{"ld.volatile.global.u32 %r0, [%d5];", 'r', 7, 0, 0, 7},
		{"ld.acquire.sys.global.u32 %r0, [%d5];", 'r', 7, 0, 0, 7},
		{"ld.relaxed.gpu.u64 %d0, [%d5+8];", 'd', 7, 8, 0, 8},
		{"ld.ca.b64 %d0, [%d5+-0];", 'd', 7, 8, 0, 7},
		{"createpolicy.fractional.L2::evict_first.b64 %d6, 1.0; ld.global.L1::evict_last.L2::cache_hint.b32 %r0, [%d5], %d6;",
	         'r', 3, 0, 0, 3},
		{"ld.global.v2.b32 {%r4, %r0}, [%d5];", 'r', UINT64_C(0x500000003), 0, 0, 5},
		{"ld.global.v2.u16 {_, %r0}, [%d5];", 'r', 0x00050003, 0, 0, 5},
		{"{ .reg .b32 x; mov.u32 x, 4; add.u32 %r0, x, %r1; }", 'r', 3, 0, 0, 7},
		{".shared .align 8 .b8 s[16]; st.shared.v2.u32 [s+8], {%r1, 5}; ld.shared.u64 %d0, [s+8];", 'd', 3, 0,
	         0, UINT64_C(0x500000003)},
		{".shared .b32 s; mov.u64 %d6, s; cvta.shared.u64 %d6, %d6; st.u32 [%d6], %r1; ld.shared.u32 %r0, [s];",
	         'r', 3, 0, 0, 3},
		{".shared .b32 s; cvta.shared.u64 %d6, s; isspacep.shared %p0, %d6;", 'p', 0, 0, 0, 1},
		{".shared .b32 s; mov.u32 %r4, s; isspacep.shared %p0, %d5;", 'p', 0, 0, 0, 0},
		{"isspacep.global %p0, %d5;", 'p', 0, 0, 0, 1},
		{".local .b32 l[4]; st.local.u32 [l+4], %r1; cvta.local.u64 %d6, l; ld.u32 %r0, [%d6+4];", 'r', 9, 0, 0,
	         9},
		{".local .b32 l[4]; cvta.local.u64 %d6, l; cvta.to.local.u64 %d7, %d6; st.local.u32 [%d7], %r1; ld.local.u32 %r0, [l];",
	         'r', 9, 0, 0, 9},
		{".param .b64 q; st.param.b64 [q], %d1; ld.param.b64 %d0, [q];", 'd', 9, 0, 0, 9},
		{"mov.b64 %d6, in; cvta.param.u64 %d6, %d6; ld.u64 %d7, [%d6]; ld.global.u32 %r0, [%d7];", 'r', 6, 0, 0,
	         6},
	};

	RUN_ROWS(rows);
}

/*
 * What the instruction returns, and what memory holds then. Registers below %d5 are 32 bits wide: %d1 stands for %r1.
 */
Test(ptx_table, atomics, .timeout = 60)
{
	static const struct {
		const char *text;
		uint64_t before, b, c, old, after;
	} rows[] = {
		{"atom.global.add.u32 %d0, [%d5], %d1;", 5, 7, 0, 5, 12},
		{"atom.add.s32 %d0, [%d5], %d1;", 5, NEG32(7), 0, 5, NEG32(2)},
		{"atom.global.inc.u32 %d0, [%d5], %d1;", 7, 7, 0, 7, 0},
		{"atom.global.inc.u32 %d0, [%d5], %d1;", 6, 7, 0, 6, 7},
		{"atom.global.dec.u32 %d0, [%d5], %d1;", 0, 7, 0, 0, 7},
		{"atom.global.dec.u32 %d0, [%d5], %d1;", 9, 7, 0, 9, 7},
		{"atom.global.dec.u32 %d0, [%d5], %d1;", 3, 7, 0, 3, 2},
		{"atom.global.min.s32 %d0, [%d5], %d1;", 3, NEG32(7), 0, 3, NEG32(7)},
		{"atom.global.min.u32 %d0, [%d5], %d1;", 3, NEG32(7), 0, 3, 3},
		{"atom.global.max.u32 %d0, [%d5], %d1;", 3, NEG32(7), 0, 3, NEG32(7)},
		{"atom.global.and.b32 %d0, [%d5], %d1;", 0xf0, 0x3c, 0, 0xf0, 0x30},
		{"atom.global.or.b32 %d0, [%d5], %d1;", 0xf0, 0x3c, 0, 0xf0, 0xfc},
		{"atom.global.xor.b32 %d0, [%d5], %d1;", 0xf0, 0x3c, 0, 0xf0, 0xcc},
		{"atom.global.exch.b32 %d0, [%d5], %d1;", 4, 5, 0, 4, 5},
		{"atom.acq_rel.sys.global.cas.b32 %d0, [%d5], %d1, %d2;", 4, 4, 9, 4, 9},
		{"atom.global.cas.b32 %d0, [%d5], %d1, %d2;", 4, 5, 9, 4, 4},
		{"atom.global.add.f32 %d0, [%d5], %d1;", 0x3f800000, 0x40000000, 0, 0x3f800000, 0x40400000},
		{"red.global.add.u32 [%d5], %d1;", 5, 7, 0, UINT32_MAX, 12},
		{"red.relaxed.gpu.global.max.s32 [%d5], %d1;", 5, NEG32(7), 0, UINT32_MAX, 5},
		{"atom.global.add.noftz.f16x2 %d0, [%d5], %d1;", 0x3c003c00, 0x3c000000, 0, 0x3c003c00, 0x40003c00},
	};

	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct rig rig;
		char text[2048], *at;
		char body[256];

		snprintf(body, sizeof(body), "%s", rows[n].text);
		for (at = body; (at = strstr(at, "%d")); at++)
			if (at[2] < '5')
				at[1] = 'r';
		rig_create(&rig);
		snprintf(text, sizeof(text),
		         ".version 7.0 .target sm_75 .address_size 64 .visible .entry k(.param .u64 p, .param .u64 o, .param .u32 b, .param .u32 c) {\n"
		         ".reg .b32 %%r<4>; .reg .b64 %%d<8>; ld.param.u64 %%d5, [p]; ld.param.u64 %%d6, [o]; ld.param.u32 %%r1, [b];"
		         "ld.param.u32 %%r2, [c]; mov.u32 %%r0, 0xffffffff; %s st.global.u32 [%%d6], %%r0; }",
		         body);
		uint64_t place = rig_alloc(&rig, 8), out = rig_alloc(&rig, 8);
		*RIG_AT(uint32_t, place) = (uint32_t)rows[n].before;
		cr_assert_eq(rig_load(&rig, text), PTX_OK, "%s: %s", rows[n].text, rig.log);
		cr_assert_eq(RIG_RUN(&rig, "k", 1, 1, 0, place, out, rows[n].b, rows[n].c), PTX_OK, "%s",
		             rig.fault.message);
		cr_expect_eq(*RIG_AT(uint32_t, out), rows[n].old, "%s: old %x", rows[n].text, *RIG_AT(uint32_t, out));
		cr_expect_eq(*RIG_AT(uint32_t, place), rows[n].after, "%s: after %x", rows[n].text,
		             *RIG_AT(uint32_t, place));
		rig_destroy(&rig);
	}
}
