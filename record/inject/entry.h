/* entry.h - how the first bytes of a function can be replaced by a jump to other code
 *
 * The instructions that the jump overwrites are copied to another place, with a jump behind them
 * to where the function goes on.  Who runs the copy runs the original function.  An endbr64 at the
 * function's beginning stays where it is, and the jump stands behind it.
 *
 * A function is refused where the copy could do anything else than the original, or where
 * something could meet the changed bytes other than at their beginning.  A jump to an address that
 * the program computes is taken to lead elsewhere: compilers make none into the first instruction.
 */
#ifndef RECORD_INJECT_ENTRY_H
#define RECORD_INJECT_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#define INJECT_JUMP 5 /* bytes of a jmp rel32 */
/* Instructions of 4 bytes, at worst two short conditional jumps, which become 6 bytes each; one of
 * 15 bytes; the jump behind them. */
#define INJECT_MOVED_MOST 32

/* A function's code, in memory that the caller keeps.  @bytes should reach beyond the function: 16
 * bytes, or if its size is not known 4 KiB. */
struct inject_code {
	uint64_t at;	      /* the function's address in the target */
	const uint8_t *bytes; /* what is there now */
	const uint8_t *file;  /* what its file has there; NULL: not known */
	size_t len;	      /* bytes of each */
	uint64_t size;	      /* bytes of the function, as its symbol says; 0: not known */
	uint64_t next;	      /* the address of the first symbol behind @at; 0: not known */
	/* All code that could jump there, such as the whole segment; NULL: only the function. */
	const uint8_t *text;
	size_t text_len;  /* bytes */
	uint64_t text_at; /* its address in the target */
};

/* The change of a function's first bytes. */
struct inject_entry {
	uint64_t at;		     /* the first changed byte, an address in the target */
	uint8_t before[INJECT_JUMP]; /* what stands there now */
	uint8_t after[INJECT_JUMP];  /* the jump */
	size_t covered;		     /* bytes of the instructions that the jump overwrites; or the
				      * function ends within the jump, and they are fewer */
	size_t nr_moved;	     /* bytes of @moved */
	/* These instructions as they are to stand at the other place, and the jump back. */
	uint8_t moved[INJECT_MOVED_MOST];
};

/*
 * Put into *@out how the function @code can begin with a jump to the address @slot, if its first
 * instructions are moved to the address @moved_at.  Both must be within 2 GiB of the function, and
 * @moved_at of all that these instructions refer to.
 *
 * While the bytes are written, no thread may go on behind @out->at and before @out->at +
 * INJECT_JUMP: by its pc, or by that in the frame of a signal.  No return address lies there.
 *
 * Returns NULL, or why it cannot be: static text such as "it is too short", to stand behind "its
 * entry cannot be changed: ".  Then *@out is not to be used.
 */
const char *inject_entry_plan(struct inject_entry *out, const struct inject_code *code,
			      uint64_t slot, uint64_t moved_at);

#endif
