/* interpreter_place.h - what is known of the interpreter of a process, and how its file is looked
 * at */
#ifndef RECORD_INTERPRETER_PLACE_H
#define RECORD_INTERPRETER_PLACE_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/python.h"
#include "format/code.h"
#include "record/target/target.h"

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

#define INTERPRETER_SYMBOLS 8 /* of a kind, at most */

/* A kind of interpreter. */
struct interpreter_kind {
	enum mlk_language language;
	const char *file;			  /* a part of its file's name */
	const char *symbols[INTERPRETER_SYMBOLS]; /* that the file may export; NULL: no more */
	/* Fill @place, moved by @bias, by where @elf has those symbols.  False: it is none. */
	bool (*describe)(struct interpreter_place *place, Elf *elf, const struct elf_place *found,
			 uint64_t bias);
};

/* May the file of @m be one of @kind, by its name? */
bool interpreter_is_named(const struct interpreter_kind *kind, const struct mlk_mapping *m);

/* Look at the file that @t has mapped at @m.  False: no interpreter of @kind is in it. */
bool interpreter_find(struct interpreter_place *place, const struct interpreter_kind *kind,
		      const struct target *t, const struct mlk_mapping *m);

/* Frames of it cannot be read: @why, which is copied. */
void interpreter_give_up(struct interpreter_place *place, const char *why);

/* Note that the function at @eval of @elf interprets, moved by @bias, with what the compiler moved
 * out of it. */
void interpreter_set_ranges(struct interpreter_place *place, Elf *elf, const struct elf_place *eval,
			    uint64_t bias);

#endif
