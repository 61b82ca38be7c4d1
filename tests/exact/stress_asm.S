/* stress_asm.S - see stress.h */
	.text

	.globl asm_expression
	.type asm_expression, @function
asm_expression:
	.cfi_startproc
	movq %rsp, %rax
	subq $80, %rsp
	.cfi_adjust_cfa_offset 80
	movq %rax, 8(%rsp)
	/* CFA = *(rsp + 8) + 8 */
	.cfi_escape 0x0f, 0x05, 0x77, 0x08, 0x06, 0x23, 0x08
	pushq %rbp
	/* one word more; and rbp is saved where an expression says: rsp + 0 */
	.cfi_escape 0x0f, 0x05, 0x77, 0x10, 0x06, 0x23, 0x08
	.cfi_escape 0x10, 0x06, 0x02, 0x77, 0x00
	xorl %ebp, %ebp
	call *%rdi
	popq %rbp
	.cfi_escape 0x0f, 0x05, 0x77, 0x08, 0x06, 0x23, 0x08
	.cfi_same_value %rbp
	movq 8(%rsp), %rsp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size asm_expression, . - asm_expression

	.globl asm_cfa_in_rbx
	.type asm_cfa_in_rbx, @function
asm_cfa_in_rbx:
	.cfi_startproc
	pushq %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	movq %rsp, %rbx
	.cfi_def_cfa %rbx, 16
	subq $200, %rsp
	andq $-128, %rsp
	call asm_rbx_in_r12
	movq %rbx, %rsp
	.cfi_def_cfa %rsp, 16
	popq %rbx
	.cfi_def_cfa_offset 8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size asm_cfa_in_rbx, . - asm_cfa_in_rbx

	.type asm_rbx_in_r12, @function
asm_rbx_in_r12:
	.cfi_startproc
	pushq %r12
	.cfi_def_cfa_offset 16
	.cfi_offset %r12, -16
	movq %rbx, %r12
	.cfi_register %rbx, %r12
	movl $77, %ebx
	subq $16, %rsp
	.cfi_def_cfa_offset 32
	call *%rdi
	addq $16, %rsp
	.cfi_def_cfa_offset 16
	movq %r12, %rbx
	.cfi_restore %rbx
	popq %r12
	.cfi_def_cfa_offset 8
	.cfi_restore %r12
	ret
	.cfi_endproc
	.size asm_rbx_in_r12, . - asm_rbx_in_r12

	.globl asm_push_pop
	.type asm_push_pop, @function
asm_push_pop:
	.cfi_startproc
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	.cfi_remember_state
	testq %rdi, %rdi
	jz 1f
	pushq $5
	.cfi_adjust_cfa_offset 8
	pushq $6
	.cfi_adjust_cfa_offset 8
	call *%rdi
	popq %rax
	.cfi_adjust_cfa_offset -8
	popq %rax
	.cfi_adjust_cfa_offset -8
	popq %rdi
	.cfi_adjust_cfa_offset -8
	ret
1:	.cfi_restore_state
	popq %rdi
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size asm_push_pop, . - asm_push_pop

	.globl asm_saved_in_red_zone
	.type asm_saved_in_red_zone, @function
asm_saved_in_red_zone:
	.cfi_startproc
	movq %rbx, -24(%rsp)
	.cfi_offset %rbx, -32
	movl $1000, %ebx
1:	decl %ebx
	jnz 1b
	movq -24(%rsp), %rbx
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size asm_saved_in_red_zone, . - asm_saved_in_red_zone

	/* The return address of the call is the first byte of the next function, whose frame is of
	 * another size. */
	.globl asm_noreturn
	.type asm_noreturn, @function
asm_noreturn:
	.cfi_startproc
	subq $40, %rsp
	.cfi_def_cfa_offset 48
	call *%rdi
	.cfi_endproc
	.size asm_noreturn, . - asm_noreturn
	.type asm_next, @function
asm_next:
	.cfi_startproc
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size asm_next, . - asm_next

	.section .note.GNU-stack, "", @progbits
