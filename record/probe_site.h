/* probe_site.h - where in a function a uprobe may stand, so that the kernel need not single-step
 *
 * The kernel emulates a few instructions when it meets a probe on them; any other is copied out and
 * single-stepped, a second trap that costs ten times more (on virtual machines).  So a probe stands
 * on the first instruction that is emulated, where only exactly known instructions lie before it,
 * which change neither an argument register nor the stack pointer.
 */
#ifndef RECORD_PROBE_SITE_H
#define RECORD_PROBE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe_site {
	size_t offset; /* bytes from the function's start; 0 unless something better was found */
	bool emulated; /* the kernel emulates the instruction there */
};

/*
 * Choose the site in the function that begins @func bytes into @text and is @func_len bytes long.
 * @text (@text_len bytes) is the whole code of the file: a jump from anywhere in it to the site
 * makes the site unfit, for the probe would then fire other than once a call.
 */
struct probe_site probe_site_find(const uint8_t *text, size_t text_len, size_t func,
				  size_t func_len);

#endif
