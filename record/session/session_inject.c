/* session_inject.c - events from the recorder's code in a process that runs already */
#include <errno.h>
#include <string.h>

#include "mleak.h"
#include "record/base/clock.h"
#include "record/inject/inject.h"
#include "record/session/interpreted.h"
#include "record/session/no_events.h"
#include "record/session/session.h"

int session_open_inject(struct session *s, struct preload_opts *opts)
{
	const pid_t pid = s->all[0]->target.pid;
	char why[INJECT_WHY];
	int err = inject_open(&s->inject, pid, why);

	if (err) {
		log_error("cannot put code into process %d: it %s", (int)pid, why);
		return err;
	}
	opts->memory = inject_rings(s->inject);
	return preload_new(&s->preload, opts);
}

int session_remove_injected(struct session *s)
{
	char why[INJECT_WHY];

	for (size_t i = 0; i < s->nr; i++) {
		const pid_t pid = s->all[i]->target.pid;
		int err = inject_is_in(pid) ? inject_remove(pid, &s->injected, why) : 0;

		if (!err)
			continue;
		log_error("cannot record process %d: it %s", (int)pid, why);
		return err;
	}
	return 0;
}

/* The functions of the process, changed.  On failure one sentence was logged. */
static int put(struct session *s, struct process *p)
{
	size_t bytes;
	const struct preload_header *rings = preload_shared_memory(s->preload, &bytes);
	char why[INJECT_WHY];
	int err;

	s->allocator_opts.entries_alone = true;
	err = allocators_find(&p->allocators, &p->target, &s->allocator_opts);
	if (!err)
		err = preload_adopt(s->preload, p->target.pid);
	if (err)
		return err;
	session_tell_of_interpreters(s);
	preload_go(s->preload);
	err = inject_put(s->inject, &p->allocators, rings, bytes, &s->injected, why);
	if (err) {
		log_error("cannot put code into process %d: it %s; without --backend inject it is "
			  "recorded by eBPF",
			  (int)p->target.pid, why);
		return err;
	}
	session_begin_to_look(s, p);
	return 0;
}

int session_start_inject(struct session *s, const struct session_opts *opts)
{
	const struct preload_sink sink = session_sink(s);
	struct process *p = s->all[0];
	uint64_t start_ns;
	int err;

	s->out.listening = true; /* the code tells */
	err = session_prepare_all(s, opts);
	s->placing_ns = start_ns = clock_now_ns();
	if (err)
		return err;
	preload_set_sink(s->preload, &sink);
	s->maps_known_ns = UINT64_MAX;
	p->probed = true;
	p->cpu_ticks = no_events_cpu_ticks(&p->target);
	s->armed_ns = clock_now_ns();
	err = put(s, p);
	s->attach_ns = clock_now_ns() - start_ns;
	return err;
}

/* Take out again what was put into @t.  Returns as inject_remove(). */
static int take_out(struct session *s, const struct target *t, char *why)
{
	struct inject_cost cost = {0};
	char unused[INJECT_WHY];
	int err = t->helper ? helper_eject(t->helper, t->pid, &cost, sizeof(cost), why)
			    : inject_take_back(t->pid, &cost, why);

	/* what it left half done it has left for anybody; perhaps we are allowed to */
	if (err == -EPIPE && !inject_take_back(t->pid, &cost, unused))
		err = 0;
	inject_cost_join(&s->injected, &cost);
	return err;
}

void session_stop_inject(struct session *s)
{
	const struct target *t = s->nr ? &s->all[0]->target : NULL;
	char why[INJECT_WHY];
	int err;

	inject_free(s->inject);
	s->inject = NULL;
	if (s->preload)
		preload_stop(s->preload); /* from here on the code only forwards */
	if (!t || target_is_ending(t))
		return;
	err = take_out(s, t, why);
	if (err == -EBUSY)
		log_warn("what was put into process %d stays there and does nothing: a thread is "
			 "still in it; the next 'mleak record -p %d' takes it out",
			 (int)t->pid, (int)t->pid);
	else if (err && !target_is_ending(t))
		log_warn("what was put into process %d stays there and does nothing: it %s",
			 (int)t->pid, why);
}
