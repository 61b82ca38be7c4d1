/* top_options.h - the command line of `mleak top` */
#ifndef REPORT_TOP_OPTIONS_H
#define REPORT_TOP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_USUAL_NS   5000000000u /* between two tables, as bcc's memleak has it */
#define TOP_USUAL_ROWS 10
#define TOP_MAX_DIRS   16

/* By what rows are sorted; the order is that of the words of --sort. */
enum top_sort { TOP_BYTES, TOP_BLOCKS, TOP_RATE, TOP_AGE, TOP_SORTS };

/* By what blocks are summed up, in the order of the words of --by.  The kernel's have no threads,
 * and only they have the last two. */
enum group_kind { GROUPS_PROCESSES, GROUPS_THREADS, GROUPS_CACHES, GROUPS_CGROUPS, GROUPS_NR };

/* What is printed of each table. */
enum top_form {
	TOP_TABLE,    /* a line for each stack */
	TOP_FLAT,     /* its frames, too */
	TOP_COMBINED, /* sums and frames, and nothing else: as bcc's memleak */
};

/* What the command line says; strings are borrowed from argv. */
struct top_opts {
	const char *path;    /* of a trace; NULL: record */
	const char **record; /* the recorder's command line, NULL-terminated, without -o */
	size_t nr_record, record_room;
	const char *from;     /* the first option given that is the recorder's; NULL: none */
	char **command;	      /* that is started and recorded, or NULL */
	const char *output;   /* where the trace is kept, or NULL */
	uint64_t interval_ns; /* 0: not given */
	uint64_t count;	      /* tables; 0: no limit */
	size_t rows;
	bool rows_given;
	enum top_sort sort;
	enum top_form form;
	enum group_kind by;  /* what is shown in place of stacks, */
	bool grouped;	     /* if that is wanted */
	bool resident;	     /* or where the resident memory is */
	bool reach;	     /* the recorder's --reach was given */
	bool of_kernel;	     /* the kernel is recorded */
	bool blocks;	     /* list them */
	bool calls;	     /* each of them, in place of tables */
	bool full_recursion; /* each repetition of a call */
	bool plain;	     /* also on a terminal */
	bool screen;	     /* in place of tables, as there is a terminal */
	bool targets;	     /* a process or the kernel is named */
	bool help;
	uint64_t max_memory;
	const char *debug_dirs[TOP_MAX_DIRS];
	size_t nr_debug_dirs;
};

/* Read the command line into *@opts, which is released with top_opts_release() in any case.  What
 * is wrong with it is said on stderr.  Returns 0, -EINVAL or -ENOMEM. */
int top_opts_parse(struct top_opts *opts, int argc, char **argv);

/* Can what @opts want be shown of a trace, @of_kernel or not?  If not, it is said why on stderr. */
bool top_opts_fit(const struct top_opts *opts, bool of_kernel);

/* From now on the preloaded library records.  Returns 0, -ENOMEM, or -EEXIST: it was so. */
int top_opts_preload(struct top_opts *opts);

/* Print the help on stdout. */
void top_opts_help(void);

/* Release what @opts holds. */
void top_opts_release(struct top_opts *opts);

#endif
