/* children.c - processes that are forked by those recorded
 *
 * A child has its parent's program, and so its allocator at the same addresses: its probes need no
 * search.  It is stopped while they are attached, so that nothing it does is missed from then on.
 */
#include "record/session/session.h"

#include <errno.h>
#include <inttypes.h>

#include "array.h"
#include "record/base/clock.h"
#include "record/base/proc.h"
#include "record/ptrace/seize.h"

#define TRACER_NS 200000000u /* the tracer is given so long to hold a child by itself */

/* Has @pid, forked at @time_ns, ended, and began before the recording did?  It is none of it. */
static bool was_before(const struct session *s, pid_t pid, uint64_t time_ns)
{
	struct target t = {.pid = pid, .task = pid, .pidfd = -1};
	bool ended;

	if (time_ns >= s->placing_ns)
		return false;
	t.pidfd = proc_pidfd(pid);
	ended = target_has_ended(&t);
	target_release(&t);
	return ended;
}

/* A process with number @pid, forked by @parent at @time_ns.  NULL: no memory. */
static struct process *add_child(struct session *s, struct process *parent, pid_t pid,
				 uint64_t time_ns)
{
	struct process *p = session_append(s);

	if (!p)
		return NULL;
	p->target = parent->target;
	p->target.pid = p->target.task = pid;
	p->target.pidfd = proc_pidfd(pid);
	p->target.started = false;
	p->parent = parent->target.pid;
	p->traced = parent->traced && time_ns >= parent->traced_ns;
	p->refused = parent->refused;
	p->deaf = parent->deaf;
	p->heard_by = parent->heard_by;
	p->born_ns = time_ns;
	s->children++;
	trace_out_fail(&s->out, allocators_copy(&p->allocators, &parent->allocators));
	/* Its parent may have begun another program that is not examined yet.  If that is never
	 * possible, it is the parent's loss. */
	p->exec.since_ns = parent->exec.since_ns;
	p->exec.seen = p->exec.since_ns != 0;
	return p;
}

void children_missed(struct session *s, const struct process *p)
{
	s->children--;
	/* What ended before its parent was recorded is no loss. */
	if (p->born_ns >= s->placing_ns)
		session_note_missed(s, p, "ended before its probes were attached");
}

/* Put the probes in.  Returns false if they are not: of one that has ended meanwhile nothing is to
 * be seen any more. */
static bool probe(struct session *s, struct process *p)
{
	int err = p->refused ? -EACCES
			     : probes_place(s->probes, &p->links, &p->target, &p->allocators);

	p->probed = true;
	if (!err)
		return true;
	if (!p->refused && err != -E2BIG && target_is_ending(&p->target)) {
		children_missed(s, p);
		return false;
	}
	s->children--;
	if (err == -E2BIG) {
		if (!s->table_full_told)
			probes_explain(&p->target, err, false);
		s->table_full_told = true;
		return false; /* the programs, which had no room for it at its fork, have counted it
			       */
	}
	if (!p->refused && !unrecorded_is_full(&s->missed)) {
		probes_explain(&p->target, err, !probes_are_multi(s->probes));
		unrecorded_reported(&s->missed);
	}
	session_note_missed(s, p,
			    p->refused ? "is the child of a process that mleak may not watch"
				       : "could not be probed because the kernel refused");
	return false;
}

/* Nothing stops @p at its start: stop it ourselves, if that can be.  What it did until then is
 * missing, unless the recording was yet to begin: the trace has to tell, too. */
static void catch (struct session *s, struct process *p)
{
	bool held = !stop_begin(&p->hold, p->target.pid, p->target.helper);

	if (probe(s, p)) {
		session_note_gap(s, clock_now_ns() - p->born_ns);
		if (p->born_ns >= s->placing_ns)
			session_note_missed(s, p,
					    "began before its probes were attached, and is "
					    "recorded only from then on");
	}
	if (held)
		stop_end(&p->hold, p->target.pid);
}

/* A number that the kernel tells of process @pid: its field @number of proc_pid_stat(5). */
static long number_of(pid_t pid, int number)
{
	char text[512];

	return strtol(proc_stat(text, sizeof(text), pid, pid, number), NULL, 10);
}

/* The parent of process @pid; 0: it has none here, or has ended. */
static pid_t parent_of(pid_t pid)
{
	return (pid_t)number_of(pid, 4);
}

/* Has @pid ended, and only its parent was not told yet? Its first thread may end before others. */
static bool is_zombie(pid_t pid)
{
	char text[512];

	return *proc_stat(text, sizeof(text), pid, pid, 3) == 'Z' && number_of(pid, 20) < 2;
}

/* Is @pid this process, or one that it is a descendant of, such as sudo? */
static bool is_ours(pid_t pid)
{
	for (pid_t at = getpid(); at > 0; at = parent_of(at))
		if (at == pid)
			return true;
	return false;
}

/* Is @pid a descendant of a process that is recorded, and not of this one? */
static bool descends(struct session *s, pid_t pid)
{
	while ((pid = parent_of(pid)) > 0 && pid != getpid())
		if (session_find(s, pid))
			return true;
	return false;
}

