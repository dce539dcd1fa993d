/*
 * The hooks of kernel launches. Most launches pass: nothing is protected, or memo_asks() knows that they concern nothing. Those get here from the program and from here to the driver by a jump, with
 * the program's stack as it was, in three cache lines of code; C would move each of eleven arguments twice. What does not pass goes on in functions that scripts/gen_entrypoints.py makes, as if
 * the program had called them.
 */
#include "launch_offsets.h"
#include "shim/doors/arguments.inc"
#include "shim/doors/launch.h"

/* As in HOOK_PAGE. `real`: offset of its pointer in drv; `function`, `params`: where these are once the arguments are saved. */
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
	save_arguments
	movq \function, %rdi
	movq \params, %rsi
	leaq .L\name(%rip), %rdx
	call memo_asks
	restore_arguments
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

/* The fourth of those on the stack; or in a register, as the function is. */
#define ON_STACK SAVED + 32(%rsp)
	launch cuLaunchKernel, 1, DRV_cuLaunchKernel, %rdi, ON_STACK
	launch cuLaunchKernelEx, 1, DRV_cuLaunchKernelEx, %rsi, %rdx
	launch cuLaunchKernel_ptsz, 5, DRV_cuLaunchKernel_ptsz, %rdi, ON_STACK
	launch cuLaunchKernelEx_ptsz, 5, DRV_cuLaunchKernelEx_ptsz, %rsi, %rdx
	launch cuLaunchCooperativeKernel, 5, DRV_cuLaunchCooperativeKernel, %rdi, ON_STACK
	launch cuLaunchCooperativeKernel_ptsz, 5, DRV_cuLaunchCooperativeKernel_ptsz, %rdi, ON_STACK

	.section .note.GNU-stack, "", @progbits
