/* preload_processes.c - see preload_processes.h */
#include "record/preload/process/preload_processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/base/clock.h"
#include "record/preload/lost/lost_programs.h"
#include "record/preload/process/process_events.h"
#include "record/preload/process/process_table.h"

#define LINGER_NS 500000000ull /* a program begun by exec may take so long to start */

struct preload_processes {
	struct preload_processes_opts opts;
	struct stat memory;
	struct process_table table;
	struct process_events events;
	struct lost_programs lost;
	uint64_t refused; /* processes that could not be recorded */
	uint64_t strange; /* programs that were not reported */
	uint64_t next_watch_ns;
	uint64_t maps_failed, maps_unanswered;
	uint64_t unlooked;   /* whose last guarded blocks were not checked */
	bool first_unlooked; /* the command did */
	bool over;
};

static struct preload_process *shared(const struct preload_processes *ps, uint32_t slot)
{
	return &ps->opts.memory->processes[slot];
}

int preload_processes_new(struct preload_processes **out, const struct preload_processes_opts *opts)
{
	struct preload_processes *ps = calloc(1, sizeof(*ps));

	*out = NULL;
	if (!ps)
		return -ENOMEM;
	ps->opts = *opts;
	if (fstat(opts->fd, &ps->memory)) {
		free(ps);
		return -errno;
	}
	process_table_init(&ps->table);
	*out = ps;
	return 0;
}

int preload_processes_start(struct preload_processes *ps, pid_t pid)
{
	return process_table_add(&ps->table, 0, pid);
}

/* Check whether the process in @slot runs the program that its library reported. */
static void watch(struct preload_processes *ps, uint32_t slot)
{
	const struct preload_sink *sink = ps->opts.sink;
	struct preload_seat *p = &ps->table.all[slot];
	int program;

	if (!exec_detect_poll(&p->watch, shared(ps, slot), sink->start_of(sink->ctx, p->pid)))
		return;
	ps->strange++;
	program = sink->open_program(sink->ctx, p->pid);
	lost_programs_note(&ps->lost, p->pid, program);
	if (program >= 0)
		close(program);
}

/* Tell the library in @slot what is to be known of Go, if it has begun a program.  That is told of
 * its number: if the process begins another meanwhile, that has another one. */
static void tell_golang(struct preload_processes *ps, uint32_t slot)
{
	const struct preload_sink *sink = ps->opts.sink;
	struct preload_seat *p = &ps->table.all[slot];
	uint32_t program = __atomic_load_n(&shared(ps, slot)->program, __ATOMIC_ACQUIRE);
	struct event_go go = {0};

	if (program + 1 == p->golang || p->pid <= 0)
		return;
	p->golang = program + 1;
	sink->golang(sink->ctx, p->pid, &go);
	if (go.on)
		facts_tell_golang(ps->opts.facts, slot, program, &go);
}

void preload_processes_go(struct preload_processes *ps)
{
	watch(ps, 0);
	tell_golang(ps, 0);
	preload_slot_answer(shared(ps, 0), PRELOAD_GO);
}

/* Room for what happened in @slot now; NULL: there is none. */
static struct happening *note(struct preload_processes *ps, enum happening_kind kind, uint32_t slot)
{
	const struct happening h = {.kind = kind,
				    .slot = slot,
				    .pid = ps->table.all[slot].pid,
				    .time = preload_clock_now(ps->opts.clock)};

	return process_events_add(&ps->events, &h);
}

/* The same with its mappings.  NULL: they could not be read. */
static struct happening *note_maps(struct preload_processes *ps, enum happening_kind kind,
				   uint32_t slot)
{
	struct happening *h = note(ps, kind, slot);

	if (!h || ps->opts.sink->read_maps(ps->opts.sink->ctx, h->pid, &h->maps))
		return h;
	process_events_withdraw(&ps->events);
	return NULL;
}

/* Does the kernel say that @pid has mapped the memory?  Returns 0, -ENOENT or -errno. */
static int check_memory(const struct preload_processes *ps, pid_t pid)
{
	struct maps maps = {0};
	int err = ps->opts.sink->read_all_maps(ps->opts.sink->ctx, pid, &maps);

	if (!err && !maps_have_file(&maps, ps->memory.st_dev, ps->memory.st_ino))
		err = -ENOENT;
	maps_release(&maps);
	return err;
}

