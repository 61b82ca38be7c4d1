/* ctl_answer.c - see ctl_answer.h */
#include "record/ctl_answer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "record/base/clock.h"
#include "record/base/proc.h"
#include "record/control/request.h"
#include "record/control/server.h"

#define MOST_SHOWN 16	/* processes in a status */
#define MOST_PIDS  1000 /* in the answer to "pids": each has up to seven digits */

/* An answer that grows, and is cut where there is no more room. */
struct text {
	char *at;
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...)
{
	size_t room = CONTROL_MAX_ANSWER - t->len;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->at + t->len, room, format, args);
	va_end(args);
	t->len += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

/* Of process @pid; 0: it is not known. */
static uint64_t count_threads(pid_t pid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return stat(path, &st) || st.st_nlink < 2 ? 0 : st.st_nlink - 2;
}

static bool is_recorded(const struct session *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->all[i]->target.pid == pid && !s->all[i]->ended)
			return true;
	return false;
}

/* The process of thread @tid; 0: there is none. */
static pid_t process_of(pid_t tid)
{
	char text[512];
	const char *at;
	int pid = 0;

	proc_read(text, sizeof(text), "/proc/%d/status", (int)tid);
	at = strstr(text, "\nTgid:");
	return at && sscanf(at + 6, "%d", &pid) == 1 ? (pid_t)pid : 0;
}

static uint64_t put_processes(const struct session *s, struct text *t)
{
	uint64_t threads = 0, nr = 0;

	for (size_t i = 0; i < s->nr; i++) {
		const struct target *of = &s->all[i]->target;
		uint64_t of_it;

		if (s->all[i]->ended)
			continue;
		of_it = count_threads(of->pid);
		threads += of_it;
		if (nr++ < MOST_SHOWN)
			put(t, "%-12s %d %s, %" PRIu64 " thread%s\n", "process", (int)of->pid,
			    of->comm, of_it, of_it == 1 ? "" : "s");
	}
	if (nr > MOST_SHOWN)
		put(t, "%-12s and %" PRIu64 " more\n", "process", nr - MOST_SHOWN);
	return threads;
}

/* What is recorded of all that could be. */
static void put_choices(const struct session *s, uint64_t threads, struct text *t)
{
	static const char *const kinds[TRIGGER_NR] = {"thread", "process", "site"};
	struct choice_counts c;
	char name[CHOICE_NAME];

	session_count_choices(s, &c);
	if (!c.can_choose) {
		put(t, "%-12s all of %" PRIu64 " thread%s\n", "recorded", threads,
		    threads == 1 ? "" : "s");
		return;
	}
	put(t, "%-12s is %s\n", "not chosen", c.all ? "recorded" : "counted");
	put(t, "%-12s %" PRIu64 " of %" PRIu64 " recorded by choice or a trigger\n", "threads",
	    c.threads, threads);
	if (c.processes || c.sites)
		put(t, "%-12s %" PRIu64 " processes, %" PRIu64 " sites\n", "chosen", c.processes,
		    c.sites);
	for (size_t i = 0; i < c.nr_listed; i++) {
		session_site_name(s, &c.listed[i], name);
		put(t, "%-12s %s of process %d is %s\n", "site", name, (int)c.listed[i].pid,
		    c.listed[i].recorded ? "recorded" : "counted");
	}
	if (c.sites > c.nr_listed)
		put(t, "%-12s and %" PRIu64 " more\n", "site", c.sites - c.nr_listed);
	for (int i = 0; i < TRIGGER_NR; i++)
		if (c.trigger[i] != TRIGGER_NEVER)
			put(t, "%-12s %s:%" PRIu64 "\n", "trigger", kinds[i], c.trigger[i]);
}

static void put_losses(const struct session *s, struct text *t)
{
	struct mlk_losses losses;
	uint64_t lost = 0;

	session_losses(s, &losses);
	for (int i = 0; i < MLK_LOSS_NR; i++)
		lost += losses.count[i];
	put(t, "%-12s %" PRIu64 "\n", "allocations", s->allocs);
	put(t, "%-12s %" PRIu64 "\n", "frees", s->frees);
	put(t, "%-12s %" PRIu64 "\n", "lost", lost);
	if (losses.skipped[MLK_SKIPPED_TRIGGER])
		put(t, "%-12s %" PRIu64 " %s, %" PRIu64 " bytes\n", "only counted",
		    losses.skipped[MLK_SKIPPED_TRIGGER],
		    losses.skipped[MLK_SKIPPED_TRIGGER] == 1 ? "allocation" : "allocations",
		    losses.skipped_bytes[MLK_SKIPPED_TRIGGER]);
}

