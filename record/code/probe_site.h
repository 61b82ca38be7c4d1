/* probe_site.h - where in a function a uprobe can be, so that the kernel need not single-step
 *
 * The kernel emulates a few instructions when it meets a probe on them; any other is copied out and
 * single-stepped, a second trap that costs ten times more (on virtual machines).  So a probe is on
 * the first instruction that is emulated, where only exactly known instructions lie before it,
 * which change neither a register with an argument nor the stack pointer.
 */
#ifndef RECORD_PROBE_SITE_H
#define RECORD_PROBE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The instruction of a function that a probe is put on. */
struct probe_site {
	size_t offset; /* bytes from the function's start; 0 unless something better was found */
	bool emulated; /* the kernel emulates the instruction there */
};

/*
 * Choose the site in the function whose @len bytes are at @code and which has @nr_args arguments
 * (at most 6, in integer registers).  A site behind the start holds only if nothing in the whole
 * file jumps to it, which is for probe_site_jumps() to say.
 */
struct probe_site probe_site_find(const uint8_t *code, size_t len, unsigned int nr_args);

/*
 * Set hit[i] for each of the @nr offsets @sites into @text (@text_len bytes: all the code of a
 * file) to which a jump or call leads from anywhere in @text.  It errs on the side of "yes".  A
 * probe there would fire other than once a call.
 */
void probe_site_jumps(const uint8_t *text, size_t text_len, const size_t *sites, size_t nr,
		      bool *hit);

#endif
