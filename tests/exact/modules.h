/* modules.h - the files that were mapped into a sampled process, as the unwinder is given them
 */
#ifndef TESTS_EXACT_MODULES_H
#define TESTS_EXACT_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/dwunw.h"

#define EXACT_MAX_MODULES 4096
#define EXACT_MAX_MAPS	  8192

struct exact_modules {
	struct dwunw *dw;
	bool reduced; /* give it only what a trace holds of a file */
	const void *vdso;
	size_t vdso_len;
	uint32_t nr;
	char *path[EXACT_MAX_MODULES]; /* by the number of the module */
	struct dwunw_mapping maps[EXACT_MAX_MAPS];
	size_t nr_maps;
};

/* All these end the program when they fail. */
void exact_modules_init(struct exact_modules *m, bool reduced);

/* Take the mappings in the @len bytes of text, which are in the form of /proc/PID/maps, in place of
 * those before; returns the space, which is freed by the caller. */
struct dwunw_space *exact_modules_space(struct exact_modules *m, const char *text, size_t len);

/* Write where @pc is to @out, as "libc.so.6+0x1234". */
void exact_modules_place(const struct exact_modules *m, uint64_t pc, char *out, size_t room);

#endif
