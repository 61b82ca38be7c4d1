/* module_table.h - the files that a target has mapped for execution: distinguished, and put into
 * the trace
 */
#ifndef RECORD_MODULE_TABLE_H
#define RECORD_MODULE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/writer.h"
#include "record/module/elf_image.h"
#include "record/module/elffile.h"
#include "record/target/target.h"

struct known_file;

/* The files met so far, an array of nr with room for more, owned; all zero: none. */
struct module_table {
	struct known_file *files;
	size_t nr, room;
	enum elf_image_embed embed;
	uint64_t unreadable; /* files that could not be read; their ids say only which they were; */
	uint64_t too_large;  /* of these: for the limit on the size of files */
	uint8_t *vdso;	     /* which cannot be read any more without privileges, of that length */
	size_t vdso_len;
};

/*
 * Set the id of the executable mapping @m; a module that is new goes to the trace.  Mappings of no
 * file but the vdso get an empty id.  Returns 0, -ENOMEM, or what the writer returned.
 */
int module_table_identify(struct module_table *ms, const struct target *t, struct mlk_writer *w,
			  struct mlk_mapping *m);

/* A trace begins, to which all files are new. */
void module_table_begin_trace(struct module_table *ms);

/* Forget all files. */
void module_table_release(struct module_table *ms);

/* The trace that is being written, and what all who write to it must know of its state. */
struct trace_out {
	struct mlk_writer *writer;
	struct module_table modules;
	bool listening;	    /* notices of new mappings come; else maps are read from time to time */
	bool maps_missed;   /* the kernel dropped notices: any process may have other mappings */
	bool code_changed;  /* what is executable in some process, since the writer was told */
	uint64_t maps_lost; /* notices that the kernel dropped */
	int err;	    /* the first that came up; the recording must end */
};

/* Keep @err, if it is one and the first. */
static inline void trace_out_fail(struct trace_out *out, int err)
{
	if (err && !out->err)
		out->err = err;
}

/* Look for the functions @names in that symbol table of the file that @t has mapped at @m; nothing
 * is found where it cannot be read. */
void module_functions(const struct target *t, const struct mlk_mapping *m, enum elf_table table,
		      const struct elf_names *names);

#endif
