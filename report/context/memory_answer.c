/* memory_answer.c - see memory_answer.h */
#include "report/context/memory_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/context/sampling_text.h"

/* Less is noise: libraries are loaded, and an allocator keeps some of what was freed. */
#define LEAST_BYTES  (16u << 20)
#define TIMES	     2 /* so much more than was ever outstanding */
#define SURE	     4 /* standard errors of a sample */
#define ELSEWHERE    "not the recorded blocks: stacks, mappings, older blocks, or another allocator"
#define IS_NO_MALLOC "it is not malloc"
#define MAY_BE_RINGS                                                                             \
	IS_NO_MALLOC "; mleak's own rings are a part of it: 'record --ring-size 64K' has small " \
		     "ones"

/* Do the totals have all allocations? */
static bool is_complete(const struct report_data *export)
{
	const struct block_filter *choice = export->choice;
	const struct mlk_condition *condition = &export->leaks->condition;
	const struct mlk_meta *meta = export->meta;

	return !choice->thread && !choice->older_ns && !choice->from_ns &&
	       !export->leaks->chosen.only && !meta->of_kernel && !meta->min_size &&
	       !meta->max_size && !meta->trigger_bytes &&
	       !condition->losses.skipped[MLK_SKIPPED_DELAY] &&
	       !condition->losses.skipped[MLK_SKIPPED_TRIGGER] && !condition->chunks_lost &&
	       !replay_lost(export->leaks);
}

/* The samples of the one process that the totals are of; NULL: they are of several. */
static const struct memory_process *the_process(const struct replay *leaks)
{
	if (leaks->chosen.pid)
		return memory_samples_find(&leaks->memory, leaks->chosen.pid);
	return leaks->memory.nr == 1 && live_nr_processes(leaks->live) <= 1 ? leaks->memory.all
									    : NULL;
}

/* The first sample that has RSS, and the last up to @end_ns. */
static bool find_ends(const struct memory_process *process, uint64_t end_ns,
		      const struct mlk_memory **first, const struct mlk_memory **last)
{
	*first = *last = NULL;
	for (size_t i = 0; i < process->nr && process->all[i].time_ns <= end_ns; i++) {
		if (!(process->all[i].known >> MLK_MEMORY_RSS & 1))
			continue;
		if (!*first)
			*first = &process->all[i];
		*last = &process->all[i];
	}
	return *first && *first != *last;
}

static double grown(const struct mlk_memory *first, const struct mlk_memory *last,
		    enum mlk_memory_value value)
{
	return (double)last->value[value] - (double)first->value[value];
}

/* @value in whole bytes: a trace may tell more than there are. */
static uint64_t whole_bytes(double value)
{
	return value >= 0x1p64 ? UINT64_MAX : value > 0 ? (uint64_t)value : 0;
}

/* The part of RSS that grew most. */
static enum mlk_memory_value what_grew(const struct mlk_memory *first,
				       const struct mlk_memory *last)
{
	static const enum mlk_memory_value parts[] = {MLK_MEMORY_FILE, MLK_MEMORY_SHMEM};
	enum mlk_memory_value most = MLK_MEMORY_ANON;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (grown(first, last, parts[i]) > grown(first, last, most))
			most = parts[i];
	return most;
}

/* The library and injected code write events into memory that the recorder shares. */
static bool has_rings(const struct mlk_meta *meta)
{
	return !strcmp(meta->backend, "preload") || !strcmp(meta->backend, "inject");
}

static const char *why(enum mlk_memory_value part, const struct mlk_meta *meta)
{
	if (part == MLK_MEMORY_ANON)
		return ELSEWHERE;
	return part == MLK_MEMORY_SHMEM && has_rings(meta) ? MAY_BE_RINGS : IS_NO_MALLOC;
}

int memory_answer(struct memory_answer *answer, const struct report_data *export)
{
	const struct replay *leaks = export->leaks;
	const struct memory_process *process = the_process(leaks);
	const struct mlk_memory *first, *last;
	enum mlk_memory_value part;
	char more[SIZE_TEXT_MAX], most[SIZE_TEXT_MAX];
	double bytes, blocks;

	*answer = (struct memory_answer){NULL, NULL};
	if (!process || !is_complete(export) ||
	    !find_ends(process, leaks->chosen.end_ns, &first, &last))
		return 0;
	bytes = grown(first, last, MLK_MEMORY_RSS);
	blocks = (double)leaks->figures->peak.bytes +
		 SURE * (double)print_sampling_error(leaks->error.bytes);
	if (bytes < LEAST_BYTES || bytes < TIMES * blocks)
		return 0;
	part = what_grew(first, last);
	if (asprintf(&answer->what, "grew by %s, most of it %s; at most %s were outstanding",
		     size_text(more, whole_bytes(bytes)), mlk_memory_text(part),
		     size_text(most, whole_bytes(blocks))) < 0) {
		answer->what = NULL;
		return -ENOMEM;
	}
	answer->why = why(part, export->meta);
	return 0;
}

int print_memory_answer(FILE *out, const struct report_data *export)
{
	struct memory_answer answer;
	int err = memory_answer(&answer, export);

	if (answer.what)
		fprintf(out, "  RSS            %s:\n    %s\n", answer.what, answer.why);
	free(answer.what);
	return err;
}
