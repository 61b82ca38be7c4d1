/* operators.S - operators new and delete: each jumps to where operators.c says it is to go */
#ifndef PRELOAD_STATIC

#include "record/libpreload/wrap/save.inc"

	.text

/* The exported name; what it does until it is known; and what records it. */
.macro OPERATOR number, name, half
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	jmp	*preload_operator_targets + 8 * \number(%rip)
	.cfi_endproc
	.size	\name, . - \name

	.p2align 4
.Lfirst\number:
	.cfi_startproc
	endbr64
	movl	$\number, %ecx
	jmp	find_operator
	.cfi_endproc

	.p2align 4
.Lrecord\number:
	.cfi_startproc
	endbr64
	movl	$\number, %ecx
	jmp	\half
	.cfi_endproc
.endm

/* %ecx: the number; the arguments are kept. */
	.type	find_operator, @function
find_operator:
	.cfi_startproc
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	movl	%ecx, %edi
	call	preload_find_operator
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
	.cfi_endproc
	.size	find_operator, . - find_operator

	.type	record_new, @function
record_new:
	.cfi_startproc
	CALL_HALF wrap_new, %r8
	.cfi_endproc
	.size	record_new, . - record_new

	OPERATOR 0, _Znwm, record_new
	OPERATOR 1, _ZnwmRKSt9nothrow_t, record_new
	OPERATOR 2, _ZnwmSt11align_val_t, record_new
	OPERATOR 3, _ZnwmSt11align_val_tRKSt9nothrow_t, record_new
	OPERATOR 4, _Znam, record_new
	OPERATOR 5, _ZnamRKSt9nothrow_t, record_new
	OPERATOR 6, _ZnamSt11align_val_t, record_new
	OPERATOR 7, _ZnamSt11align_val_tRKSt9nothrow_t, record_new
	OPERATOR 8, _ZdlPv, wrap_delete
	OPERATOR 9, _ZdlPvm, wrap_delete
	OPERATOR 10, _ZdlPvRKSt9nothrow_t, wrap_delete
	OPERATOR 11, _ZdlPvSt11align_val_t, wrap_delete
	OPERATOR 12, _ZdlPvmSt11align_val_t, wrap_delete
	OPERATOR 13, _ZdlPvSt11align_val_tRKSt9nothrow_t, wrap_delete
	OPERATOR 14, _ZdaPv, wrap_delete
	OPERATOR 15, _ZdaPvm, wrap_delete
	OPERATOR 16, _ZdaPvRKSt9nothrow_t, wrap_delete
	OPERATOR 17, _ZdaPvSt11align_val_t, wrap_delete
	OPERATOR 18, _ZdaPvmSt11align_val_t, wrap_delete
	OPERATOR 19, _ZdaPvSt11align_val_tRKSt9nothrow_t, wrap_delete

	.section .data.rel, "aw"
	.p2align 3
	.globl	preload_operator_targets
	.hidden	preload_operator_targets
preload_operator_targets:
	.irp	number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
	.quad	.Lfirst\number
	.endr

	.section .data.rel.ro, "aw"
	.p2align 3
	.globl	preload_operator_entries
	.hidden	preload_operator_entries
preload_operator_entries:
	.irp	number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
	.quad	.Lrecord\number
	.endr

#endif

	.section .note.GNU-stack, "", @progbits
	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 3, 0
