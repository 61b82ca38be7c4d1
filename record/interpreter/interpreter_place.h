/* interpreter_place.h - what is known of the interpreter of a process */
#ifndef RECORD_INTERPRETER_PLACE_H
#define RECORD_INTERPRETER_PLACE_H

#include <libelf.h>
#include <stdint.h>

#include "bpf/python.h"
#include "format/code.h"

/* Where one is, and what it is. */
struct interpreter_place {
	enum mlk_language language;
	struct event_python at; /* all zero: frames cannot be read, as why says */
	char version[32];
	char why[64];
	struct mlk_code_range ranges[4]; /* of code that interprets, ascending */
	uint32_t nr_ranges;
};

/* A symbol of a file. */
struct elf_place {
	uint64_t start, size; /* 0 and 0: there is none */
};

/* Find the @nr symbols of @names that @elf exports. */
void interpreter_symbols(Elf *elf, const char *const *names, size_t nr, struct elf_place *found);

/* Note that the function at @eval of @elf interprets, moved by @bias, with what the compiler moved
 * out of it. */
void interpreter_set_ranges(struct interpreter_place *place, Elf *elf, const struct elf_place *eval,
			    uint64_t bias);

#endif
