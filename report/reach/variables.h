/* variables.h - the variables of programs and libraries, by address: their symbols of data */
#ifndef REPORT_VARIABLES_H
#define REPORT_VARIABLES_H

#include "format/reach.h"
#include "report/trace/module_image.h"

/* The modules of a trace, by path. */
struct root_modules {
	struct trace_modules *images;
	struct module_paths paths;
};

struct mlk_reader;

/* Read all modules of @trace.  *@out is NULL on failure.  Returns 0, -ENOMEM or the -errno of
 * read(2). */
int root_modules_new(struct root_modules **out, struct mlk_reader *trace);

/* NULL is allowed. */
void root_modules_free(struct root_modules *modules);

/* A variable; the strings are in a module's image. */
struct variable {
	uint64_t start, end;
	const char *name;
	size_t name_len;  /* without the version of its symbol */
	const char *file; /* where it is defined, of one that is local to a file; else NULL */
	const char *path; /* of the module */
};

/* What a program or library has mapped writable, with what is zero in the beginning. */
struct data_area {
	uint64_t start, end;
	const char *path;
};

/* Of one process; both ascend after variables_find().  All zero: none. */
struct variables {
	struct variable *all;
	size_t nr, room;
	struct data_area *areas;
	size_t nr_areas, room_areas;
};

/* Find those of @pass, which borrows @modules.  @v is to be released in any case.  Returns 0 or
 * -ENOMEM. */
int variables_find(struct variables *v, const struct root_modules *modules,
		   const struct mlk_pass *pass);

/* The place of the last variable that begins at or before @address, plus one; 0: none does. */
size_t variables_before(const struct variables *v, uint64_t address);

/* The module whose data @address is in; NULL: none. */
const struct data_area *variables_area(const struct variables *v, uint64_t address);

/* Forget them. */
void variables_release(struct variables *v);

#endif
