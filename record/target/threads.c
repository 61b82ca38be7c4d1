/* threads.c - a table by tid; and the stack reader, once at the beginning */
#include "record/target/threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mleak.h"
#include "record/base/clock.h"
#include "record/base/proc.h"
#include "unwind/dwunw.h"

struct thread_entry {
	uint32_t tid; /* 0: free slot */
	bool seen;    /* it did something: its name is wanted */
	bool written;
	char name[16];	  /* the kernel's TASK_COMM_LEN */
	char claimed[16]; /* as the thread said */
	struct stack_rest rest;
};

static struct thread_entry *slot_of(struct thread_entry *slots, size_t room, uint32_t tid)
{
	size_t i = tid * 0x9e3779b1u & (room - 1);

	while (slots[i].tid && slots[i].tid != tid)
		i = (i + 1) & (room - 1);
	return &slots[i];
}

static int grow(struct threads *ts)
{
	size_t room = ts->room ? ts->room * 2 : 64;
	struct thread_entry *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < ts->room; i++)
		if (ts->slots[i].tid)
			*slot_of(slots, room, ts->slots[i].tid) = ts->slots[i];
	free(ts->slots);
	ts->slots = slots;
	ts->room = room;
	ts->at = NULL;
	return 0;
}

/* The entry of @tid, made if it is new; NULL when out of memory. */
static struct thread_entry *entry_of(struct threads *ts, uint32_t tid)
{
	struct thread_entry *e;

	if ((ts->nr + 1) * 2 > ts->room && grow(ts))
		return NULL;
	e = slot_of(ts->slots, ts->room, tid);
	if (!e->tid) {
		e->tid = tid;
		ts->nr++;
	}
	return e;
}

int threads_see(struct threads *ts, uint32_t tid)
{
	struct thread_entry *e;

	if (tid == ts->last || !tid)
		return 0;
	e = entry_of(ts, tid);
	if (!e)
		return -ENOMEM;
	ts->last = tid;
	ts->at = e;
	ts->unwritten |= !e->seen;
	e->seen = true;
	return 0;
}

struct stack_rest *threads_rest(struct threads *ts, uint32_t tid)
{
	if (threads_see(ts, tid))
		return NULL;
	if (tid != ts->last || !ts->at)
		ts->at = entry_of(ts, ts->last = tid);
	return ts->at ? &ts->at->rest : NULL;
}

/* The entry of @tid gets @name, which may be "": to be read. */
static struct thread_entry *set_name(struct threads *ts, uint32_t tid, const char *name)
{
	struct thread_entry *e = entry_of(ts, tid);

	if (!e)
		return NULL;
	snprintf(e->name, sizeof(e->name), "%s", name);
	e->written = false;
	e->seen |= ts->all;
	ts->unwritten |= e->seen;
	return e;
}

int threads_name(struct threads *ts, uint32_t tid, const char *name)
{
	struct thread_entry *e = tid ? set_name(ts, tid, name) : NULL;

	if (!e)
		return tid ? -ENOMEM : 0;
	e->seen = true;
	ts->unwritten = true;
	return 0;
}

const char *threads_find(const struct threads *ts, uint32_t tid)
{
	return ts->room ? slot_of(ts->slots, ts->room, tid)->name : "";
}

int threads_claim(struct threads *ts, uint32_t tid, const char *name)
{
	struct thread_entry *e = tid ? entry_of(ts, tid) : NULL;

	if (!e)
		return tid ? -ENOMEM : 0;
	snprintf(e->claimed, sizeof(e->claimed), "%s", name);
	return 0;
}

static void read_name(struct thread_entry *e, const struct target *t)
{
	/* of one that has ended the name is not known */
	proc_read(e->name, sizeof(e->name), "/proc/%d/task/%u/comm", (int)t->pid, e->tid);
	if (target_is_reaped(t))
		e->name[0] = '\0';
	e->name[strcspn(e->name, "\n")] = '\0';
}

int threads_see_all(struct threads *ts, const struct target *t)
{
	DIR *dir = proc_threads(t->pid);
	struct thread_entry *e;
	pid_t tid;
	int err = 0;

	ts->all = true;
	while (dir && !err && (tid = proc_next_thread(dir)) > 0) {
		err = threads_see(ts, (uint32_t)tid);
		e = err ? NULL : entry_of(ts, (uint32_t)tid);
		if (e && !e->name[0])
			read_name(e, t); /* now: it may have ended by the time it is written */
	}
	if (dir)
		closedir(dir);
	return err;
}

int threads_inherit(struct threads *ts, uint32_t tid, struct threads *from, const struct target *of,
		    uint32_t parent)
{
	struct thread_entry *known = parent ? entry_of(from, parent) : NULL;
	char name[sizeof(known->name)] = "";
	struct thread_entry *e;

	if (!tid || !parent)
		return 0;
	if (!known)
		return -ENOMEM;
	if (!known->name[0])
		read_name(known, of);
	memcpy(name, known->name, sizeof(name));
	e = set_name(ts, tid, name);
	if (!e)
		return -ENOMEM;
	e->rest = (struct stack_rest){0};
	return 0;
}

