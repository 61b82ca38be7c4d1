/* reader_copy.c - the stack reader: copy the stack of a thread, stopped or waiting */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "unwind/reader/reader.h"

/* Tries to copy a waiting thread at a time when it does not run. */
#define COPY_TRIES 3

/* Bytes from @sp to the end of its stack; 0: not known. */
static uint64_t stack_room(const struct dwunw_stack_reader *r, uint64_t sp)
{
	const struct dwunw_range *area = dwunw_ranges_find(&r->areas, sp);

	if (!area)
		return 0;
	/* Above the main thread's first frame are only argv, environ and auxv. */
	if (sp < r->start_stack && r->start_stack < area->end)
		return r->start_stack - sp;
	return area->end - sp;
}

/*
 * Copy @len bytes at @addr, by as few calls as the pages that are missing allow.  Those read as
 * zeros and set *hole; unless @bounded, the first of them is the end.
 * Returns the bytes copied or -errno.
 */
static ssize_t copy_bytes(const struct dwunw_stack_reader *r, const struct dwunw_stack_copy *copy,
			  size_t len, bool bounded, bool *hole)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t addr = copy->regs.reg[DWUNW_X86_64_RSP];
	size_t at = 0;

	while (at < len) {
		struct iovec to = {r->bytes + at, len - at};
		struct iovec from = {(void *)(uintptr_t)(addr + at), len - at};
		ssize_t got = process_vm_readv(copy->tid, &to, 1, &from, 1, 0);
		size_t missing = page - ((addr + at) & (page - 1));

		if (got > 0) {
			at += (size_t)got;
			continue;
		}
		if (got < 0 && errno != EFAULT)
			return -errno;
		*hole = true;
		if (!bounded)
			break;
		if (missing > len - at)
			missing = len - at;
		memset(r->bytes + at, 0, missing);
		at += missing;
	}
	return (ssize_t)at;
}

int dwunw_copy_stack(struct dwunw_stack_reader *r, struct dwunw_stack_copy *copy, bool unbounded)
{
	uint64_t sp = copy->regs.reg[DWUNW_X86_64_RSP], room = stack_room(r, sp);
	size_t want = r->max_stack;
	bool hole = false;
	ssize_t got;

	copy->regs.flags = 0;
	if (!room && !unbounded)
		return -EAGAIN;
	if (!room)
		copy->regs.flags |= DWUNW_EVENT_STACK_UNBOUNDED;
	else if (room <= want)
		want = (size_t)room;
	else
		copy->regs.flags |= DWUNW_EVENT_STACK_LIMIT;
	got = copy_bytes(r, copy, want, room, &hole);
	if (got == -EPERM)
		return DWUNW_ERR_ATTACH_DENIED;
	if (got < 0)
		return got == -ENOMEM ? -ENOMEM : DWUNW_ERR_GONE;
	if (hole)
		copy->regs.flags |= DWUNW_EVENT_STACK_FAULT;
	copy->stack = (struct dwunw_stack){sp, r->bytes, (size_t)got};
	return 0;
}

/* The registers known of a thread that waits, by DWARF number. */
static void waiting_regs(struct dwunw_regset *regs, const struct dwunw_waiting *w)
{
	static const uint8_t of_arg[6] = {5, 4, 1, 10, 8, 9}; /* rdi rsi rdx r10 r8 r9 */

	memset(regs, 0, sizeof(*regs));
	regs->reg[DWUNW_X86_64_RSP] = w->sp;
	regs->reg[DWUNW_X86_64_RIP] = w->pc;
	regs->known = 1u << DWUNW_X86_64_RSP | 1u << DWUNW_X86_64_RIP;
	for (int i = 0; w->nr >= 0 && i < 6; i++) {
		regs->reg[of_arg[i]] = w->arg[i];
		regs->known |= 1u << of_arg[i];
	}
}

int dwunw_copy_waiting(struct dwunw_stack_reader *r, struct dwunw_stack_copy *copy)
{
	struct dwunw_waiting before, after;
	int err;

	copy->flags = DWUNW_COPY_NOT_STOPPED;
	for (int i = 0; i < COPY_TRIES; i++) {
		err = dwunw_proc_waiting(r, copy->tid, &before);
		if (err)
			return err;
		waiting_regs(&copy->regs, &before);
		err = dwunw_copy_stack(r, copy, false);
		if (err == -EAGAIN) {
			/* A stack made since the mappings were read. */
			err = dwunw_proc_areas(r);
			err = err ? err : dwunw_copy_stack(r, copy, true);
		}
		if (err)
			return err;
		/* Still there: so the numbers meant this process all the time. */
		err = dwunw_proc_waiting(r, copy->tid, &after);
		if (err == DWUNW_ERR_GONE)
			return err;
		if (!err && !memcmp(&before, &after, sizeof(before)))
			return 0;
	}
	copy->flags |= DWUNW_COPY_TORN;
	return 0;
}

/* Does the system call fail with EINTR when a thread is stopped in it, and is not begun anew by the
 * kernel?  See signal(7); those on sockets do when they have a timeout. */
static bool fails_when_stopped(long nr)
{
	switch (nr) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
#endif
	case SYS_rt_sigtimedwait:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_io_getevents:
	case SYS_io_pgetevents:
	case SYS_io_uring_enter:
	case SYS_connect:
	case SYS_accept:
	case SYS_accept4:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
		return true;
	default:
		return false;
	}
}

bool dwunw_is_spared(const struct dwunw_stack_reader *r, pid_t tid)
{
	struct dwunw_waiting waiting;

	return !(r->flags & DWUNW_READER_ALWAYS_STOP) && !dwunw_proc_waiting(r, tid, &waiting) &&
	       fails_when_stopped(waiting.nr);
}
