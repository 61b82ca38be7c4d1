/* reach.h - what bpf/reach.bpf.c tells of threads: for the recorder and the program alone */
#ifndef MLEAK_BPF_REACH_H
#define MLEAK_BPF_REACH_H

#define REACH_REGS    17   /* by DWARF number, psABI figure 3.36; 16 is the program counter */
#define REACH_SAMPLES 8192 /* threads of which a sample is kept */

/* In place of `ran`: regs[0] is where the thread's alternate stack for signals begins, and nothing
 * else is told. */
#define REACH_ALTSTACK 2

/* The registers of a thread when it left user space, or was interrupted there. */
struct reach_regs {
	__u32 tid;
	__u32 ran; /* it was interrupted by the clock; 0: it waited; or REACH_ALTSTACK */
	__u64 regs[REACH_REGS];
};

_Static_assert(sizeof(struct reach_regs) == 144, "no padding");

#endif