/* The process in @slot is not recorded, because of @err, -errno or 0.  It says when it has seen
 * that. */
static void refuse(struct preload_processes *ps, uint32_t slot, int err)
{
	ps->refused++;
	shared(ps, slot)->why = err == -EMFILE			  ? PRELOAD_WHY_DESCRIPTORS
				: err == -EACCES || err == -EPERM ? PRELOAD_WHY_FORBIDDEN
								  : PRELOAD_WHY_UNEXAMINED;
	preload_slot_answer(shared(ps, slot), PRELOAD_GO_ALONE);
}

/* Process @pid, which has a descriptor, into the recording.  False: it cannot be recorded. */
static bool let_in(struct preload_processes *ps, uint32_t slot, pid_t pid)
{
	const struct preload_sink *sink = ps->opts.sink;
	struct preload_process *s = shared(ps, slot);

	if (!sink->met(sink->ctx, pid, (pid_t)s->parent))
		return false;
	if (!note_maps(ps, HAPPENING_CAME, slot)) {
		sink->unmet(sink->ctx, pid);
		return false;
	}
	watch(ps, slot);
	tell_golang(ps, slot);
	preload_slot_answer(s, PRELOAD_GO);
	return true;
}

/* May the recorder examine the process that claims to be @pid? Those that were refused, and have
 * gone, are removed. */
static bool is_new(const struct preload_processes *ps, struct preload_process *s, pid_t pid)
{
	/* The recorder has the memory, too. */
	if (pid == getpid() || preload_slot_is_left(s, pid)) {
		preload_slot_clear(s);
		return false;
	}
	return pid > 0 && !__atomic_load_n(&s->go, __ATOMIC_ACQUIRE) &&
	       !process_table_has(&ps->table, pid);
}

/* A process claimed @slot: accept it once its pid is verified.  One that is between two programs
 * has not mapped the memory yet, and is examined again; one that has ended meanwhile wrote nothing.
 * One that may not be examined, though it waits, has become another user, and stays that until it
 * begins a program.  If it does not wait, it may be ending, or beginning one, which has more rights
 * or has not mapped the memory yet: that one is counted by itself. */
static void meet(struct preload_processes *ps, uint32_t slot)
{
	struct preload_process *s = shared(ps, slot);
	pid_t pid = (pid_t)__atomic_load_n(&s->pid, __ATOMIC_ACQUIRE);
	bool waits;
	int err;

	if (!is_new(ps, s, pid) || process_events_full(&ps->events))
		return;
	err = process_table_add(&ps->table, slot, pid);
	if (err == -ESRCH)
		preload_slot_clear(s);
	else if (err)
		refuse(ps, slot, err);
	if (err)
		return;
	ps->table.all[slot].maps_answered = __atomic_load_n(&s->maps_asked, __ATOMIC_ACQUIRE);
	waits = __atomic_load_n(&s->waits, __ATOMIC_ACQUIRE);
	err = check_memory(ps, pid);
	if (!err && let_in(ps, slot, pid))
		return;
	process_table_forget(&ps->table, slot);
	if (waits && (!err || err == -EACCES || err == -EPERM))
		refuse(ps, slot, err);
}

/* The process in @slot has @maps now, after it had said @changed times that it generated code. What
 * was read of it a moment ago is to have that, too. */
static void tell_code(struct preload_processes *ps, uint32_t slot, uint32_t changed,
		      uint64_t taken_ns, const struct maps *maps)
{
	const struct preload_sink *sink = ps->opts.sink;
	struct preload_seat *p = &ps->table.all[slot];

	p->code_told = changed;
	sink->generated(sink->ctx, taken_ns + 1, p->pid, maps);
	ps->maps_failed += process_events_add_code(&ps->events, p->pid, maps) < 0;
	__atomic_store_n(&shared(ps, slot)->code_found, changed, __ATOMIC_RELEASE);
}

/* Read the mappings of processes that ask for it.  They count from now, which is after all that was
 * recorded of code that is gone, and before all of a file's code that is new. */
