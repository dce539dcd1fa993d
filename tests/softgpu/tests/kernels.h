/* The kernels that the tests here launch. */
#ifndef SOFTGPU_KERNELS_H
#define SOFTGPU_KERNELS_H

/*
 * fill(out, value, n): out[i] = value for i < n. add(out, in, n): out[i] += in[i]. by_value(struct {uint64 out; uint32
 * pad, value}): *out = value. bump(): counter += 1, one thread. trap(): faults. `table` is a .global of 64 bytes,
 * `counter` one of 4.
 */
static const char kernels_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .global .align 8 .b8 table[64];\n"
	".visible .global .align 4 .u32 counter = 5;\n"
	".visible .entry fill(.param .u64 out, .param .u32 value, .param .u32 n)\n{\n"
	"	.reg .pred %p<2>;\n	.reg .b32 %r<8>;\n	.reg .b64 %rd<6>;\n"
	"	ld.param.u64 %rd1, [out];\n	ld.param.u32 %r1, [value];\n	ld.param.u32 %r2, [n];\n"
	"	mov.u32 %r3, %ctaid.x;\n	mov.u32 %r4, %ntid.x;\n	mov.u32 %r5, %tid.x;\n"
	"	mad.lo.s32 %r6, %r3, %r4, %r5;\n	setp.ge.u32 %p1, %r6, %r2;\n	@%p1 bra DONE;\n"
	"	cvta.to.global.u64 %rd2, %rd1;\n	mul.wide.u32 %rd3, %r6, 4;\n	add.s64 %rd4, %rd2, %rd3;\n"
	"	st.global.u32 [%rd4], %r1;\nDONE:\n	ret;\n}\n"
	".visible .entry add(.param .u64 out, .param .u64 in, .param .u32 n)\n{\n"
	"	.reg .pred %p<2>;\n	.reg .b32 %r<8>;\n	.reg .b64 %rd<8>;\n"
	"	ld.param.u64 %rd1, [out];\n	ld.param.u64 %rd2, [in];\n	ld.param.u32 %r2, [n];\n"
	"	mov.u32 %r3, %ctaid.x;\n	mov.u32 %r4, %ntid.x;\n	mov.u32 %r5, %tid.x;\n"
	"	mad.lo.s32 %r6, %r3, %r4, %r5;\n	setp.ge.u32 %p1, %r6, %r2;\n	@%p1 bra DONE;\n"
	"	cvta.to.global.u64 %rd1, %rd1;\n	cvta.to.global.u64 %rd2, %rd2;\n	mul.wide.u32 %rd3, %r6, 4;\n"
	"	add.s64 %rd4, %rd1, %rd3;\n	add.s64 %rd5, %rd2, %rd3;\n"
	"	ld.global.u32 %r1, [%rd4];\n	ld.global.u32 %r7, [%rd5];\n	add.s32 %r1, %r1, %r7;\n	st.global.u32 [%rd4], %r1;\nDONE:\n	ret;\n}\n"
	".visible .entry by_value(.param .align 8 .b8 what[16])\n{\n"
	"	.reg .b32 %r<3>;\n	.reg .b64 %rd<3>;\n"
	"	ld.param.u64 %rd1, [what];\n	ld.param.u32 %r1, [what+12];\n	cvta.to.global.u64 %rd2, %rd1;\n	st.global.u32 [%rd2], %r1;\n	ret;\n}\n"
	".visible .entry bump()\n{\n"
	"	.reg .b32 %r<3>;\n"
	"	ld.global.u32 %r1, [counter];\n	add.s32 %r1, %r1, 1;\n	st.global.u32 [counter], %r1;\n	ret;\n}\n"
	".visible .entry fault()\n{\n	trap;\n	ret;\n}\n";

#endif
