/* capture_seed.S - a program of a few frames that writes its registers and its stack to stdout
 *
 * make_corpus.py makes the seeds of fuzz_capture.c of it.  With ENDLESS the frames, by what the
 * rules say, never end.
 */
	.globl _start
_start:
	.cfi_startproc
	.cfi_undefined %rip
	call by_rsp
	ud2
	.cfi_endproc

by_rsp:
	.cfi_startproc
	subq $56, %rsp
	.cfi_def_cfa_offset 64
	call by_rbp
	ud2
	.cfi_endproc

by_rbp:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq %rbx
	pushq %r12
	.cfi_offset %rbx, -24
	.cfi_offset %r12, -32
	call by_rbx
	ud2
	.cfi_endproc

by_rbx:
	.cfi_startproc
	pushq %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	movq %rsp, %rbx
	.cfi_def_cfa %rbx, 16
	subq $96, %rsp
	andq $-64, %rsp
	call by_expression
	ud2
	.cfi_endproc

by_expression:
	.cfi_startproc
	leaq 8(%rsp), %rax
	subq $40, %rsp
	movq %rax, (%rsp)
	/* CFA = *(rsp + 0) */
	.cfi_escape 0x0f, 0x03, 0x77, 0x00, 0x06
	call interrupted
	ud2
	.cfi_endproc

interrupted:
	.cfi_startproc
	.cfi_signal_frame
	subq $24, %rsp
	movq %rbp, 8(%rsp)
	/* CFA = rsp + 32; rbp at rsp + 8, by expressions */
	.cfi_escape 0x0f, 0x02, 0x77, 0x20
	.cfi_escape 0x10, 0x06, 0x02, 0x77, 0x08
	call in_register
	ud2
	.cfi_endproc

in_register:
	.cfi_startproc
	movq %rbp, %r12
	.cfi_register %rbp, %r12
#ifdef ENDLESS
	/* The return address is in r13, which is this function and stays so; no memory is read. */
	movq $1f, %r13
	movq %r13, regs + 104(%rip)
	.cfi_register %rip, %r13
#endif
	call write_all
1:	ud2
	.cfi_endproc

write_all:
	.cfi_startproc
	movq %rbx, regs + 24(%rip)
	movq %rbp, regs + 48(%rip)
	movq %rsp, regs + 56(%rip)
	movq %r12, regs + 96(%rip)
	movq $here, regs + 128(%rip)
here:	movl $1, %eax
	movl $1, %edi
	movq $regs, %rsi
	movl $136, %edx
	syscall
	movl $1, %eax
	movl $1, %edi
	movq %rsp, %rsi
	movl $512, %edx
	syscall
	movl $60, %eax
	xorl %edi, %edi
	syscall
	.cfi_endproc

	.bss
	.balign 8
regs:	.skip 136

	.section .note.GNU-stack, "", @progbits
