/* stubs.S - entries of the wrappers: what a call's caller has in its registers, for the unwinder
 *
 * Each saves the registers that a callee must keep, and calls its half in C with one argument more:
 * the address of a struct caller.
 */

#include "record/preload/save.inc"

	.text

/* \name: the function; \half: its C half; \arg: the register of the argument after the last */
.macro WRAP name, half, arg
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	CALL_HALF \half, \arg
	.cfi_endproc
	.size	\name, . - \name
.endm

	WRAP	malloc, wrap_malloc, %rsi
	WRAP	calloc, wrap_calloc, %rdx
	WRAP	realloc, wrap_realloc, %rdx
	WRAP	reallocarray, wrap_reallocarray, %rcx
	WRAP	posix_memalign, wrap_posix_memalign, %rcx
	WRAP	aligned_alloc, wrap_aligned_alloc, %rdx
	WRAP	memalign, wrap_memalign, %rdx
	WRAP	valloc, wrap_valloc, %rsi
	WRAP	pvalloc, wrap_pvalloc, %rsi
	WRAP	mremap, wrap_mremap, %r9
	WRAP	guard_tell, wrap_guard_tell, %rsi

/* Six arguments: the seventh goes by the stack. */
	.globl	mmap, mmap64
	.type	mmap, @function
	.type	mmap64, @function
	.p2align 4
mmap:
mmap64:
	.cfi_startproc
	endbr64
	SAVE
	movq	%rsp, %rax
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	call	wrap_mmap
	addq	$72, %rsp
	.cfi_adjust_cfa_offset -72
	ret
	.cfi_endproc
	.size	mmap, . - mmap
	.size	mmap64, . - mmap64

/* What is no call of interest goes on by a jump: some of them must not have a frame of ours below. */
	.globl	syscall
	.type	syscall, @function
	.p2align 4
syscall:
	.cfi_startproc
	endbr64
	cmpq	$157, %rdi /* prctl */
	je	wrap_syscall
	cmpq	$317, %rdi /* seccomp */
	je	wrap_syscall
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	.irp	register, %rdi, %rsi, %rdx, %rcx, %r8, %r9
	pushq	\register
	.cfi_adjust_cfa_offset 8
	.endr
	call	preload_find_syscall
	.irp	register, %r9, %r8, %rcx, %rdx, %rsi, %rdi
	popq	\register
	.cfi_adjust_cfa_offset -8
	.endr
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
	.cfi_endproc
	.size	syscall, . - syscall

/* vfork returns twice, on the same stack: it must be entered by a jump. */
	.globl	vfork
	.type	vfork, @function
	.p2align 4
vfork:
#ifndef PRELOAD_STATIC
	.globl	__vfork
	.type	__vfork, @function
__vfork:
#endif
	.cfi_startproc
	endbr64
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	preload_before_vfork
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
	.cfi_endproc
	.size	vfork, . - vfork

#ifdef PRELOAD_STATIC
/* By this the recorder knows that the program can be recorded, and by which recorder. */
	.section .note.mleak, "a", @note
	.p2align 2
	.long	6, 8, 1
	.asciz	"mleak"
	.p2align 2
	.quad	PRELOAD_LAYOUT
#endif

	.section .note.GNU-stack, "", @progbits
	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 3, 0
