/* dwunw_event.h - one allocation as it is caught: registers and the raw top of the stack
 *
 * Fixed-width and 8-byte aligned, so that a BPF program, a preloaded library and the recorder agree
 * on it.  It lives in memory shared by one build; it is not a file format.
 */
#ifndef DWUNW_EVENT_H
#define DWUNW_EVENT_H

#include <linux/types.h>

/* Stack bytes are taken, compared and stored in slices of this many bytes. */
#define DWUNW_CAPTURE_SLICE 128

/* Registers of the widest architecture known here, numbered as DWARF numbers them (x86-64
 * psABI 1.0, figure 3.36): 0..15 are rax rdx rcx rbx rsi rdi rbp rsp r8..r15, 16 is the return
 * address column, which holds rip. */
#define DWUNW_MAX_ARCH_REGS 17

#define DWUNW_X86_64_RBP 6
#define DWUNW_X86_64_RSP 7
#define DWUNW_X86_64_RIP 16

/* Bits of dwunw_async_event.flags. */
enum dwunw_event_flag {
	/* ip is where a call will return to, not an instruction that was interrupted */
	DWUNW_EVENT_RETURN_ADDRESS = 1 << 0,
	/* the stack goes on above the available bytes: the limit on the stack's size was reached */
	DWUNW_EVENT_STACK_LIMIT = 1 << 1,
	/* a page of the stack was not in memory: zeros are in its place, if it did not end there
	 */
	DWUNW_EVENT_STACK_FAULT = 1 << 2,
	/* the stack goes on above the available bytes: the buffer was full, only the first went
	 * in */
	DWUNW_EVENT_STACK_DEGRADED = 1 << 3,
	/* where the stack ends was not known; the bytes may run into a neighbouring mapping */
	DWUNW_EVENT_STACK_UNBOUNDED = 1 << 4,
	/* it was put together of several stacks of the thread, as if the functions that change from
	 * one to the other did not: above what they left lies what they will come back to.  Words
	 * that point into what was moved were moved with it */
	DWUNW_EVENT_STACK_JOINED = 1 << 5,
	/* the stack goes on above the available bytes, at a place that is not known */
	DWUNW_EVENT_STACK_ELSEWHERE = 1 << 6,
};

/* An allocation. */
struct dwunw_async_event {
	__u32 tgid;	  /* process, as the recorder numbers it */
	__u32 tid;	  /* thread that allocated */
	__u64 alloc_id;	  /* unique within one recording, from 1 */
	__u64 timestamp;  /* CLOCK_MONOTONIC, nanoseconds */
	__u64 ip;	  /* where the thread was; see DWUNW_EVENT_RETURN_ADDRESS */
	__u64 sp;	  /* the stack pointer at ip; stack_bytes[0] is the byte at this address */
	__u32 flags;	  /* enum dwunw_event_flag */
	__u32 stack_size; /* bytes of stack_bytes that are valid, any number up to the room there is
			   */
	__u64 regs_snapshot[DWUNW_MAX_ARCH_REGS];
	__u8 stack_bytes[]; /* room for a whole number of slices */
};

#ifndef __cplusplus
_Static_assert(sizeof(struct dwunw_async_event) % 8 == 0, "8-byte aligned");
_Static_assert(sizeof(struct dwunw_async_event) == 48 + 8 * DWUNW_MAX_ARCH_REGS, "no padding");
#endif

#endif