static void look_at_maps(struct preload_processes *ps, uint32_t slot, uint64_t taken_ns)
{
	struct preload_process *s = shared(ps, slot);
	struct preload_seat *p = &ps->table.all[slot];
	uint32_t asked = __atomic_load_n(&s->maps_asked, __ATOMIC_ACQUIRE);
	uint32_t changed = __atomic_load_n(&s->maps_changed, __ATOMIC_ACQUIRE);
	const struct happening *h;

	if ((asked == p->maps_answered && changed == p->maps_changed) ||
	    process_events_full(&ps->events))
		return;
	h = note_maps(ps, HAPPENING_MAPPED, slot);
	ps->maps_failed += !h;
	if (h && changed != p->maps_changed)
		tell_code(ps, slot, changed, taken_ns, &h->maps);
	if (p->watch.program != __atomic_load_n(&s->program, __ATOMIC_ACQUIRE))
		watch(ps, slot); /* before the new program can begin another */
	p->maps_changed = changed;
	p->maps_answered = asked;
	__atomic_store_n(&s->maps_done, asked, __ATOMIC_RELEASE);
	preload_slot_wake(&s->maps_done);
}

/* Programs and children that were to begin, and have not come yet. */
static bool is_expecting(const struct preload_processes *ps)
{
	const struct preload_header *h = ps->opts.memory;

	return __atomic_load_n(&h->execs, __ATOMIC_ACQUIRE) + 1 +
		       __atomic_load_n(&h->forks, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&h->hello, __ATOMIC_ACQUIRE) +
		       __atomic_load_n(&h->children, __ATOMIC_ACQUIRE);
}

/* Report those that have ended; the last ones only once it is known that no others follow.
 * @expecting: from before the last check of the slots, because processes that came then are in the
 * table. */
static void tell_ends(struct preload_processes *ps, bool expecting)
{
	ps->over = !ps->table.nr_alive &&
		   (!ps->opts.follow ||
		    (!expecting || clock_now_ns() > ps->table.last_end_ns + LINGER_NS));
	if (!ps->table.nr_alive && !ps->over)
		return;
	for (uint32_t i = 0; i < ps->table.nr_slots; i++) {
		if (!ps->table.all[i].ended || !note(ps, HAPPENING_ENDED, i))
			continue;
		process_table_close(&ps->table, i);
	}
}

static void watch_all(struct preload_processes *ps)
{
	if (clock_now_ns() < ps->next_watch_ns)
		return;
	ps->next_watch_ns = clock_now_ns() + PRELOAD_WATCH_NS;
	lost_programs_look(&ps->lost, ps->opts.memory);
	for (uint32_t i = 0; i < ps->table.nr_slots; i++)
		if (ps->table.all[i].pidfd >= 0 && !ps->table.all[i].ended)
			watch(ps, i);
}

void preload_processes_look(struct preload_processes *ps, uint64_t taken_ns)
{
	bool expecting;

	process_table_poll(&ps->table);
	expecting = is_expecting(ps);
	watch_all(ps);
	for (uint32_t i = 1; ps->opts.follow && i < PRELOAD_MAX_PROCESSES; i++)
		if (!ps->table.all[i].pid && __atomic_load_n(&shared(ps, i)->pid, __ATOMIC_RELAXED))
			meet(ps, i);
	for (uint32_t i = 0; i < ps->table.nr_slots; i++)
		if (ps->table.all[i].pidfd >= 0) {
			tell_golang(ps, i);
			look_at_maps(ps, i, taken_ns);
		}
	tell_ends(ps, expecting);
}

void preload_processes_find_code(struct preload_processes *ps, uint64_t taken_ns)
{
	const struct preload_sink *sink = ps->opts.sink;

	for (uint32_t i = 0; i < ps->table.nr_slots; i++) {
		struct preload_seat *p = &ps->table.all[i];
		uint32_t changed = __atomic_load_n(&shared(ps, i)->maps_changed, __ATOMIC_ACQUIRE);
		struct maps maps = {0};

		if (p->pidfd < 0 || changed == p->code_told)
			continue;
		p->code_told = changed;
		if (!p->ended && !sink->read_all_maps(sink->ctx, p->pid, &maps))
			tell_code(ps, i, changed, taken_ns, &maps);
		maps_release(&maps);
	}
}