static void put_status(const struct ctl_answer *a, struct text *t)
{
	const struct session *s = a->session;
	const struct output *out = a->switcher->out;
	char size[OUTPUT_SIZE_TEXT];
	uint64_t threads;

	put(t, "ok %-12s %d, %s, for %.1f s\n", "recorder", (int)getpid(), s->backend->name,
	    (double)(clock_now_ns() - s->placing_ns) / 1e9);
	put(t, "%-12s %s, %s\n", "trace", out->path,
	    output_size(size, mlk_writer_bytes(s->out.writer)));
	threads = put_processes(s, t);
	put_losses(s, t);
	put_choices(s, threads, t);
	put(t, "%-12s %" PRIu64 "\n", "marks", s->marks);
	if (s->reach.passes)
		put(t, "%-12s %" PRIu64 "%s\n", "memory read", s->reach.taken,
		    s->reach.now ? ", and just now" : "");
}

static void put_pids(const struct session *s, struct text *t)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr; i++)
		nr += !s->all[i]->ended;
	if (nr > MOST_PIDS) {
		put(t,
		    "no %zu processes are recorded, and a name is looked up in %d at most: ask by "
		    "the number of one of them",
		    nr, MOST_PIDS);
		return;
	}
	put(t, nr ? "ok" : "ok ");
	for (size_t i = 0; i < s->nr; i++)
		if (!s->all[i]->ended)
			put(t, " %d", (int)s->all[i]->target.pid);
}

/* Is what is chosen recorded at all? */
static bool can_choose(const struct session *s, const struct choice *c, char *why)
{
	bool process = c->of == CHOICE_PROCESS || c->of == CHOICE_SITE || c->of == CHOICE_PASSAGE;

	if (c->of == CHOICE_THREAD && !is_recorded(s, process_of(c->tid)))
		snprintf(why, CHOICE_WHY,
			 "no recorded process has a thread %d: 'ps -L -p PID' shows them under LWP",
			 (int)c->tid);
	else if (process && !is_recorded(s, c->pid))
		snprintf(why, CHOICE_WHY, "process %d is not recorded", (int)c->pid);
	else
		return true;
	return false;
}

static void answer_choice(const struct ctl_answer *a, const struct choice *c, struct text *t)
{
	char why[CHOICE_WHY] = "";

	if (!can_choose(a->session, c, why) || session_choose(a->session, c, why))
		put(t, "no %s", why);
	else
		put(t, "ok ");
}

static void answer_switch(const struct ctl_answer *a, struct text *t)
{
	if (!a->switcher->opts->on) {
		put(t, "no there is one trace only: record with --switch-output");
		return;
	}
	a->switcher->due = true;
	put(t, "ok '%s' ends, and the next trace begins", a->switcher->out->path);
}

static void answer_reach(struct session *s, struct text *t)
{
	if (!s->reach.passes)
		put(t, "no the memory is not read in this recording: record with --reach");
	else if (s->reach.now)
		put(t, "no the memory is read just now: ask again when 'mleak ctl' shows that it "
		       "was");
	else if (session_reach_begin(s))
		put(t, "ok ");
	else
		put(t, "no there is no process whose memory can be read");
}

void ctl_answer(void *ctx, const char *line, size_t len, char *answer)
{
	const struct ctl_answer *a = ctx;
	struct text t = {.at = answer};
	struct control_request r;

	if (control_parse(&r, line, len)) {
		put(&t, "no that is no request of this version of mleak");
		return;
	}
	switch (r.verb) {
	case CONTROL_STATUS:
		put_status(a, &t);
		break;
	case CONTROL_PIDS:
		put_pids(a->session, &t);
		break;
	case CONTROL_RECORDS:
		put(&t, is_recorded(a->session, r.choice.pid) ? "ok " : "no ");
		break;
	case CONTROL_CHOOSE:
		answer_choice(a, &r.choice, &t);
		break;
	case CONTROL_MARK:
		session_mark(a->session, MLK_MARK_TEXT, r.text);
		put(&t, "ok ");
		break;
	case CONTROL_SWITCH:
		answer_switch(a, &t);
		break;
	case CONTROL_REACH:
		answer_reach(a->session, &t);
	}
}

void ctl_on_signal(const struct ctl_answer *a)
{
	if (a->switcher->opts->on)
		a->switcher->due = true;
	else
		session_mark(a->session, MLK_MARK_SIGNAL, "");
}
