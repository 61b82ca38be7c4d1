/* progress.c - numbers for people */
#include "record/event_loop.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mleak.h"

#define REACH_SHOWN_NS 1000000000u

static uint64_t nr_lost(const struct session *s)
{
	struct mlk_losses losses;
	uint64_t sum = 0;

	session_losses(s, &losses);
	for (int i = 0; i < MLK_LOSS_NR; i++)
		sum += losses.count[i];
	return sum;
}

void progress_begin(struct progress *p, uint64_t now_ns)
{
	p->terminal = isatty(STDERR_FILENO) && !log_is_quiet();
	p->start_ns = p->last_ns = now_ns;
}

void progress_show(struct progress *p, const struct session *s, uint64_t now_ns)
{
	uint64_t events = s->allocs + s->frees;
	double seconds = (double)(now_ns - p->last_ns) / 1e9;
	char size[OUTPUT_SIZE_TEXT];

	if (!p->terminal || seconds <= 0)
		return;
	fprintf(stderr, "\r\033[K%.1f s, %.0f events/s, %s, %" PRIu64 " lost",
		(double)(now_ns - p->start_ns) / 1e9, (double)(events - p->last_events) / seconds,
		output_size(size, mlk_writer_bytes(s->out.writer)), nr_lost(s));
	fflush(stderr);
	log_over_line();
	p->last_ns = now_ns;
	p->last_events = events;
}

void progress_show_reach(struct progress *p, const struct session *s, uint64_t now_ns)
{
	const struct session_reach *r = &s->reach;
	char size[OUTPUT_SIZE_TEXT];

	if (!p->terminal || !r->now || now_ns - p->last_ns < REACH_SHOWN_NS)
		return;
	fprintf(stderr,
		"\r\033[K%.0f s, reading the memory of process %d: pass %u of at most %u, %s",
		(double)(now_ns - p->start_ns) / 1e9, (int)r->of->target.pid,
		reach_snapshot_result(r->now)->passes + 1, r->most_passes,
		output_size(size, mlk_writer_bytes(s->out.writer)));
	fflush(stderr);
	log_over_line();
	p->last_ns = now_ns;
}

static void warn_of_losses(const struct session *s)
{
	struct mlk_losses losses;

	session_losses(s, &losses);
	for (int i = 0; i < MLK_LOSS_NR; i++)
		if (losses.count[i])
			log_warn("lost: %" PRIu64 " %s", losses.count[i],
				 mlk_loss_text(i, losses.count[i]));
	s->backend->explain_losses(s);
	unrecorded_report(&s->missed);
	if (s->out.modules.too_large)
		log_warn("%" PRIu64 " of these modules %s left out because of the limit on the "
			 "size of files; raise it (ulimit -f)",
			 s->out.modules.too_large, s->out.modules.too_large == 1 ? "was" : "were");
}

static void tell_of_children(const struct session *s)
{
	struct mlk_losses losses;
	uint64_t nr;
	const char *children;

	session_losses(s, &losses);
	nr = s->follow ? s->children : losses.skipped[MLK_SKIPPED_CHILD];
	children = nr == 1 ? "child process was" : "child processes were";
	if (nr && s->follow)
		log_info("%" PRIu64 " %s recorded as well", nr, children);
	else if (nr)
		log_info("%" PRIu64 " %s started and not recorded; --follow records %s", nr,
			 children, nr == 1 ? "it" : "them");
	if (s->gaps.nr)
		log_info("%" PRIu64 " of the programs and children %s recorded from up to %.1f "
			 "ms after %s start",
			 s->gaps.nr, s->gaps.nr == 1 ? "was" : "were",
			 (double)s->gaps.longest_ns / 1e6, s->gaps.nr == 1 ? "its" : "their");
}

static void tell_of_snapshot(const struct session *s)
{
	if (s->snapshot.threads == 1)
		log_info("read the stack of the only thread at attach; it was stopped for %.2f ms",
			 (double)s->snapshot.stopped_ns / 1e6);
	else if (s->snapshot.threads)
		log_info("read the stacks of %u threads at attach; they were stopped for %.2f ms "
			 "in total, %.2f ms at most",
			 s->snapshot.threads, (double)s->snapshot.stopped_ns / 1e6,
			 (double)s->snapshot.longest_ns / 1e6);
}

static void tell_of_injected(const struct session *s)
{
	const struct inject_cost *cost = &s->injected;
	const double longest_ms = (double)cost->longest_ns / 1e6;
	const double held_ms = (double)cost->held_ns / 1e6;

	if (cost->threads == 1)
		log_info("its only thread was stopped %u time%s, for %.2f ms at most; and to make "
			 "system calls for mleak, for %.2f ms at most",
			 cost->times, cost->times == 1 ? "" : "s", longest_ms, held_ms);
	else if (cost->threads)
		log_info("all %u threads were stopped %u time%s, for %.2f ms at most; and one to "
			 "make system calls for mleak, for %.2f ms at most",
			 cost->threads, cost->times, cost->times == 1 ? "" : "s", longest_ms,
			 held_ms);
}

void progress_summary(const struct session *s, const struct output *out)
{
	const char *older =
		s->command || !s->tally.frees ? "" : "; frees of older blocks are counted too";
	uint64_t lost = nr_lost(s);
	char who[sizeof(s->named) + 32];

	if (s->nr_named < 2)
		snprintf(who, sizeof(who), "%s (pid %d)", s->comm, (int)s->pid);
	else
		snprintf(who, sizeof(who), "%zu processes, %s", s->nr_named, s->named);
	/* Which frees are of blocks from before, the report will find out. */
	log_info("recorded %.1f s of %s: %" PRIu64 " allocation%s, %" PRIu64 " free%s, %" PRIu64
		 " lost%s",
		 (double)(s->end_ns - s->armed_ns) / 1e9, who, s->tally.allocs,
		 s->tally.allocs == 1 ? "" : "s", s->tally.frees, s->tally.frees == 1 ? "" : "s",
		 lost, older);
	if (s->probes)
		log_info("attached in %.0f ms, detached in %.0f ms", (double)s->attach_ns / 1e6,
			 (double)s->detach_ns / 1e6);
	tell_of_children(s);
	tell_of_snapshot(s);
	tell_of_injected(s);
	warn_of_losses(s);
	if (s->stacks_cut)
		log_warn("%" PRIu64 " %s cut to the first bytes while the buffer was filling up; a "
			 "larger --ring-size keeps them whole",
			 s->stacks_cut, s->stacks_cut == 1 ? "stack was" : "stacks were");
	if (s->overruns.found)
		log_warn("%" PRIu64 " %s; the report shows %s", s->overruns.found,
			 s->overruns.found == 1 ? "overrun of a block was found"
						: "overruns of blocks were found",
			 s->overruns.found == 1 ? "it" : "them");
	if (session_is_quiet(s))
		log_warn("no call of malloc or free was recorded%s",
			 s->quiet_told || lost ? "" : ": the program made none");
	output_tell(out, mlk_writer_bytes(s->out.writer), true);
}