uint64_t preload_processes_next(const struct preload_processes *ps)
{
	return ps->events.nr ? ps->events.all[0].time : UINT64_MAX;
}

/* The slot is anybody's from now on. */
static void give_back(struct preload_processes *ps, uint32_t slot)
{
	struct preload_process *s = shared(ps, slot);

	ps->maps_unanswered += __atomic_exchange_n(&s->maps_unanswered, 0, __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&s->guard, PRELOAD_GUARD_NONE, __ATOMIC_RELAXED) ==
	    PRELOAD_GUARD_WATCHED) {
		ps->unlooked++;
		ps->first_unlooked |= !slot;
	}
	process_table_forget(&ps->table, slot);
	if (slot) /* the first stays the command's */
		preload_slot_clear(s);
}

void preload_processes_apply(struct preload_processes *ps)
{
	const struct preload_sink *sink = ps->opts.sink;
	struct happening *h = &ps->events.all[0];
	uint64_t time_ns = preload_clock_ns(ps->opts.clock, h->time);

	/* It may take the mappings. */
	if (h->kind == HAPPENING_CAME)
		sink->came(sink->ctx, time_ns, h->pid, &h->maps);
	else if (h->kind == HAPPENING_MAPPED)
		sink->mapped(sink->ctx, time_ns, h->pid, &h->maps);
	else
		sink->ended(sink->ctx, time_ns, h->pid);
	if (h->kind == HAPPENING_ENDED)
		give_back(ps, h->slot);
	process_events_drop_first(&ps->events);
}

bool preload_processes_over(const struct preload_processes *ps)
{
	return ps->over;
}

uint32_t preload_processes_in(const struct preload_processes *ps, uint32_t slot)
{
	return slot < PRELOAD_MAX_PROCESSES ? (uint32_t)ps->table.all[slot].pid : 0;
}

bool preload_processes_ended(const struct preload_processes *ps, uint32_t slot)
{
	return slot >= PRELOAD_MAX_PROCESSES || ps->table.all[slot].ended ||
	       ps->table.all[slot].pidfd < 0;
}

bool preload_processes_gone(const struct preload_processes *ps, pid_t pid)
{
	for (uint32_t i = 0; i < ps->table.nr_slots; i++)
		if (ps->table.all[i].pid == pid && !ps->table.all[i].ended)
			return false;
	return true;
}

void preload_processes_wake(struct preload_processes *ps)
{
	for (uint32_t i = 0; i < PRELOAD_MAX_PROCESSES; i++) {
		preload_slot_wake(&shared(ps, i)->go);
		preload_slot_wake(&shared(ps, i)->maps_done);
	}
}

uint64_t preload_processes_lost(const struct preload_processes *ps)
{
	const struct preload_header *h = ps->opts.memory;
	uint32_t hellos = __atomic_load_n(&h->hello, __ATOMIC_ACQUIRE);
	uint32_t execs = __atomic_load_n(&h->execs, __ATOMIC_ACQUIRE) + 1;
	uint64_t lost = ps->refused + ps->strange + __atomic_load_n(&h->no_slot, __ATOMIC_RELAXED);

	return lost + (hellos < execs ? execs - hellos : 0);
}

void preload_processes_tell_lost(struct preload_processes *ps)
{
	if (preload_processes_lost(ps))
		lost_programs_tell(&ps->lost, ps->opts.memory);
}

uint64_t preload_processes_maps_lost(const struct preload_processes *ps)
{
	uint64_t lost = ps->maps_failed + ps->maps_unanswered;

	for (uint32_t i = 0; i < ps->table.nr_slots; i++)
		lost += __atomic_load_n(&shared(ps, i)->maps_unanswered, __ATOMIC_RELAXED);
	return lost;
}

uint64_t preload_processes_unlooked(const struct preload_processes *ps, bool *first)
{
	*first = ps->first_unlooked;
	return ps->unlooked;
}

void preload_processes_free(struct preload_processes *ps)
{
	if (!ps)
		return;
	while (ps->events.nr)
		process_events_withdraw(&ps->events);
	process_table_release(&ps->table);
	free(ps);
}
