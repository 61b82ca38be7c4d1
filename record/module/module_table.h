/* module_table.h - the files that a target has mapped for execution: distinguished, and put into
 * the trace
 */
#ifndef RECORD_MODULE_TABLE_H
#define RECORD_MODULE_TABLE_H

#include "format/writer.h"
#include "record/module/elf_image.h"
#include "record/target/target.h"

struct known_file;

struct module_table {
	struct known_file *files;
	size_t nr, room;
	enum elf_image_embed embed;
	uint64_t unreadable; /* files that could not be read; their ids say only which they were; */
	uint64_t too_large;  /* of these: for the limit on the size of files */
};

/*
 * Set the id of the executable mapping @m; a module that is new goes to the trace.  Mappings of no
 * file but the vdso get an empty id.  Returns 0, -ENOMEM, or what the writer returned.
 */
int module_table_identify(struct module_table *ms, const struct target *t, struct mlk_writer *w,
			  struct mlk_mapping *m);

void module_table_release(struct module_table *ms);

#endif
