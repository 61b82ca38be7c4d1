/* stubs.S - the image's beginning, and the entries: what a changed function's slot leads to
 *
 * Each stub saves the registers that a callee must keep, as a struct caller, and calls its half in
 * C.  The number of the function's site comes in r11.  Where nothing is recorded the call passes by
 * a jump, and leaves nothing of ours on the stack.
 */

#include "record/injected/injected.h"

#define OWNER_DIED 0x40000000 /* FUTEX_OWNER_DIED */
#define SAVED_R15  40 /* in struct caller */
#define SITE	   48
#define SAVED	   56 /* bytes, behind which is the return address */

	.section .head, "a"
	.globl	injected_head
	.hidden	injected_head
injected_head:
	.quad	INJECTED_IMAGE, PRELOAD_LAYOUT
	.long	image_text_end - injected_head
	.long	image_data_end - injected_head
	.long	image_end - injected_head
	.long	injected - injected_head
	.long	preload_own - injected_head
	.long	injected_threads - injected_head
	.long	INJECTED_NR_THREADS
	.long	INJECTED_MEMORY
#define STUB(upper, lower) .long stub_##lower - injected_head;
	INJECTED_STUBS(STUB)

	.text

/* The original goes on, as if this had not been. */
	.type	forward, @function
forward:
	imulq	$INJECTED_SITE_SIZE, %r11, %r11
	leaq	injected + INJECTED_SITES_AT + INJECTED_SITE_GOES_ON(%rip), %r10
	jmp	*(%r10, %r11)
	.size	forward, . - forward

.macro ENTRY name
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.p2align 4
\name:
.endm

/* r10: struct preload_header. */
.macro FORWARD_UNLESS_RECORDED
	movq	preload_own(%rip), %r10
	testq	%r10, %r10
	je	forward
	cmpl	$0, INJECTED_ENDED_AT(%r10)
	jne	forward
	testl	$OWNER_DIED, INJECTED_ALIVE_AT(%r10)
	jne	forward
.endm

.macro STUB_BEGIN name
	ENTRY	\name
	FORWARD_UNLESS_RECORDED
	pushq	%r11
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbp
	pushq	%rbx
.endm

.macro STUB_END name
	movq	SAVED_R15(%rsp), %r15
	addq	$SAVED, %rsp
	ret
	.size	\name, . - \name
.endm

/* \arg: the register of the argument after the last */
.macro STUB_OF name, arg
	STUB_BEGIN stub_\name
	movq	%rsp, \arg
	call	half_\name
	STUB_END stub_\name
.endm

	STUB_OF malloc, %rsi
	STUB_OF calloc, %rdx
	STUB_OF realloc, %rdx
	STUB_OF reallocarray, %rcx
	STUB_OF free, %rcx
	STUB_OF posix_memalign, %rcx
	STUB_OF aligned_alloc, %rdx
	STUB_OF mremap, %r9
	STUB_OF munmap, %rdx
	STUB_OF mprotect, %rcx
	STUB_OF madvise, %rcx
	STUB_OF new_nothrow, %rcx
	STUB_OF loader, %rdi

/* Six arguments: the seventh goes by the stack. */
	STUB_BEGIN stub_mmap
	movq	%rsp, %rax
	pushq	%rax
	pushq	%rax
	call	half_mmap
	addq	$16, %rsp
	STUB_END stub_mmap

/* Without a block the operator itself is called, in the place of this. */
.macro STUB_OF_NEW name, arg
	STUB_BEGIN stub_\name
	movq	%rsp, \arg
	pushq	%rdi
	pushq	%rsi
	call	half_\name
	popq	%rsi
	popq	%rdi
	movq	SITE(%rsp), %r11
	movq	SAVED_R15(%rsp), %r15
	addq	$SAVED, %rsp
	testq	%rax, %rax
	je	forward
	ret
	.size	stub_\name, . - stub_\name
.endm

	STUB_OF_NEW new, %rsi
	STUB_OF_NEW new_aligned, %rdx

/* What follows is the fast way of half_malloc() and half_free(): see sample_leaves_out().  All that
 * is not as it mostly is, is left to the \slow stub, which begins anew. */

/* This thread's struct preload_thread in rdx and its first lane's ring in rcx. */
.macro FIND_THREAD slow
	movq	%fs:0, %rax
	movq	%rax, %rcx
	shrq	$6, %rcx
	movabsq	$INJECTED_HASH, %rdx
	imulq	%rdx, %rcx
	shrq	$32, %rcx
	andl	$(INJECTED_NR_THREADS - 1), %ecx
	imulq	$INJECTED_THREAD_SIZE, %rcx, %rcx
	leaq	injected_threads(%rip), %rdx
	addq	%rdx, %rcx
	cmpq	%rax, (%rcx)
	jne	\slow
	movq	injected + INJECTED_TID_OFFSET_AT(%rip), %rdx
	movl	(%rax, %rdx), %eax
	cmpl	%eax, INJECTED_TID_AT(%rcx)
	jne	\slow
	cmpq	$0, INJECTED_INSIDE_AT(%rcx)
	jne	\slow
	movq	INJECTED_SELF_AT(%rcx), %rdx
	movq	(%rdx), %rcx
	testq	%rcx, %rcx
	je	\slow
	movq	(%rcx), %rcx
.endm

/* The loader is at work, or was just now. */
.macro LOOK_FOR_LOADER slow
	cmpb	$0, preload_lanes(%rip)
	jne	\slow
	movq	(%rsp), %rax
	cmpq	injected + INJECTED_LOADER_AT(%rip), %rax
	jb	1f
	cmpq	injected + INJECTED_LOADER_AT + 8(%rip), %rax
	jb	\slow
1:
.endm

	ENTRY	stub_sampled_malloc
	FORWARD_UNLESS_RECORDED
	FIND_THREAD stub_malloc
	LOOK_FOR_LOADER stub_malloc
	cmpb	$0, INJECTED_DRAWN_AT(%rdx)
	je	stub_malloc
	movq	%rdi, %rax
	cmpq	$1, %rax
	adcq	$0, %rax /* no byte weighs as one */
	movq	INJECTED_DISTANCE_AT(%rdx), %r8
	subq	%rax, %r8
	jb	stub_malloc
	movq	%r8, INJECTED_DISTANCE_AT(%rdx)
	addq	$1, INJECTED_SKIPPED_AT + 8 * INJECTED_SKIP_SAMPLE(%rcx)
	addq	%rdi, INJECTED_SKIPPED_BYTES_AT + 8 * INJECTED_SKIP_SAMPLE(%rcx)
	jmp	forward
	.size	stub_sampled_malloc, . - stub_sampled_malloc

	ENTRY	stub_sampled_free
	testq	%rdi, %rdi
	je	forward
	FORWARD_UNLESS_RECORDED
	FIND_THREAD stub_free
	LOOK_FOR_LOADER stub_free
	movq	sample_kept(%rip), %rax
	testq	%rax, %rax
	je	2f
	movabsq	$INJECTED_HASH, %r8
	imulq	%rdi, %r8
	shrq	$48, %r8
	cmpb	$0, (%rax, %r8)
	jne	stub_free
2:
	cmpb	$0, sample_full(%rip)
	jne	stub_free
	movl	$0, INJECTED_RELEASED_AT(%rdx)
	addq	$1, INJECTED_SKIPPED_AT + 8 * INJECTED_SKIP_FREE(%rcx)
	jmp	forward
	.size	stub_sampled_free, . - stub_sampled_free

	.section .note.GNU-stack, "", @progbits
