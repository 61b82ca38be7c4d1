/* options.h - the command line of mleak record */
#ifndef RECORD_OPTIONS_H
#define RECORD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/allocator.h"
#include "record/filters.h"
#include "record/module.h"
#include "record/probes.h"

struct record_opts {
	pid_t pid;   /* 0: a command is started */
	char **argv; /* the command, NULL-terminated; NULL: pid */
	const char *output;
	uint64_t duration_ns; /* from the end of the delay on; 0: no limit */
	struct filter_opts filters;
	uint32_t stack_limit; /* bytes */
	enum probe_link link;
	enum mlk_stack_mode stack_mode;
	enum module_embed embed;
	int zstd_level;
	uint64_t max_size; /* of the trace, bytes; 0: no limit */
	struct allocator_opts allocators;
	bool dry_run; /* show what would be probed, and end */
	bool help;
};

/* Parse @argv.  Returns 0, or -EINVAL after one sentence was logged. */
int record_options_parse(struct record_opts *o, int argc, char **argv);

void record_options_help(void);

#endif