void threads_forget_stacks(struct threads *ts)
{
	for (size_t i = 0; i < ts->room; i++)
		ts->slots[i].rest = (struct stack_rest){0};
}

void threads_begin_trace(struct threads *ts)
{
	threads_forget_stacks(ts);
	for (size_t i = 0; i < ts->room; i++)
		ts->slots[i].written = false;
	ts->unwritten = ts->nr > 0;
}

int threads_write(struct threads *ts, const struct target *t, struct mlk_writer *w)
{
	struct mlk_thread *list;
	size_t nr = 0;
	int err;

	if (!ts->unwritten)
		return 0;
	list = calloc(ts->nr, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < ts->room; i++) {
		struct thread_entry *e = &ts->slots[i];

		if (!e->tid || !e->seen || e->written)
			continue;
		if (!e->name[0])
			read_name(e, t);
		if (!e->name[0])
			memcpy(e->name, e->claimed, sizeof(e->name));
		e->written = true;
		list[nr++] = (struct mlk_thread){
			.tgid = (uint32_t)t->pid, .tid = e->tid, .name = e->name};
	}
	ts->unwritten = false;
	err = nr ? mlk_writer_threads(w, list, nr) : 0;
	free(list);
	return err;
}

void threads_release(struct threads *ts)
{
	free(ts->slots);
	memset(ts, 0, sizeof(*ts));
}

#define BUSY_WAITS   20 /* a process has one reader at a time, which takes some milliseconds */
#define BUSY_WAIT_NS 5000000

_Static_assert(DWUNW_MAX_ARCH_REGS <= MLK_MAX_REGS, "room for all registers");

struct snapshot {
	const struct target *target;
	struct mlk_writer *writer;
	struct attach_stacks_cost cost;
	int err;
};

static int write_stack(struct snapshot *s, const struct dwunw_stack_copy *copy)
{
	struct mlk_event e = {
		.kind = MLK_ALLOC,
		.nr_regs = DWUNW_MAX_ARCH_REGS,
		.flags = copy->regs.flags & 0xff,
		.tgid = (uint32_t)s->target->pid,
		.tid = (uint32_t)copy->tid,
		.time_ns = clock_now_ns(),
		.stack = copy->stack.bytes,
		.stack_len = (uint32_t)copy->stack.len,
	};

	for (int i = 0; i < DWUNW_MAX_ARCH_REGS; i++)
		if (copy->regs.known & 1u << i)
			e.regs[i] = copy->regs.reg[i];
	if (copy->stack.len > MLK_MAX_STACK) {
		e.stack_len = MLK_MAX_STACK;
		e.flags |= DWUNW_EVENT_STACK_LIMIT;
	}
	/* a trace's stacks end at a word */
	if (e.stack_len > (e.regs[MLK_SP_REG] + e.stack_len) % 8)
		e.stack_len -= (e.regs[MLK_SP_REG] + e.stack_len) % 8;
	else
		e.stack_len = 0;
	if (copy->flags & DWUNW_COPY_TORN)
		e.flags |= MLK_EVENT_TORN;
	return mlk_writer_stack(s->writer, &e, copy->regs.known);
}

static int visit_thread(void *arg, int err, const struct dwunw_stack_copy *copy)
{
	struct snapshot *s = arg;

	s->cost.stopped_ns += copy->stopped_ns;
	if (copy->stopped_ns > s->cost.longest_ns)
		s->cost.longest_ns = copy->stopped_ns;
	if (err || !(copy->regs.known & 1u << MLK_SP_REG))
		return 0;
	s->cost.threads++;
	s->err = write_stack(s, copy);
	return s->err;
}

/* Attach, if need be after another one has read: another recorder has begun at the same time. */
static int attach_reader(pid_t pid, enum dwunw_denied *denied, struct dwunw_stack_reader **reader)
{
	const struct dwunw_stack_reader_opts opts = {.max_stack = MLK_MAX_STACK, .denied = denied};
	const struct timespec moment = {.tv_nsec = BUSY_WAIT_NS};
	int err = dwunw_stack_reader_attach(pid, &opts, reader);

	for (int i = 0; i < BUSY_WAITS && err == -EBUSY; i++) {
		nanosleep(&moment, NULL);
		err = dwunw_stack_reader_attach(pid, &opts, reader);
	}
	return err;
}

static const char *explain_unread(int err, enum dwunw_denied denied)
{
	if (err == -EBUSY)
		return "another program is reading them";
	return denied ? dwunw_denied_text(denied) : dwunw_strerror(err);
}

int attach_stacks_write(const struct target *t, struct mlk_writer *writer,
			struct attach_stacks_cost *cost)
{
	enum dwunw_denied denied = DWUNW_DENIED_NOT;
	struct snapshot s = {.target = t, .writer = writer};
	struct dwunw_stack_reader *reader;
	int err = attach_reader(t->pid, &denied, &reader);

	if (!err)
		err = dwunw_stack_reader_read_all(reader, visit_thread, &s);
	dwunw_stack_reader_detach(reader);
	*cost = s.cost;
	if (s.err)
		return s.err;
	if (err && err != DWUNW_ERR_GONE)
		log_info("the current stacks of process %d are not recorded: %s", (int)t->pid,
			 explain_unread(err, denied));
	return mlk_writer_flush(writer);
}
