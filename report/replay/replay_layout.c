/* replay_layout.c - the first pass over a trace: see leaks_state.h */
#include "report/replay/leaks_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/trace/condition.h"

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

static int note_layout(struct replay *leaks, const struct mlk_record *record)
{
	switch (record->type) {
	case MLK_RECORD_MAPS:
		return address_spaces_add(leaks->spaces, &record->maps, leaks->images);
	case MLK_RECORD_MODULE:
		return trace_modules_add_piece(leaks->images, &record->module);
	case MLK_RECORD_THREAD:
		return note_thread(leaks, &record->thread);
	case MLK_RECORD_LOSSES:
		suspect_blocks_read(&leaks->suspect, &record->losses);
		return 0;
	case MLK_RECORD_OVERRUN:
		return overruns_note(leaks->overruns, &record->overrun);
	default:
		return 0;
	}
}

static int read_records(struct replay *leaks)
{
	const unsigned int types = MLK_RECORD_MAPS | MLK_RECORD_MODULE | MLK_RECORD_THREAD |
				   MLK_RECORD_LOSSES | MLK_RECORD_OVERRUN;
	struct mlk_record record;
	int more, err;

	mlk_reader_rewind(leaks->trace, types);
	while ((more = mlk_reader_next(leaks->trace, &record)) > 0) {
		err = note_layout(leaks, &record);
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
	size_t nr = trace_modules_nr(leaks->images);

	leaks->missing = calloc(nr ? nr : 1, sizeof(*leaks->missing));
	if (!leaks->missing)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		if (address_spaces_use(leaks->spaces, (uint32_t)i) &&
		    trace_modules_module(leaks->images, (uint32_t)i) == DWUNW_NO_MODULE)
			leaks->missing[leaks->nr_missing++] =
				trace_modules_path(leaks->images, (uint32_t)i);
	return 0;
}

int leaks_read_layout(struct replay *leaks)
{
	int err = read_records(leaks);

	if (!err)
		err = trace_modules_load(leaks->images, leaks->dw);
	if (!err)
		err = address_spaces_prepare(leaks->spaces, leaks->images, leaks->dw);
	if (!err)
		err = find_comm(leaks);
	return err ? err : find_missing(leaks);
}
