/* pclntab.h - Go's own table of functions: sizes of frames, names and lines
 *
 * It is in every Go program, stripped or not, for the runtime walks by it.  The layouts are those
 * of Go 1.18 and 1.20 and later, which runtime/symtab.go and debug/gosym describe.  All of it is
 * hostile: each offset is checked, and each walk ends with the bytes.
 */
#ifndef DWUNW_PCLNTAB_H
#define DWUNW_PCLNTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the table's header up to the address that its functions count from, which position
 * independent programs have from the loader. */
#define DWUNW_PCLNTAB_TEXT 24

/* A part of the table. */
struct dwunw_pcln_part {
	const uint8_t *at;
	size_t len;
};

/* A table; its bytes are borrowed. */
struct dwunw_pclntab {
	struct dwunw_pcln_part names, units, files, values, functions;
	uint64_t text; /* what the functions' addresses count from */
	uint32_t nr;   /* functions; 0: there is no table */
	bool lines;    /* 1.20: a function has the line where it begins */
};

/* What the runtime knows of a function. */
enum dwunw_pcln_flag {
	DWUNW_PCLN_TOP = 1,    /* nothing called it */
	DWUNW_PCLN_SP_SET = 2, /* it changes to another stack */
};

/* A function of a table. */
struct dwunw_pcln_function {
	uint64_t start, end; /* addresses, as the file counts them */
	const char *name;    /* as Go writes it; never NULL */
	uint32_t at;	     /* where it is described, in functions */
	uint8_t flags;	     /* enum dwunw_pcln_flag, and others */
};

/* Set @t to the table in the @len bytes at @bytes, which are borrowed.  False: there is none that
 * is known; then @t is empty. */
bool dwunw_pclntab_open(struct dwunw_pclntab *t, const void *bytes, size_t len);

/* The function with the number @i, below t->nr.  False: it cannot be read. */
bool dwunw_pclntab_function(const struct dwunw_pclntab *t, uint32_t i,
			    struct dwunw_pcln_function *f);

/* The function that @addr lies in.  False: none, or it cannot be read. */
bool dwunw_pclntab_find(const struct dwunw_pclntab *t, uint64_t addr,
			struct dwunw_pcln_function *f);

/* From the stack pointer at @addr, which lies in @f, up to the return address: bytes, a multiple of
 * 8 that is not below 0.  False: it is not known. */
bool dwunw_pclntab_frame(const struct dwunw_pclntab *t, const struct dwunw_pcln_function *f,
			 uint64_t addr, int32_t *bytes);

/* Where in its source @addr is, which lies in @f.  False: it is not known, or the code there is
 * that of another function, which was inlined. */
bool dwunw_pclntab_line(const struct dwunw_pclntab *t, const struct dwunw_pcln_function *f,
			uint64_t addr, const char **file, uint32_t *line);

#endif
