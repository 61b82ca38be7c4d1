/* arguments.h - the arguments and the result of a function, wherever they are where it is probed */
#ifndef MLEAK_BPF_ARGUMENTS_H
#define MLEAK_BPF_ARGUMENTS_H

#include "bpf/condition.h"
#include "bpf/event.h"
#include "bpf/state.h"

/* Of @ctx.  An instruction of its own: the compiler would make one of all, at an address that is
 * computed, which the verifier refuses. */
#define REGISTER(name)                                                                   \
	({                                                                               \
		__u64 value;                                                             \
		asm volatile("%0 = *(u64 *)(%1 + %2)"                                    \
			     : "=r"(value)                                               \
			     : "r"(ctx), "i"(__builtin_offsetof(struct pt_regs, name))); \
		value;                                                                   \
	})

/* The register of this number in an instruction. */
static __noinline __u64 register_of(struct pt_regs *ctx, __u32 number)
{
	switch (number) {
	case 0:
		return REGISTER(rax);
	case 1:
		return REGISTER(rcx);
	case 2:
		return REGISTER(rdx);
	case 6:
		return REGISTER(rsi);
	case 7:
		return REGISTER(rdi);
	case 8:
		return REGISTER(r8);
	case 9:
		return REGISTER(r9);
	case 10:
		return REGISTER(r10);
	default:
		return REGISTER(r11);
	}
}

#undef REGISTER

/* The first arguments of a function. */
struct arguments {
	__u64 of[EVENT_MOVED_ARGS];
};

/* Those of the function at whose entry @ctx is, as its @cookie tells. */
static __always_inline struct arguments arguments_of(struct pt_regs *ctx, __u32 cookie)
{
	struct arguments args = {{ctx->rdi, ctx->rsi, ctx->rdx}};

	if (!(cookie & EVENT_MOVED))
		return args;
	for (__u32 i = 0; i < EVENT_MOVED_ARGS; i++)
		args.of[i] = register_of(ctx, event_moved_to(i, cookie));
	return args;
}

/* Does the function only return behind the jump at which @ctx is?  See EVENT_RET_SOON. */
static __always_inline int returns_soon(struct pt_regs *ctx, __u32 cookie)
{
	return !(cookie & EVENT_RET_IF) || is_taken(ctx->eflags, cookie >> EVENT_RET_IF_SHIFT);
}

#endif
