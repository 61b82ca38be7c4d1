/* options.h - the command line of mleak record */
#ifndef RECORD_OPTIONS_H
#define RECORD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/allocator/allocator.h"
#include "record/kernel_record.h"
#include "record/module/elf_image.h"
#include "record/pids.h"
#include "record/probe/probes.h"
#include "record/switch.h"

/* Where the events come from: probes in the kernel, or a library in the command. */
enum record_backend {
	BACKEND_AUTO, /* BPF where it is allowed, else preload for a command */
	BACKEND_BPF,
	BACKEND_PRELOAD,
	BACKEND_INJECT, /* the library's code, put into a process that runs */
};

/* What the command line asks for; strings and argv are those of main(), borrowed. */
struct record_opts {
	pid_t pids[RECORD_MAX_PIDS];
	size_t nr_pids; /* 0: a command is started */
	char **argv;	/* the command, NULL-terminated; NULL: pids */
	struct output_opts output;
	struct switch_opts several; /* traces */
	bool unwind, drop_raw;	    /* when the recording has ended */
	bool no_cache;		    /* nothing is kept beside it for its report */
	struct then_unwind *after;  /* what does that, set by the command; NULL: nothing does */
	bool quiet;		    /* nothing is said but errors and warnings */
	uint64_t duration_ns;	    /* from the end of the delay on; 0: no limit */
	struct filter_opts filters;
	uint32_t stack_limit; /* bytes */
	uint32_t ring_size;   /* bytes, a power of two pages; 0: what the backend takes */
	enum probe_link link;
	bool raw_stack, redact; /* asked for; one of them at most */
	bool no_file_names;	/* of generated code */
	enum mlk_stack_mode stack_mode;
	enum elf_image_embed embed;
	int zstd_level;
	uint64_t max_size; /* of the trace, bytes; 0: no limit */
	struct allocator_opts allocators;
	enum record_backend backend;
	uint64_t block_ns; /* preload: how long a full ring may hold a thread up; 0: not at all */
	bool on_full;	   /* that was given */
	bool guard;	   /* preload: blocks have guard bytes, and overruns are reported */
	bool force;	   /* on a kernel that mleak was not proven on, too */
	bool reach;	   /* the pointers in memory are recorded, at the end, */
	uint64_t reach_ns; /* and each time after this; 0: not before the end */
	bool reach_spare;  /* less often, if that takes long */
	bool reach_stop;   /* the process is stopped meanwhile */
	uint64_t passes;   /* through the memory, for each time; 0: as usual */
	bool dry_run;	   /* show what would be probed, and end */
	bool follow;	   /* record children, too */
	bool kernel;	   /* the kernel's memory is recorded, and no process's */
	struct kernel_opts of_kernel;
	const char *kernel_option; /* the first option given that is for the kernel alone */
	bool help;
};

/* Parse @argv.  Returns 0, or -EINVAL after one sentence was logged. */
int record_options_parse(struct record_opts *o, int argc, char **argv);

/* The option given that only probes can obey, not the preloaded library; NULL: there is none. */
const char *record_options_for_probes(const struct record_opts *o);

/* Do the options make sense together?  Returns 0, or -EINVAL after one sentence was logged. */
int record_options_check(const struct record_opts *o);

/* Print what --help says of mleak record. */
void record_options_help(void);

#endif
