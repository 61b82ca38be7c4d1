/* session.c - the processes of a recording, from the first to the last */
#include "record/session/session.h"
#include "record/preload/preload_choices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "mleak.h"
#include "record/golang/go_stack.h"
#include "record/inject/inject.h"

struct process *session_find(struct session *s, pid_t pid)
{
	if (s->last && s->last->target.pid == pid && !s->last->exited)
		return s->last;
	for (size_t i = 0; i < s->nr; i++)
		if (s->all[i]->target.pid == pid && !s->all[i]->exited)
			return s->last = s->all[i];
	return NULL;
}

struct process *session_newest(struct session *s, pid_t pid)
{
	for (size_t i = s->nr; i-- > 0;)
		if (s->all[i]->target.pid == pid)
			return s->all[i];
	return NULL;
}

struct process *session_append(struct session *s)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p || grow_array(&s->all, s->nr, &s->room, sizeof(struct process *))) {
		free(p);
		trace_out_fail(&s->out, -ENOMEM);
		return NULL;
	}
	p->target.pidfd = -1;
	p->threads.all = s->names_threads;
	p->target.helper = s->helper;
	s->all[s->nr++] = p;
	return p;
}

static void add_name(struct session *s, const struct target *t)
{
	size_t len = strlen(s->named);

	snprintf(s->named + len, sizeof(s->named) - len, "%s%s (pid %d)", len ? ", " : "", t->comm,
		 (int)t->pid);
	s->nr_named++;
}

/* The last of the list, which was only tried, is none of it. */
static void drop_last(struct session *s)
{
	struct process *p = s->all[--s->nr];

	process_release(p);
	free(p);
}

/* As session_add_pid().  If it is @dispensable and has gone, that is no failure: it is not added.
 */
static int add_pid(struct session *s, pid_t pid, bool dispensable)
{
	struct process *p;
	int err;

	if (session_newest(s, pid))
		return 0;
	p = session_append(s);
	if (!p) {
		log_error("cannot watch process %d: %s", (int)pid, strerror(ENOMEM));
		return -ENOMEM;
	}
	p->target.unprobed = s->looks;
	p->target.dispensable = dispensable;
	err = target_open(&p->target, pid);
	if (p->target.gone) {
		drop_last(s);
		return 0;
	}
	if (!s->pid) {
		s->pid = pid;
		memcpy(s->comm, p->target.comm, sizeof(s->comm));
	}
	if (!err)
		add_name(s, &p->target);
	return err;
}

int session_add_pid(struct session *s, pid_t pid)
{
	return add_pid(s, pid, false);
}

int session_add_pids(struct session *s, const pid_t *pids, size_t nr)
{
	int err = 0;

	for (size_t i = 0; !err && i < nr; i++)
		err = add_pid(s, pids[i], nr > 1);
	if (err || s->nr)
		return err;
	log_error("none of the processes is there: 'ps -e' lists those that are");
	return -ESRCH;
}

void session_set_helper(struct session *s, struct helper *helper)
{
	s->helper = helper;
	for (size_t i = 0; i < s->nr; i++)
		s->all[i]->target.helper = helper; /* and their children have it from them */
}

void session_note_gap(struct session *s, uint64_t gap_ns)
{
	s->gaps.nr++;
	if (gap_ns > s->gaps.longest_ns)
		s->gaps.longest_ns = gap_ns;
}

void session_drop_probes(struct session *s, struct process *p)
{
	probes_drop(s->probes, &p->links);
	probes_drop(s->probes, &p->leader.keepers);
}

void session_end_process(struct session *s, struct process *p)
{
	p->ended = true;
	s->forgets = true;
	if (s->probes)
		session_drop_probes(s, p);
}

bool session_has_others(const struct session *s, const struct process *p)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->all[i] != p && !s->all[i]->ended)
			return true;
	return false;
}

bool session_is_urgent(const struct session *s)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->all[i]->exec.since_ns || s->all[i]->hold.seized ||
		    (s->all[i]->parent && !s->all[i]->probed))
			return true;
	return false;
}

void session_record_all_threads(struct session *s)
{
	if (s->probes)
		probes_all_threads(s->probes);
	else if (s->preload)
		preload_record_all(s->preload);
}

void session_write_accounts(struct session *s, bool last)
{
	if (s->out.err)
		return;
	if (s->probes)
		trace_out_fail(&s->out, probes_write_accounts(s->probes, s->out.writer, last));
	else if (s->preload)
		trace_out_fail(&s->out, preload_accounts_write(preload_accounts(s->preload),
							       s->out.writer, last));
}

void session_release(struct session *s)
{
	session_reach_close(s);
	if (s->inject)
		session_stop_inject(s); /* it could not begin */
	for (size_t i = 0; i < s->nr; i++) {
		if (s->probes)
			session_drop_probes(s, s->all[i]);
		process_release(s->all[i]);
		free(s->all[i]);
	}
	free(s->all);
	free(s->loaded.v);
	free(s->ran.v);
	probes_free(s->probes);
	preload_free(s->preload);
	go_stacks_free(s->go_stacks);
	sideband_free(s->sideband);
	mlk_writer_free(s->out.writer);
	module_table_release(&s->out.modules);
	code_ranges_release(&s->code);
	tally_release(&s->tally);
	code_table_release(&s->codes);
	memory_walker_free(s->memory.walker);
}
