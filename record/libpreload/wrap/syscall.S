/* syscall.S - syscall(3), by which a program may call exec, too, and forbid itself system calls
 *
 * All else goes on to the kernel, as the C library's own does it, which is not asked: it may not be
 * known yet.  Children that return on the same stack find nothing of ours there.
 */
#include <asm/unistd.h>

	.text
	.globl	syscall
	.type	syscall, @function
	.p2align 4
syscall:
	.cfi_startproc
	endbr64
	cmpq	$__NR_execve, %rdi
	je	1f
	cmpq	$__NR_execveat, %rdi
	je	1f
	cmpq	$__NR_prctl, %rdi
	je	3f
	cmpq	$__NR_seccomp, %rdi
	je	3f
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %r10
	movq	%r9, %r8
	movq	8(%rsp), %r9
	syscall
	cmpq	$-4095, %rax
	jae	2f
	ret
1:	jmp	preload_exec_by_number
3:	jmp	wrap_syscall
2:	movq	%rax, %rdi
	jmp	preload_syscall_failed
	.cfi_endproc
	.size	syscall, . - syscall

	.section .note.GNU-stack, "", @progbits
	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 3, 0
