/* kernel_image.h - the kernel, or a module of it, as an ELF file that a trace keeps
 *
 * It holds the functions that occur in the recorded stacks, and no others.  A recorded kernel stack
 * is a list of return addresses.  So one rule of call frame information serves all code: a frame is
 * one word, which is the return address.  Another rule is for where the kernel was entered from
 * user space: there the registers of user space follow, and then its stack.
 */
#ifndef RECORD_KERNEL_IMAGE_H
#define RECORD_KERNEL_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/trace.h"

/* One that occurs in a stack; the name is borrowed. */
struct kernel_function {
	uint64_t addr; /* in the image */
	uint64_t size; /* bytes */
	const char *name;
};

/* Words between a return address that lies in an image with registers and the stack of user space:
 * r15 to r8, rbp, rdi, rsi, rbx, rcx, rdx, rax, and the address of the next instruction. */
#define KERNEL_IMAGE_REGS 16

/* What the ELF file is made of. */
struct kernel_image {
	uint64_t start, end; /* addresses of its code in the image */
	bool has_regs;	     /* its code was entered from user space */
	struct mlk_id id;    /* a build-id becomes a note; any other does not */
	const struct kernel_function *functions;
	size_t nr;
};

/* Make the ELF file of @what; *@bytes, of *@len bytes, is freed by the caller.  Returns 0 or
 * -ENOMEM. */
int kernel_image_make(const struct kernel_image *what, uint8_t **bytes, size_t *len);

/* The build-id among the notes in the file @path, as /sys/kernel/notes.  @id is empty without one.
 */
void kernel_image_build_id(const char *path, struct mlk_id *id);

#endif
