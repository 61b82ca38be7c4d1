/* replay_layout.c - the first pass over a trace: see replay.h */
#include "report/replay/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is read, and so checked, by the second pass. */
#define EVENTS (MLK_RECORD_EVENT | MLK_RECORD_STACK | MLK_RECORD_UNWOUND)

static void keep_larger(uint64_t *all, uint64_t pass)
{
	if (pass > *all)
		*all = pass;
}

void condition_merge(struct mlk_condition *all, const struct mlk_condition *pass)
{
	uint64_t damaged;

	keep_larger(&all->chunks, pass->chunks);
	/* each pass reads other chunks than those before it */
	damaged = all->chunks_lost - all->lost_always + pass->chunks_lost - pass->lost_always;
	keep_larger(&all->lost_always, pass->lost_always);
	all->chunks_lost = all->lost_always + damaged;
	if (pass->lost_to_ns && (!all->lost_to_ns || pass->lost_from_ns < all->lost_from_ns))
		all->lost_from_ns = pass->lost_from_ns;
	keep_larger(&all->lost_to_ns, pass->lost_to_ns);
	keep_larger(&all->bytes_skipped, pass->bytes_skipped);
	keep_larger(&all->chunks_unknown, pass->chunks_unknown);
	keep_larger(&all->unwound_unused, pass->unwound_unused);
	all->index_lied |= pass->index_lied;
	keep_larger(&all->end_ns, pass->end_ns);
	keep_larger(&all->last_ns, pass->last_ns);
	for (int kind = 0; kind < MLK_LOSS_NR; kind++)
		keep_larger(&all->losses.count[kind], pass->losses.count[kind]);
	keep_larger(&all->losses.nr_kinds, pass->losses.nr_kinds);
	for (int kind = 0; kind < MLK_SKIP_NR; kind++) {
		keep_larger(&all->losses.skipped[kind], pass->losses.skipped[kind]);
		keep_larger(&all->losses.skipped_bytes[kind], pass->losses.skipped_bytes[kind]);
	}
	if (pass->ended) {
		all->ended = true;
		all->reason = pass->reason;
		all->end_ns = pass->end_ns;
	}
}

/* The main thread's name serves when the trace does not tell the process's. */
static int note_thread(struct replay *leaks, const struct mlk_thread *thread)
{
	int err = processes_note(leaks->processes, thread);

	if (!err)
		err = thread_names_note(leaks->threads, thread->tgid, thread->tid, thread->name);

	if (err)
		return err;
	if (leaks->comm || thread->tid != mlk_reader_meta(leaks->trace)->tgid || !thread->name[0])
		return 0;
	leaks->comm = strdup(thread->name);
	return leaks->comm ? 0 : -ENOMEM;
}

int replay_note_layout(struct replay *leaks, const struct mlk_record *record)
{
	switch (record->type) {
	case MLK_RECORD_MAPS:
		return address_spaces_add(leaks->spaces, &record->maps, leaks->images);
	case MLK_RECORD_CODE_NAMES:
		return address_spaces_add_names(leaks->spaces, &record->code_names, leaks->images);
	case MLK_RECORD_MODULE:
		return trace_modules_add_piece(leaks->images, &record->module);
	case MLK_RECORD_THREAD:
		return note_thread(leaks, &record->thread);
	case MLK_RECORD_ORIGIN:
		return origins_note(&leaks->origins, &record->origin);
	case MLK_RECORD_MEMORY:
		return memory_samples_note(&leaks->memory, &record->memory);
	case MLK_RECORD_MARK:
		return trace_marks_note(&leaks->marks, &record->mark);
	case MLK_RECORD_ACCOUNT:
		return leaks->accounts ? thread_accounts_count(leaks->accounts, &record->account)
				       : 0;
	case MLK_RECORD_LOSSES:
		suspect_blocks_read(&leaks->suspect, &record->losses);
		return 0;
	case MLK_RECORD_CODE:
		return interpreted_note_code(&leaks->images->interpreted, &record->code);
	case MLK_RECORD_INTERPRETER:
		return interpreted_note(&leaks->images->interpreted, &record->interpreter);
	case MLK_RECORD_OVERRUN:
		return overruns_note(leaks->overruns, &record->overrun);
	case MLK_RECORD_CHUNK:
		cache_trace_note(&leaks->chunks, &record->chunk);
		return 0;
	default:
		return 0;
	}
}

static int read_records(struct replay *leaks)
{
	const unsigned int types = MLK_RECORD_MAPS | MLK_RECORD_MODULE | MLK_RECORD_THREAD |
				   MLK_RECORD_LOSSES | MLK_RECORD_OVERRUN | MLK_RECORD_ORIGIN |
				   (leaks->accounts ? MLK_RECORD_ACCOUNT : 0) | MLK_RECORD_MEMORY |
				   MLK_RECORD_MARK | MLK_RECORD_CODE_NAMES | MLK_RECORD_CODE |
				   MLK_RECORD_INTERPRETER | MLK_RECORD_CHUNK;
	struct mlk_record record;
	int more, err;

	mlk_reader_rewind(leaks->trace, types);
	mlk_reader_check_others(leaks->trace, EVENTS);
	while ((more = mlk_reader_next(leaks->trace, &record)) > 0) {
		err = replay_note_layout(leaks, &record);
		if (err)
			return err;
	}
	condition_merge(&leaks->condition, mlk_reader_condition(leaks->trace));
	return more;
}

static int find_comm(struct replay *leaks)
{
	const struct mlk_meta *meta = mlk_reader_meta(leaks->trace);
	const char *slash = strrchr(meta->exe, '/');
	const char *exe = slash ? slash + 1 : meta->exe;

	if (leaks->comm && !meta->comm[0])
		return 0;
	free(leaks->comm);
	leaks->comm = strdup(meta->comm[0] ? meta->comm : exe[0] ? exe : "process");
	return leaks->comm ? 0 : -ENOMEM;
}

static int find_missing(struct replay *leaks)
{
	size_t nr = leaks->images->nr;

	leaks->missing = calloc(nr ? nr : 1, sizeof(*leaks->missing));
	if (!leaks->missing)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		if (address_spaces_use(leaks->spaces, (uint32_t)i) &&
		    leaks->images->all[i].module == DWUNW_NO_MODULE)
			leaks->missing[leaks->nr_missing++] = leaks->images->all[i].path;
	return 0;
}

int replay_use_layout(struct replay *leaks)
{
	int err;

	leaks->images->began_ns = mlk_reader_meta(leaks->trace)->realtime_ns;
	err = trace_modules_load(leaks->images, leaks->dw);
	return err ? err : address_spaces_prepare(leaks->spaces, leaks->images, leaks->dw);
}

int replay_read_layout(struct replay *leaks)
{
	int err = read_records(leaks);

	if (!err)
		err = replay_use_layout(leaks);
	if (!err)
		err = find_comm(leaks);
	return err ? err : find_missing(leaks);
}