/* The name of process @pid. */
static void read_name(char *name, size_t size, pid_t pid)
{
	proc_read(name, size, "/proc/%d/comm", (int)pid);
	name[strcspn(name, "\n")] = '\0';
}

void children_note_running(struct session *s)
{
	DIR *proc = s->follow && !s->command ? opendir("/proc") : NULL;
	struct dirent *entry;

	while (proc && (entry = readdir(proc)) != NULL) {
		struct running_child child = {.pid = (pid_t)strtol(entry->d_name, NULL, 10)};

		if (child.pid <= 0 || session_find(s, child.pid) || !descends(s, child.pid) ||
		    is_ours(child.pid) || is_zombie(child.pid))
			continue;
		read_name(child.name, sizeof(child.name), child.pid);
		if (grow_array(&s->ran.v, s->ran.nr, &s->ran.room, sizeof(child)))
			s->running++; /* it is counted all the same */
		else
			s->ran.v[s->ran.nr++] = child;
	}
	if (proc)
		closedir(proc);
}

void children_tell_running(struct session *s)
{
	const struct running_child unknown = {0}, *first = &unknown;

	/* What was forked since the notices are listened to is among them. */
	session_read_sideband(s);
	for (size_t i = 0; i < s->ran.nr; i++) {
		if (session_newest(s, s->ran.v[i].pid))
			continue;
		if (first == &unknown)
			first = &s->ran.v[i];
		s->running++;
	}
	if (s->running == 1)
		log_warn("the child process %s (pid %d) runs already and is not recorded: --follow "
			 "records those that are started from now on; name it with -p, too",
			 first->name, (int)first->pid);
	else if (s->running)
		log_warn("%" PRIu64 " child processes, such as %s (pid %d), run already and are "
			 "not recorded: --follow records those that are started from now on; name "
			 "them with -p, too",
			 s->running, first->name, (int)first->pid);
}

void children_on_fork(struct session *s, const struct sideband_fork *fork)
{
	struct process *parent = session_newest(s, fork->parent_pid), *p;

	if (!parent)
		return;
	if (fork->pid == fork->parent_pid) {
		trace_out_fail(&s->out, threads_inherit(&parent->threads, (uint32_t)fork->tid,
							&parent->threads, &parent->target,
							(uint32_t)fork->parent_tid));
		return;
	}
	if (!s->follow) {
		s->children++;
		return;
	}
	p = session_newest(s, fork->pid);
	if (p && !p->exited && p->born_ns >= fork->time_ns)
		return; /* the ring reported it first */
	if (was_before(s, fork->pid, fork->time_ns))
		return;
	p = add_child(s, parent, fork->pid, fork->time_ns);
	if (!p)
		return;
	process_inherit(p, &s->out, parent, (uint32_t)fork->parent_tid);
	if (!p->traced)
		catch (s, p);
}

/* The process that @pid is now.  Those that had the number before have ended, even if the ring did
 * not tell. */
static struct process *find_new(struct session *s, pid_t pid)
{
	struct process *newest = session_newest(s, pid);

	for (size_t i = 0; i < s->nr; i++)
		if (s->all[i]->target.pid == pid && s->all[i]->announced)
			s->all[i]->exited = true;
	return newest && !newest->exited ? newest : NULL;
}

void children_announce(struct session *s, pid_t parent, pid_t pid)
{
	struct process *p, *from;

	if (!s->follow)
		return;
	p = find_new(s, pid);
	if (!p) {
		session_read_sideband(s);
		p = find_new(s, pid);
	}
	/* One that the notices did not report. */
	from = session_find(s, parent);
	if (!p && from) {
		p = add_child(s, from, pid, s->time_ns);
		if (!p)
			return;
		process_snapshot(p, &s->out, s->time_ns);
		if (!p->traced)
			catch (s, p);
	}
	if (!p)
		return;
	p->announced = true;
	write_life(s, MLK_FORK, pid, parent);
}

void children_held(struct session *s, pid_t pid)
{
	struct process *p;

	/* The notice of its birth came before it could be stopped. */
	session_read_sideband(s);
	p = session_newest(s, pid);
	/* If it was lost: the ring reports it, too. */
	if (!p || p->exited) {
		session_drain_for(s, TRACER_NS);
		p = session_newest(s, pid);
	}
	if (p && !p->probed)
		probe(s, p);
}

void children_look(struct session *s)
{
	/* Those stopped since the probes of their parents were attached have waited for that. */
	uint64_t now_ns = clock_now_ns(), ready_ns = s->placing_ns + s->attach_ns;

	for (size_t i = 0; i < s->nr; i++) {
		struct process *p = s->all[i];
		uint64_t since_ns = p->born_ns > ready_ns ? p->born_ns : ready_ns;

		stop_end(&p->hold, p->target.pid);
		if (p->probed || p->ended || !p->parent || now_ns - since_ns < TRACER_NS)
			continue;
		catch (s, p);
	}
}
