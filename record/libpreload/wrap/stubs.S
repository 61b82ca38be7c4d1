/* stubs.S - entries of the wrappers: what a call's caller has in its registers, for the unwinder
 *
 * Each saves the registers that a callee must keep, and calls its half in C with one argument more:
 * the address of a struct caller.
 */

#include "record/libpreload/mode.h"
#include "record/libpreload/wrap/save.inc"

	.text

#ifdef PRELOAD_STATIC
/*
 * Where this program is not recorded by us, it may be by others: then it goes on to the function
 * behind by a jump, so that no frame of ours stands between that and the program.  \real: what
 * jumps there; 1: is where we record.
 */
.macro BEGIN
	cmpb	$PRELOAD_RECORDED, preload_mode(%rip)
	jne	2f
1:
.endm
.macro PASS real:vararg
2:	cmpb	$PRELOAD_UNRECORDED, preload_mode(%rip)
	je	3f
	call	find_mode
	jne	1b
3:	\real
.endm

/* Set the zero flag if we do not record; all arguments are kept. */
	.type	find_mode, @function
find_mode:
	.cfi_startproc
	.irp	reg, %rdi, %rsi, %rdx, %rcx, %r8, %r9
	pushq	\reg
	.cfi_adjust_cfa_offset 8
	.endr
	call	preload_come_up
	.irp	reg, %r9, %r8, %rcx, %rdx, %rsi, %rdi
	popq	\reg
	.cfi_adjust_cfa_offset -8
	.endr
	cmpb	$PRELOAD_UNRECORDED, preload_mode(%rip)
	ret
	.cfi_endproc
	.size	find_mode, . - find_mode

/* What was given out of the arena is not the allocator's. */
.macro STAY_IF_ARENA
	leaq	preload_arena(%rip), %r11
	movq	%rdi, %rax
	subq	%r11, %rax
	cmpq	$PRELOAD_ARENA_BYTES, %rax
	jb	1b
.endm
.macro JUMP_REALLOC
	STAY_IF_ARENA
	jmp	__real_realloc
.endm

/* By realloc, as wrap_reallocarray() does, which refuses what is too large. */
.macro JUMP_REALLOCARRAY
	STAY_IF_ARENA
	movq	%rdx, %r11
	movq	%rsi, %rax
	mulq	%rdx
	movq	%r11, %rdx
	jc	1b
	movq	%rax, %rsi
	jmp	__real_realloc
.endm

/* Not every allocator has the function: else \otherwise, with aligned_alloc. */
.macro JUMP_IF_ANY real, otherwise:vararg
	.weak	\real
	movq	\real@GOTPCREL(%rip), %rax
	testq	%rax, %rax
	je	4f
	jmp	*%rax
4:	\otherwise
	jmp	__real_aligned_alloc
.endm
.macro PAGES
	movq	%rdi, %rsi
	movl	$4096, %edi
.endm
.macro WHOLE_PAGES
	addq	$4095, %rdi
	andq	$-4096, %rdi
	PAGES
.endm
#else
.macro BEGIN
.endm
.macro PASS real:vararg
.endm
#endif

/* \name: the function; \half: its C half; \arg: the register of the argument after the last;
 * \real: how it goes on where a static program is not recorded */
.macro WRAP name, half, arg, real:vararg
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	BEGIN
	CALL_HALF \half, \arg
	PASS	\real
	.cfi_endproc
	.size	\name, . - \name
.endm

	WRAP	malloc, wrap_malloc, %rsi, jmp __real_malloc
	WRAP	calloc, wrap_calloc, %rdx, jmp __real_calloc
	WRAP	realloc, wrap_realloc, %rdx, JUMP_REALLOC
	WRAP	reallocarray, wrap_reallocarray, %rcx, JUMP_REALLOCARRAY
	WRAP	posix_memalign, wrap_posix_memalign, %rcx, jmp __real_posix_memalign
	WRAP	aligned_alloc, wrap_aligned_alloc, %rdx, jmp __real_aligned_alloc
	WRAP	memalign, wrap_memalign, %rdx, JUMP_IF_ANY __real_memalign
	WRAP	valloc, wrap_valloc, %rsi, JUMP_IF_ANY __real_valloc, PAGES
	WRAP	pvalloc, wrap_pvalloc, %rsi, JUMP_IF_ANY __real_pvalloc, WHOLE_PAGES
	WRAP	mremap, wrap_mremap, %r9, jmp __real_mremap

/* It is ours, and records. */
	.globl	guard_tell
	.type	guard_tell, @function
	.p2align 4
guard_tell:
	.cfi_startproc
	endbr64
	CALL_HALF wrap_guard_tell, %rsi
	.cfi_endproc
	.size	guard_tell, . - guard_tell

/* Six arguments: the seventh goes by the stack. */
	.globl	mmap, mmap64
	.type	mmap, @function
	.type	mmap64, @function
	.p2align 4
mmap:
mmap64:
	.cfi_startproc
	endbr64
	BEGIN
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
	PASS	jmp __real_mmap
	.cfi_endproc
	.size	mmap, . - mmap
	.size	mmap64, . - mmap64

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
