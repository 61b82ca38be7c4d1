/* remote_check.c - see remote_check.h */
#include "record/inject/remote/remote_check.h"

#include <errno.h>
#include <linux/rseq.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#define CODE_64 0x33 /* the code segment of 64-bit programs */

/* PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG of Linux 6.4 (linux/ptrace.h). */
#define GET_DISPATCH 0x4211

/* What it answers: struct ptrace_sud_config. */
struct dispatch {
	uint64_t mode; /* 0: off */
	uint64_t selector, offset, len;
};

static int read_memory(pid_t tid, uint64_t at, void *to, size_t len)
{
	struct iovec local = {to, len}, remote = {(void *)(uintptr_t)at, len};

	return process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

int remote_leave_sequence(pid_t tid, struct user_regs_struct *regs)
{
	struct __ptrace_rseq_configuration config = {0};
	struct rseq_cs cs;
	uint64_t at;
	long got = ptrace((enum __ptrace_request)PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(config),
			  &config);

	/* no system call is made in a sequence */
	if (got != sizeof(config) && (long)regs->orig_rax < 0)
		return -EAGAIN;
	if (!config.rseq_abi_pointer)
		return 0;
	if (read_memory(tid, config.rseq_abi_pointer + offsetof(struct rseq, rseq_cs), &at,
			sizeof(at)) ||
	    !at || read_memory(tid, at, &cs, sizeof(cs)))
		return 0;
	if (regs->rip - cs.start_ip < cs.post_commit_offset)
		regs->rip = cs.abort_ip;
	return 0;
}

/* Is the stack below @sp nobody else's?  It is in the main thread's, and in one that begins with
 * the thread's own control block; coroutines and signal handlers may have small ones. */
static bool has_stack(const struct user_regs_struct *regs, const struct maps *maps)
{
	const struct mlk_mapping *m = maps_find(maps, regs->rsp);

	return m && (!strcmp(m->path, "[stack]") ||
		     (regs->fs_base > regs->rsp && regs->fs_base < m->end));
}

static bool dispatches(pid_t tid)
{
	struct dispatch config = {0};

	return !ptrace((enum __ptrace_request)GET_DISPATCH, tid, sizeof(config), &config) &&
	       config.mode;
}

uint64_t remote_blocked(pid_t tid)
{
	struct dispatch config;

	if (ptrace((enum __ptrace_request)GET_DISPATCH, tid, sizeof(config), &config))
		return ~(UINT64_C(1) << (SIGSYS - 1));
	return UINT64_MAX;
}

bool remote_is_64_bit(pid_t tid, const struct user_regs_struct *regs)
{
	const uint8_t syscall_code[] = {0x0f, 0x05};
	uint8_t last[sizeof(syscall_code)];

	if (regs->cs != CODE_64)
		return false;
	return (long)regs->orig_rax < 0 || (long)regs->rax >= 0 ||
	       (!read_memory(tid, regs->rip - sizeof(last), last, sizeof(last)) &&
		!memcmp(last, syscall_code, sizeof(last)));
}

int remote_check(pid_t tid, const struct user_regs_struct *regs, const struct remote_code *code,
		 const struct maps *maps, const char **why)
{
	*why = NULL;
	if (dispatches(tid))
		*why = "has system calls dispatched to itself";
	else if (!has_stack(regs, maps))
		*why = "uses a stack that may have no room";
	else if (!remote_code_is_there(code, tid))
		*why = "has unmapped its C library";
	return *why ? -ENOTSUP : 0;
}
