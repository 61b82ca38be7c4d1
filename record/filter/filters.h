/* filters.h - which allocations are recorded: what the user asks for, on its way into the kernel */
#ifndef RECORD_FILTERS_H
#define RECORD_FILTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmdline/options.h"
#include "format/trace.h"
#include "record/filter/choice.h"
#include "record/libpreload/ring.h"

struct mleak_bpf;

#define FILTERS_MAX_TIDS 64
#define FILTERS_MAX_MEAN (1ull << 30) /* of --sample, allocations or bytes */

/* All zero: everything is recorded. */
struct filter_opts {
	uint64_t min_size, max_size; /* of a block, bytes, both included; 0: no limit */
	uint64_t sample_every;	     /* one of so many allocations; 0: not so */
	uint64_t sample_bytes;	     /* mean bytes from one sample to the next; 0: not so */
	/* Outstanding bytes from which on is recorded: a thread, a process, what all calls allocate
	 * that return to one address; 0: none */
	uint64_t trigger_bytes, trigger_process, trigger_site;
	uint64_t delay_ns;
	/* What is recorded may be chosen later; till then all is, or nothing is but by the rest. */
	enum filter_choose { CHOOSE_NOTHING, CHOOSE_RECORDED, CHOOSE_COUNTED } choose;
	uint32_t tids[FILTERS_MAX_TIDS]; /* threads to be recorded, others are not */
	size_t nr_tids;
};

/* The options of the command line by which filters are given: -z, -Z, -s, -D and these. */
enum filter_key { FILTER_TID = 512, FILTER_TRIGGER, FILTER_CHOOSE };

/* Read @text, the value of a --trigger, as 10M, process:10M or site:10M.  Returns 0 or -EINVAL. */
int filters_read_trigger(const char *text, enum choice_trigger *trigger, uint64_t *bytes);

/* Apply @option, one of these, with its value @text.  Returns 0, or -EINVAL after one sentence was
 * logged. */
int filters_parse(struct filter_opts *f, const struct option_info *option, const char *text);

/* Can a preloaded library leave out what is requested? Returns 0, or -EINVAL after one sentence was
 * logged if @say. */
int filters_check_preload(const struct filter_opts *f, bool say);

/* What a preloaded library leaves out, into @set, all zero except for the time of the beginning. */
void filters_set_preload(const struct filter_opts *f, struct preload_filter *set);

/* From when on a preloaded library records what it only counts at first. */
struct preload_triggers filters_preload_triggers(const struct filter_opts *f);

/* Do they make sense together, for the @nr processes @pids (none: a command is to be started)?
 * Returns 0, or -EINVAL after one sentence was logged. */
int filters_check(const struct filter_opts *f, const pid_t *pids, size_t nr);

/* Is anything left out? */
bool filters_any(const struct filter_opts *f);

/* Are threads recorded or only counted? */
bool filters_by_thread(const struct filter_opts *f);

/* Say in @meta what is left out. */
void filters_describe(const struct filter_opts *f, struct mlk_meta *meta);

/* The constants of the programs in @skel, which is open and not yet loaded.  Returns 0 or -errno.
 */
int filters_configure(const struct filter_opts *f, struct mleak_bpf *skel);

/* Name the threads to be recorded to @skel, which is loaded.  Returns 0 or -errno. */
int filters_name_threads(const struct filter_opts *f, struct mleak_bpf *skel);

/* The recording begins now: so does the delay. */
void filters_begin(const struct filter_opts *f, struct mleak_bpf *skel);

/* Add to @losses what was left out so far; what cannot be read counts as nothing. */
void filters_count(const struct mleak_bpf *skel, struct mlk_losses *losses);

/*
 * The chances, in 2^-32, of each of the @nr binary digits of a number to be 1 that is geometrically
 * distributed: the number of units before one that is sampled, if a unit is sampled with the chance
 * 1 - exp(-1 / @mean).
 */
void filters_digits(double mean, uint32_t *digits, size_t nr);

/* The mean for which one of @every units is sampled. */
double filters_mean_of(uint64_t every);

struct mleak_bpf;

/* The filters' tables in the kernel without what belongs to processes and threads that have ended,
 * or to a program that its process does not run any more. */

#define FILTERS_SWEEP_TABLES 7

/* How far it has come; all zero: not begun. */
struct filters_sweep {
	int table;
	bool inside; /* that table, from where @at says on */
	uint64_t at;
};

/* Look through a part of the tables of @skel, as much as takes some ten milliseconds.  Returns
 * whether there is more to do: then it is to be called again. */
bool filters_sweep(const struct mleak_bpf *skel, struct filters_sweep *sweep);

#endif
