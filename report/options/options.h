/* options.h - the command lines of `mleak report`, `mleak diff`, `mleak unwind` and `mleak why` */
#ifndef REPORT_OPTIONS_H
#define REPORT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "report/live/root_choice.h"
#include "report/output/formats.h"
#include "report/output/group_by.h"
#include "report/terminal/color.h"
#include "report/view/view.h"

/* Blocks that are lost, and those that are lost with them: bits 1 << enum block_verdict. */
#define LOST_VERDICTS 6u

/* Is a file with unwound stacks read and written beside the trace? */
enum cache_mode {
	CACHE_NEVER,
	CACHE_AUTO, /* if it saves time */
	CACHE_ALWAYS,
};

/* What the command line says; all zero but the path and the directories is the default. */
struct report_opts {
	const char *path; /* of the trace; borrowed from argv, as are the directories */
	enum report_format format;
	bool dump;	       /* print the trace itself */
	bool dump_stacks;      /* and the bytes of its stacks */
	bool no_demangle;      /* names as the files have them */
	bool debuginfod;       /* look for debug information on the network, too */
	bool help;	       /* print the help and do nothing else */
	struct view_opts view; /* its suppressions are not loaded yet */
	struct block_filter choice;
	char *moment;	  /* the name of a mark that is in it, or NULL */
	bool at, between; /* these options were given */
	enum group_key by;
	uint64_t temporary_ns;	   /* blocks that lived no longer are temporary, too; 0: none */
	bool growth, timeline;	   /* in place of stacks */
	uint32_t verdicts;	   /* only blocks of these: bits 1 << enum block_verdict; 0: all */
	bool starts_only;	   /* for these: a word that points into a block holds none */
	uint64_t tag_mask;	   /* and bits of a word that are no part of its address */
	struct root_choice *roots; /* and words in these hold blocks wherever they are */
	size_t nr_roots;
	bool why;		  /* the command is `mleak why`: */
	const char *why_what;	  /* an address, or a stack or functions; NULL: all roots */
	bool full;		  /* with whole stacks */
	const char *suppressions; /* path of a file, or NULL */
	bool no_embedded;	  /* not those of the programs themselves */
	const char *before; /* path of the trace to compare with, or NULL; @path: of one trace two
			       moments are compared */
	bool drop_raw;	    /* of unwind: without registers and stacks */
	const char *output; /* of unwind: path of what it writes; NULL: that of the trace */
	enum color_mode color;
	enum lines_mode lines;
	bool no_pager;
	bool quiet;		 /* say nothing of how far it is */
	bool exact;		 /* all figures in bytes */
	bool no_limit;		 /* all lines, also on a terminal */
	bool full_names;	 /* of functions, also for people */
	bool no_cache;		 /* --no-cache was given */
	enum cache_mode cache;	 /* that, and what the environment says */
	unsigned int nr_threads; /* that read the trace; 0: one for each CPU */
	bool fail_on_leak;	 /* exit with 1 when more than so many bytes are shown */
	uint64_t fail_bytes;
	bool fail_on_lost;    /* of that: count only blocks that are lost */
	bool fail_on_growing; /* exit with 1 when a stack is growing */
	uint64_t max_memory;  /* bytes that may be allocated; 0: half of the machine's */
	bool strict;	      /* exit with 2 when there was a warning */
	bool find_addr;	      /* in place of a report, whose this is: */
	uint64_t addr;
	bool resident;		 /* in place of a report: where the resident memory is */
	size_t around;		 /* neighbours on each side; 0: the nearest alone */
	const char **debug_dirs; /* where debug information is looked for, in this order */
	size_t nr_debug_dirs;
	const char
		*symfs; /* files are looked for here first, as below a root; NULL: nowhere else */
	char *symfs_debug;   /* the debug directory below it */
	const char *vmlinux; /* path of the kernel's file with debug information, or NULL */
};

/*
 * Read the command line, of the command that argv[0] names, into *@opts, which
 * is released with report_opts_release() in any case. What is wrong with it is said on stderr.
 * Returns 0, -EINVAL for a wrong command line or -ENOMEM.
 */
int report_opts_parse(struct report_opts *opts, int argc, char **argv);

/* Set opts->cache by --no-cache and $MLEAK_CACHE.  Returns 0, or -EINVAL, and says so on stderr, if
 * that is none of its values. */
int report_opts_cache(struct report_opts *opts);

/* Set *@mode as $MLEAK_CACHE says: CACHE_AUTO if it says nothing.  Returns false, and sets that,
 * too, if it is none of its values. */
bool cache_mode_read(enum cache_mode *mode);

/* Does the report tell of the pointers in memory? */
bool report_opts_tell_verdicts(const struct report_opts *opts);

/* Refuse options that would have no effect, and say so on stderr.  Returns 0 or -EINVAL. */
int report_opts_check(const struct report_opts *opts);

/* Print on stdout the help of @command: "diff", "unwind", "why", else that of report; it is in
 * option_rows.c. */
void report_opts_print_help(const char *command);

/* Release what @opts holds. */
void report_opts_release(struct report_opts *opts);

#endif
