/* remote_frame.c - see remote_frame.h
 *
 * The layout is the kernel's: struct rt_sigframe of arch/x86/include/asm/sigframe.h, and the
 * extended state as arch/x86/kernel/fpu/signal.c has it.
 */
#include "record/inject/remote/remote_frame.h"

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

#define RED_ZONE UINT64_C(128)
#define ALIGN	 UINT64_C(64) /* of the extended state: XRSTOR's */

#define XSTATE_MOST   16384
#define XSTATE_SW     464 /* struct _fpx_sw_bytes; of ptrace's form a mask of features */
#define XSTATE_HEADER 512 /* a mask of the features that are not as at the start, and zeros */
#define XSTATE_LEAST  576
#define PKRU	      (UINT64_C(1) << 9)

/* uc_flags: the frame has extended state, and a stack segment that is restored as it is. */
#define UC_FLAGS 7

/* No mode of an alternate stack: the kernel refuses it, and leaves the one that is set. */
#define NO_ALTSTACK_MODE 4

/* What sigreturn reads: the kernel's mask of signals is shorter than that of ucontext_t. */
struct frame {
	uint64_t pop, number, call; /* by these sigreturn is called */
	uint8_t context[offsetof(ucontext_t, uc_sigmask)];
	uint64_t mask;
};

_Static_assert(offsetof(ucontext_t, uc_sigmask) == 296, "the kernel's struct ucontext");

/* Bytes that @features take in the layout of XSAVE, which all processes share. */
static size_t size_of(uint64_t features)
{
	size_t size = XSTATE_LEAST;

	for (unsigned int i = 2; i < 63; i++) {
		unsigned int bytes, offset, c, d;

		if (!(features >> i & 1))
			continue;
		__cpuid_count(0xd, i, bytes, offset, c, d);
		if (offset + bytes > size)
			size = offset + bytes;
	}
	return size;
}

/* Read the extended state of @tid into @state, in the form of a signal frame.  Returns its size
 * with the mark behind it, or -errno. */
static ssize_t read_xstate(pid_t tid, uint8_t *state)
{
	struct iovec io = {state, XSTATE_MOST};
	const uint32_t end = FP_XSTATE_MAGIC2;
	struct _fpx_sw_bytes sw = {.magic1 = FP_XSTATE_MAGIC1};
	uint64_t features, used;
	size_t size;

	memset(state, 0, XSTATE_MOST);
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, &io))
		return errno == ENODEV ? -ENOTSUP : -errno;
	if (io.iov_len < XSTATE_LEAST || io.iov_len > XSTATE_MOST - sizeof(end))
		return -ENOTSUP;
	memcpy(&features, state + XSTATE_SW, sizeof(features));
	memcpy(&used, state + XSTATE_HEADER, sizeof(used));
	/* The kernel keeps protection keys elsewhere, and does not always say that they are set. */
	used |= features & PKRU;
	memcpy(state + XSTATE_HEADER, &used, sizeof(used));
	size = size_of(used);
	if (size > io.iov_len)
		return -ENOTSUP;
	sw.xstate_bv = features | used;
	sw.xstate_size = (uint32_t)size;
	sw.extended_size = (uint32_t)(size + sizeof(end));
	memcpy(state + XSTATE_SW, &sw, sizeof(sw));
	memcpy(state + size, &end, sizeof(end));
	return (ssize_t)sw.extended_size;
}

static void fill_context(ucontext_t *context, const struct user_regs_struct *regs, uint64_t state)
{
	const struct {
		int at;
		unsigned long long value;
	} values[] = {
		{REG_R8, regs->r8},
		{REG_R9, regs->r9},
		{REG_R10, regs->r10},
		{REG_R11, regs->r11},
		{REG_R12, regs->r12},
		{REG_R13, regs->r13},
		{REG_R14, regs->r14},
		{REG_R15, regs->r15},
		{REG_RDI, regs->rdi},
		{REG_RSI, regs->rsi},
		{REG_RBP, regs->rbp},
		{REG_RBX, regs->rbx},
		{REG_RDX, regs->rdx},
		{REG_RAX, regs->rax},
		{REG_RCX, regs->rcx},
		{REG_RSP, regs->rsp},
		{REG_RIP, regs->rip},
		{REG_EFL, regs->eflags},
		{REG_CSGSFS, regs->cs | regs->gs << 16 | regs->fs << 32 | regs->ss << 48},
	};

	memset(context, 0, sizeof(*context));
	context->uc_flags = UC_FLAGS;
	context->uc_stack.ss_flags = NO_ALTSTACK_MODE;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		context->uc_mcontext.gregs[values[i].at] = (greg_t)values[i].value;
	context->uc_mcontext.fpregs = (fpregset_t)(uintptr_t)state;
}

int remote_write(pid_t tid, uint64_t at, const void *bytes, size_t len)
{
	struct iovec from = {(void *)(uintptr_t)bytes, len}, to = {(void *)(uintptr_t)at, len};
	ssize_t n = process_vm_writev(tid, &from, 1, &to, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

int remote_frame_write(pid_t tid, const struct user_regs_struct *regs, uint64_t mask,
		       const struct remote_code *code, uint64_t *at)
{
	struct frame frame = {
		.pop = code->pop, .number = SYS_rt_sigreturn, .call = code->call, .mask = mask};
	uint8_t state[XSTATE_MOST];
	ssize_t size = read_xstate(tid, state);
	ucontext_t context;
	uint64_t state_at;
	int err;

	if (size < 0)
		return (int)size;
	state_at = (regs->rsp - RED_ZONE - (uint64_t)size) & ~(ALIGN - 1);
	*at = (state_at - sizeof(frame)) & ~UINT64_C(15);
	fill_context(&context, regs, state_at);
	memcpy(frame.context, &context, sizeof(frame.context));
	err = remote_write(tid, state_at, state, (size_t)size);
	return err ? err : remote_write(tid, *at, &frame, sizeof(frame));
}
