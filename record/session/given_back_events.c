/* given_back_events.c - what of the memory that madvise gave back is used again: for the trace */
#include "record/base/clock.h"
#include "record/session/session.h"

/* At each sample of a process's memory: 1 GiB of addresses, which takes 1 ms, or 10 where all is
 * there, but that once.  And at the end: 16 GiB.  doc/decisions/0040. */
#define PAGES	   (1u << 18)
#define LAST_PAGES (1u << 22)

/* Where what is found goes. */
struct finder {
	struct session *s;
	const struct process *p;
};

static void put_resident(void *arg, uint64_t addr, uint64_t size)
{
	const struct finder *finder = arg;
	struct session *s = finder->s;
	const uint32_t pid = (uint32_t)finder->p->target.pid;
	const struct mlk_event ev = {.kind = MLK_PAGES,
				     .func = MLK_PAGES_RESIDENT,
				     .tgid = pid,
				     .tid = pid,
				     .time_ns = s->end_ns ? s->end_ns : clock_now_ns(),
				     .addr = addr,
				     .size = size};

	write_own_event(s, &ev);
}

void session_note_pages(struct session *s, const struct mlk_event *ev)
{
	struct process *p;

	if (ev->kind == MLK_PAGES)
		s->gives_back |= ev->func == MLK_PAGES_GIVEN_BACK;
	else if (ev->kind == MLK_ALLOC && ev->func != MLK_FUNC_MMAP && ev->func != MLK_FUNC_MREMAP)
		return;
	else if (ev->kind != MLK_ALLOC && ev->kind != MLK_UNMAP && ev->kind != MLK_EXEC)
		return;
	p = s->gives_back ? session_find(s, (pid_t)ev->tgid) : NULL;
	if (!p)
		return;
	given_back_note(&p->given_back, ev);
	s->pages_left_out += p->given_back.left_out; /* it may end before that is told */
	p->given_back.left_out = 0;
}

void session_look_at_pages(struct session *s, struct process *p)
{
	struct finder finder = {s, p};

	given_back_look(&p->given_back, &p->target, PAGES, put_resident, &finder);
}

void session_look_at_all_pages(struct session *s)
{
	for (size_t i = 0; i < s->nr && !s->out.err; i++) {
		struct process *p = s->all[i];
		struct finder finder = {s, p};

		if (!p->ended && !p->exited && p->target.pidfd >= 0 &&
		    !given_back_look(&p->given_back, &p->target, LAST_PAGES, put_resident, &finder))
			s->pages_left_out += p->given_back.nr;
	}
}
