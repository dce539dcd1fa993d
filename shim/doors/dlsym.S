/*
 * dlsym and dlvsym. glibc takes the meaning of RTLD_NEXT and RTLD_DEFAULT from the return address, so a look-up that is not for us
 * must reach it by a jump with the program's return address on the stack: C can only promise that with optimisation.
 *
 * Names that cannot be ours ("cu..." and "__c...") leave after three or four instructions.
 */
#if defined(__CET__)
#include <cet.h>
#else
#define _CET_ENDBR
#endif

.macro door name, real, version
	.globl \name
	.type \name, @function
	.p2align 4
\name:
	.cfi_startproc
	_CET_ENDBR
	cmpq $0, door_real_dlsym(%rip)
	je 2f
	testq %rsi, %rsi
	je 1f
	cmpb $'c', (%rsi)
	jne 0f
	cmpb $'u', 1(%rsi)
	je 2f
	jmp *\real(%rip)
0:	cmpb $'_', (%rsi)
	jne 1f
	cmpb $'_', 1(%rsi)
	jne 1f
	cmpb $'c', 2(%rsi)
	je 2f
1:	jmp *\real(%rip)

2:	pushq %rdi
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
	movq 56(%rsp), %rcx		/* the program's return address: the caller */
	\version			/* rdx: the version, NULL for dlsym */
	call door_filter
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	popq %r9
	.cfi_adjust_cfa_offset -8
	popq %r8
	.cfi_adjust_cfa_offset -8
	popq %rcx
	.cfi_adjust_cfa_offset -8
	testq %rdx, %rdx		/* struct door_answer: rax address, rdx decided */
	popq %rdx
	.cfi_adjust_cfa_offset -8
	popq %rsi
	.cfi_adjust_cfa_offset -8
	popq %rdi
	.cfi_adjust_cfa_offset -8
	jne 3f
	jmp *\real(%rip)
3:	ret
	.cfi_endproc
	.size \name, . - \name
.endm

	.hidden door_filter
	.hidden door_real_dlsym
	.hidden door_real_dlvsym

	.text
	door dlsym, door_real_dlsym, "xorl %edx, %edx"
	door dlvsym, door_real_dlvsym, ""

	.section .note.GNU-stack, "", @progbits
