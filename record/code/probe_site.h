/* probe_site.h - where in a function a uprobe can be, so that the kernel need not single-step
 *
 * The kernel emulates a few instructions when it meets a probe on them; any other is copied out and
 * single-stepped, a second trap that costs ten times more (on virtual machines).  So a probe is on
 * the first instruction that is emulated, where only exactly known instructions lie before it.
 * These do not change the stack pointer, and every argument is still in some register.
 */
#ifndef RECORD_PROBE_SITE_H
#define RECORD_PROBE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBE_SITE_ARGS 6 /* arguments that registers can have */

/* The instruction of a function that a probe is put on. */
struct probe_site {
	size_t offset; /* bytes from the function's start; 0 unless something better was found */
	bool emulated; /* the kernel emulates the instruction there */
	uint8_t args[PROBE_SITE_ARGS]; /* the registers that have the arguments there, by their
					  numbers in an instruction: rdi is 7 */
};

/*
 * Choose the site in the function whose @len bytes are at @code and which has @nr_args arguments
 * (at most PROBE_SITE_ARGS, in integer registers); if @in_place, where they are still in the
 * registers that they were passed in (psABI section 3.2.3).  A site behind the start holds only if
 * nothing in the whole file jumps to it, which is for probe_site_jumps() to say.
 */
struct probe_site probe_site_find(const uint8_t *code, size_t len, unsigned int nr_args,
				  bool in_place);

/* From what is behind a function's start to its probe: offsets of bytes. */
struct probe_span {
	size_t first, last;
};

/*
 * Set hit[i] for each of the @nr @spans of @text (@text_len bytes: all the code of a file) into
 * which a jump or call leads from anywhere in @text.  It errs on the side of "yes".  A probe there
 * would fire other than once a call: a loop may begin behind an endbr64.
 */
void probe_site_jumps(const uint8_t *text, size_t text_len, const struct probe_span *spans,
		      size_t nr, bool *hit);

#endif
