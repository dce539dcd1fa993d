/*
 * The hooks of kernel launches. Most launches pass: nothing is protected, or memo_asks() knows that they concern nothing. Those get here from the program and from here to the driver by a jump, with
 * the program's stack as it was, in three cache lines of code; C would move each of eleven arguments twice. What does not pass goes on in functions that scripts/gen_entrypoints.py makes, as if
 * the program had called them.
 */
#include "launch_offsets.h"
#include "shim/doors/launch.h"

#if defined(__CET__)
#include <cet.h>
#else
#define _CET_ENDBR
#endif

/* As in HOOK_PAGE. `real`: offset of its pointer in drv; `function`, `params`: where the arguments are once six registers and a gap are pushed. */
.macro launch name, page, real, function, params
	.section .rodata.str1.1, "aMS", @progbits, 1
.L\name:
	.asciz "\name"
	.section .text.sorted.hook_page_\page, "ax", @progbits
	.globl \name
	.type \name, @function
	.p2align 4
\name:
	.cfi_startproc
	_CET_ENDBR
	cmpq $0, drv + \real(%rip)
	movq hook_thread@gottpoff(%rip), %rax
	je 3f
	cmpb $0, hook_line + LAUNCH_ARMED(%rip)
	je 1f
	cmpl $0, %fs:LAUNCH_DEPTH(%rax)
	jne 1f
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	pushq %rsi
	.cfi_adjust_cfa_offset 8
	pushq %rdx
	.cfi_adjust_cfa_offset 8
	pushq %rcx
	.cfi_adjust_cfa_offset 8
	pushq %r8
	.cfi_adjust_cfa_offset 8
	pushq %r9
	.cfi_adjust_cfa_offset 8
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	movq \function, %rdi
	movq \params, %rsi
	leaq .L\name(%rip), %rdx
	call memo_asks
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	popq %r9
	.cfi_adjust_cfa_offset -8
	popq %r8
	.cfi_adjust_cfa_offset -8
	popq %rcx
	.cfi_adjust_cfa_offset -8
	popq %rdx
	.cfi_adjust_cfa_offset -8
	popq %rsi
	.cfi_adjust_cfa_offset -8
	popq %rdi
	.cfi_adjust_cfa_offset -8
	cmpl $LAUNCH_PASSES, %eax
	jne 2f
0:	jmp *drv + \real(%rip)
1:	/* Nothing to judge: counted, unless the thread has no counts yet, or shares them. */
	movq %fs:LAUNCH_COUNTS(%rax), %rax
	leaq hook_counts_shared(%rip), %r11
	testq %rax, %rax
	je 3f
	cmpq %r11, %rax
	je 3f
	incq LAUNCH_COUNT(%rax)
	jmp 0b
2:	cmpl $LAUNCH_IS_WATCHED, %eax
	je launch_watched_\name
	cmpl $LAUNCH_HAS_TWINS, %eax
	je launch_swapped_\name
3:	jmp launch_judged_\name
	.cfi_endproc
	.size \name, . - \name
	.hidden launch_judged_\name
	.hidden launch_swapped_\name
	.hidden launch_watched_\name
.endm

	.hidden drv
	.hidden hook_counts_shared
	.hidden hook_line
	.hidden hook_thread
	.hidden memo_asks

/* The last argument but one, or the last, of those on the stack; or both in registers. */
#define ON_STACK 88(%rsp)
	launch cuLaunchKernel, 1, DRV_cuLaunchKernel, %rdi, ON_STACK
	launch cuLaunchKernelEx, 1, DRV_cuLaunchKernelEx, %rsi, %rdx
	launch cuLaunchKernel_ptsz, 5, DRV_cuLaunchKernel_ptsz, %rdi, ON_STACK
	launch cuLaunchKernelEx_ptsz, 5, DRV_cuLaunchKernelEx_ptsz, %rsi, %rdx
	launch cuLaunchCooperativeKernel, 5, DRV_cuLaunchCooperativeKernel, %rdi, ON_STACK
	launch cuLaunchCooperativeKernel_ptsz, 5, DRV_cuLaunchCooperativeKernel_ptsz, %rdi, ON_STACK

	.section .note.GNU-stack, "", @progbits
