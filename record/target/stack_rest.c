/* stack_rest.c - see stack_rest.h */
#include "record/target/stack_rest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "unwind/dwunw.h"

#define MOST	  (2u << 20) /* bytes above an event's stack */
#define KEPT	  (4u << 20) /* bytes of a thread's stack that a report keeps */
#define STEP_NS	  125000000u /* from one stack that is read to the next, in the long run, */
#define AT_ONCE	  8	     /* and so many without a pause */
#define SEAM	  32	     /* words by which the same calls are recognised */
#define FRESH_NS  250000000u /* a thread's is not read again so soon, */
#define BROKEN_NS 100000000u /* unless what lies above is not there */

/* Where the main thread's stack begins, which holds @sp: not above its arguments and environment,
 * which are nobody's business.  0: @sp is elsewhere, or that is not known. */
static uint64_t find_main_top(const struct target *t, uint64_t sp)
{
	const uint64_t strings = target_auxv(t, AT_RANDOM); /* right below these */
	const struct mlk_mapping *m;
	struct maps maps = {0};
	bool same;

	if (target_read_maps(t, &maps))
		return 0;
	m = maps_find(&maps, sp);
	same = m && m == maps_find(&maps, strings);
	maps_release(&maps);
	return same && sp < strings ? strings : 0;
}

/* Is @top where a stack may begin whose event ends at @end? */
static bool is_near(uint64_t top, uint64_t end)
{
	return top > end && top - end < MOST;
}

/* Does a reader continue a cut stack [@sp, @end)?  See report/decode/stack_history.c. */
static bool continues(const struct stack_rest *r, uint64_t sp, uint64_t end)
{
	return r->lo <= end && end < r->hi && r->hi - sp <= KEPT;
}

/* May a stack be read at @now_ns?  Then it counts as read. */
static bool take_turn(struct stack_rest_pace *pace, uint64_t now_ns)
{
	const uint64_t saved = (AT_ONCE - 1) * (uint64_t)STEP_NS;

	if (now_ns < pace->due_ns)
		return false;
	if (now_ns > saved && pace->due_ns < now_ns - saved)
		pace->due_ns = now_ns - saved;
	pace->due_ns += STEP_NS;
	return true;
}

/* Put the stack [@from, @to), at @bytes, of the thread of @ev into the trace: in pieces as long as
 * an event's, the uppermost first, to which each next one is joined. */
static int write_pieces(const struct mlk_event *ev, const uint8_t *bytes, uint64_t from,
			uint64_t to, struct mlk_writer *writer)
{
	struct mlk_event piece = {.kind = MLK_ALLOC,
				  .nr_regs = DWUNW_MAX_ARCH_REGS,
				  .flags = MLK_EVENT_TORN,
				  .tgid = ev->tgid,
				  .tid = ev->tid,
				  .time_ns = ev->time_ns};
	int err = 0;

	for (uint64_t hi = to, lo; hi > from && !err; hi = lo) {
		lo = hi - from > MLK_MAX_STACK ? hi - MLK_MAX_STACK : from;
		piece.regs[MLK_SP_REG] = lo;
		piece.stack = bytes + (lo - from);
		piece.stack_len = (uint32_t)(hi - lo);
		err = mlk_writer_stack(writer, &piece, 1u << MLK_SP_REG);
		piece.flags |= DWUNW_EVENT_STACK_LIMIT;
	}
	return err;
}

/* Is the thread still in the calls of @ev, whose stack is @now by now?  Calls that have not
 * returned leave their words as they are.  So the uppermost must be equal; zeros tell nothing, and
 * those of the lowest quarter may well have returned. */
static bool same_calls(const struct mlk_event *ev, const uint8_t *now)
{
	unsigned int left = SEAM;

	for (size_t at = ev->stack_len; left && at >= ev->stack_len / 4 + 8; at -= 8) {
		if (memcmp(ev->stack + at - 8, now + at - 8, 8) != 0)
			return false;
		left -= memcmp(now + at - 8, "\0\0\0\0\0\0\0", 8) != 0;
	}
	return true;
}

/* Read what lies above @end and put it into the trace, behind all events of before.  Returns as
 * stack_rest_before(). */
static int read_rest(struct stack_rest *r, const struct target *t, const struct mlk_event *ev,
		     uint64_t end, struct mlk_writer *writer)
{
	const uint64_t sp = ev->regs[MLK_SP_REG];
	const uint64_t from = end & ~7ull, to = r->top & ~7ull; /* a trace's stacks end at a word */
	uint8_t *bytes = malloc(to - sp);
	int err = 0;

	if (!bytes || target_read_memory(t, sp, bytes, to - sp)) {
		r->top = 0; /* it has ended, or has another stack by now */
		free(bytes);
		return 0;
	}
	if (same_calls(ev, bytes)) {
		err = mlk_writer_flush(writer);
		if (!err)
			err = write_pieces(ev, bytes + (from - sp), from, to, writer);
		if (!err)
			err = mlk_writer_flush_others(writer);
		r->lo = from;
		r->hi = to;
		r->whole = r->was_read = true;
	}
	free(bytes);
	return err;
}

/* Is the rest of a cut stack [@sp, @end) to be read, at @now_ns, if all stacks allow? */
static bool is_due(const struct stack_rest *r, uint64_t sp, uint64_t end, uint64_t now_ns)
{
	if (!r->whole || !continues(r, sp, end))
		return now_ns >= r->read_ns + BROKEN_NS;
	return r->was_read && now_ns >= r->read_ns + FRESH_NS;
}

int stack_rest_before(struct stack_rest *r, struct stack_rest_pace *pace, const struct target *t,
		      const struct mlk_event *ev, struct mlk_writer *writer)
{
	const uint64_t sp = ev->regs[MLK_SP_REG], end = sp + ev->stack_len;
	const bool unbounded = ev->flags & DWUNW_EVENT_STACK_UNBOUNDED;
	const bool limited = ev->flags & DWUNW_EVENT_STACK_LIMIT;
	const bool cut = limited || ev->flags & DWUNW_EVENT_STACK_DEGRADED;
	int err = 0;

	if (limited && !unbounded && is_due(r, sp, end, ev->time_ns)) {
		r->read_ns = ev->time_ns;
		if (!r->top && !r->looked && ev->tid == ev->tgid) {
			r->top = find_main_top(t, sp);
			r->looked = true;
		}
		if (is_near(r->top, end) && take_turn(pace, ev->time_ns))
			err = read_rest(r, t, ev, end, writer);
	}
	/* as a reader does */
	if (!cut || !continues(r, sp, end)) {
		r->hi = end;
		r->whole = !cut && !unbounded;
		r->was_read = false;
		r->top = r->whole ? end : r->top;
	}
	r->lo = sp;
	return err;
}
