/*
 * dlsym and dlvsym. glibc takes the meaning of RTLD_NEXT and RTLD_DEFAULT from the return address, so a look-up that is not for us
 * must reach it by a jump with the program's return address on the stack: C can only promise that with optimisation.
 *
 * Names that cannot be ours ("cu..." and "__c...") leave after three or four instructions.
 */
#include "shim/doors/arguments.inc"

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

2:	save_arguments
	movq SAVED(%rsp), %rcx		/* the program's return address: the caller */
	\version			/* rdx: the version, NULL for dlsym */
	call door_filter
	testq %rdx, %rdx		/* struct door_answer: rax address, rdx decided */
	restore_arguments
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
