/* returns.h - the instructions by which a function returns, found by following its code
 *
 * A return probe replaces the return address on the stack: an exception, or a handler on another
 * stack, that meets it ends the program.  A probe on each of a function's `ret` instructions does
 * not touch the stack.  One within another instruction would break the program, so the code is
 * followed from the function's entry, along each branch and into the functions that it ends by
 * jumping to, and refused where any of it is in doubt.
 *
 * Where all that lies between some jumps and a `ret` leaves the result in a register, the probes
 * are on these jumps: see returns_soon.h.
 */
#ifndef RECORD_RETURNS_H
#define RECORD_RETURNS_H

#include <elfutils/libdw.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RETURNS_MAX 256 /* of all functions of one file */

/* The code of a file: @len bytes that begin @start bytes into it. */
struct returns_code {
	const uint8_t *text;
	uint64_t start, len;
	uint64_t bias;		/* from an offset into the file to the address of what is there */
	Elf *elf;		/* the file */
	Dwarf_CFI *cfi;		/* what of it belongs to a function; NULL: not known */
	const uint64_t *probed; /* the offsets of probes for something else, @nr_probed */
	size_t nr_probed;
	bool by_memory; /* the function writes what it returns, maybe behind its last jump */
};

/* What an instruction says of its function's return. */
enum returns_how {
	RETURNS_HERE,	/* a `ret`, at which the kernel single-steps */
	RETURNS_MEMSET, /* a jump to memset, which returns its first argument */
	RETURNS_SOON, /* a jump, which the kernel emulates, and behind it nothing but the return */
};

#define RETURNS_ALWAYS 16

/* A place at which a function returns. */
struct returns_site {
	uint64_t at; /* the instruction, an offset into the file */
	enum returns_how how;
	/* Of RETURNS_SOON: */
	uint8_t reg;  /* the register that has the result, by its number in an instruction */
	uint8_t when; /* by the condition of this number in an instruction, or RETURNS_ALWAYS */
};

/* In ascending order. */
struct returns {
	struct returns_site v[RETURNS_MAX];
	size_t nr;
};

/*
 * Add to @out by which instructions the function of @size bytes (0: not known) at the offset @entry
 * of @code returns.  NULL, or why they are not known: static text; then @out is as before.
 */
const char *returns_find(struct returns *out, const struct returns_code *code, uint64_t entry,
			 uint64_t size);

/*
 * Where the function at the offset @entry of @code begins to do something: @entry, or the function
 * of the same file that it jumps to at once, maybe by way of others that do no more.  As above, a
 * name that the file defines is taken to be its own.
 */
uint64_t returns_forwarded(const struct returns_code *code, uint64_t entry);

#endif
