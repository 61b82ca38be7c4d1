/* attach_stacks.c - the stack reader, once at the beginning */
#include "record/target/attach_stacks.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "mleak.h"
#include "record/base/clock.h"
#include "unwind/dwunw.h"

#define BUSY_WAITS   20 /* a process has one reader at a time, which takes some milliseconds */
#define BUSY_WAIT_NS 5000000

_Static_assert(DWUNW_MAX_ARCH_REGS <= MLK_MAX_REGS, "room for all registers");

struct snapshot {
	const struct target *target;
	struct mlk_writer *writer;
	struct attach_stacks_cost cost;
	int err;
};

static int write_one(struct snapshot *s, const struct dwunw_stack_copy *copy)
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

static int visit(void *arg, int err, const struct dwunw_stack_copy *copy)
{
	struct snapshot *s = arg;

	s->cost.stopped_ns += copy->stopped_ns;
	if (copy->stopped_ns > s->cost.longest_ns)
		s->cost.longest_ns = copy->stopped_ns;
	if (err || !(copy->regs.known & 1u << MLK_SP_REG))
		return 0;
	s->cost.threads++;
	s->err = write_one(s, copy);
	return s->err;
}

/* Attach, if need be after another one has read: another recorder has begun at the same time. */
static int attach(pid_t pid, enum dwunw_denied *denied, struct dwunw_stack_reader **reader)
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

static const char *explain(int err, enum dwunw_denied denied)
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
	int err = attach(t->pid, &denied, &reader);

	if (!err)
		err = dwunw_stack_reader_read_all(reader, visit, &s);
	dwunw_stack_reader_detach(reader);
	*cost = s.cost;
	if (s.err)
		return s.err;
	if (err && err != DWUNW_ERR_GONE)
		log_info("the current stacks of process %d are not recorded: %s", (int)t->pid,
			 explain(err, denied));
	return mlk_writer_flush(writer);
}
