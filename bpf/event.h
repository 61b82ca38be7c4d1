/* event.h - what the BPF programs and the recorder agree on
 *
 * One build of mleak talking to itself through a ring buffer: may change freely, never on disk.
 */
#ifndef MLEAK_BPF_EVENT_H
#define MLEAK_BPF_EVENT_H

#include "unwind/dwunw_event.h"

/* The same numbers as enum mlk_kind in format/trace.h; from 9 on, with enum mlk_pages, of
 * MLK_PAGES.
 */
enum event_type {
	EVENT_ALLOC = 1,
	EVENT_FREE = 2,
	EVENT_RELEASE = 3,
	EVENT_RESTORE = 4,
	EVENT_EXEC = 5,
	EVENT_UNMAP = 6,
	EVENT_FORK = 7,
	EVENT_EXIT = 8,
	EVENT_ACCESSIBLE = 9,
	EVENT_GIVEN_BACK = 10,
	EVENT_LAZILY = 11,
	EVENT_PART = 12, /* more of the stack of the thread's next EVENT_ALLOC */
	/* of interpreters, see python.h */
	EVENT_FRAMES = 13,
	EVENT_CODE = 14, /* of a library alone: struct event_code_object */
};

/* The probed function, as attach cookie; the same numbers as enum mlk_func in format/trace.h. */
enum event_func {
	FUNC_MALLOC = 1,
	FUNC_CALLOC = 2,
	FUNC_REALLOC = 3,
	FUNC_POSIX_MEMALIGN = 4,
	FUNC_ALIGNED_ALLOC = 5,
	FUNC_MEMALIGN = 6,
	FUNC_VALLOC = 7,
	FUNC_PVALLOC = 8,
	FUNC_REALLOCARRAY = 9,
	FUNC_MMAP = 10,
	FUNC_MREMAP = 11,
	FUNC_NEW = 12,
	FUNC_NEW_ARRAY = 13,
	/* These free or change what was mapped: they never leave the kernel. */
	FUNC_FREE = 64,
	FUNC_DELETE = 65,
	FUNC_MUNMAP = 66,
	FUNC_MPROTECT = 67,
	FUNC_MADVISE = 68,
};

/* In an event, besides the number of mmap or mremap: what was mapped cannot be accessed. */
#define FUNC_RESERVED 0x80u

/* The same of any allocation: the thread's last EVENT_PART belongs to it. */
#define FUNC_PART 0x100u

/* In the cookie of a function's entry, besides its number: how it returns is seen by probes on the
 * instructions, not by a return probe. */
#define EVENT_BY_RET (1u << 9)

/* In the cookie of a function's return, if its entry has a probe of its own. */
#define EVENT_RETURN (1u << 10)

/* The cookie of an instruction by which a function returns: a `ret`, the result is in rax; or a
 * jump to memset, which returns its first argument. */
#define EVENT_RET	 (1u << 11)
#define EVENT_RET_MEMSET (1u << 12) /* with EVENT_RET */

/* Or a jump behind which the function only returns, if the condition of this number in an
 * instruction holds (with EVENT_RET_IF); the result is in the register of this number. */
#define EVENT_RET_SOON	    (1u << 13) /* with EVENT_RET */
#define EVENT_RET_IF	    (1u << 14)
#define EVENT_RET_REG_SHIFT 16
#define EVENT_RET_IF_SHIFT  20

/*
 * In the cookie of an entry whose probe is behind instructions that have moved the arguments: the
 * register that has each of the first ones, by its number in an instruction (rax 0, rcx 1, rdx 2,
 * rsi 6, rdi 7, r8 to r11).  Four bits each, as they differ from the register that it was passed
 * in: 0 where none was moved.  Functions that map memory have no such probe.
 */
#define EVENT_MOVED_ARGS  3
#define EVENT_MOVED_SHIFT 16
#define EVENT_MOVED	  0xfff0000u

/* The register that argument @nr was passed in: rdi, rsi, rdx (psABI section 3.2.3). */
static inline __u32 event_passed_in(unsigned int nr)
{
	return nr == 0 ? 7 : nr == 1 ? 6 : 2;
}

/* The bits of the cookie that say that argument @nr is in register @reg. */
static inline __u32 event_moved(unsigned int nr, __u32 reg)
{
	return (reg ^ event_passed_in(nr)) << (EVENT_MOVED_SHIFT + 4 * nr);
}

/* The register that argument @nr is in, by the @cookie. */
static inline __u32 event_moved_to(unsigned int nr, __u32 cookie)
{
	return (cookie >> (EVENT_MOVED_SHIFT + 4 * nr) & 0xf) ^ event_passed_in(nr);
}

/* Does @func, enum event_func, map memory or change what is mapped? */
static inline int event_maps_memory(__u32 func)
{
	return func == FUNC_MMAP || func == FUNC_MREMAP || func == FUNC_MUNMAP ||
	       func == FUNC_MPROTECT || func == FUNC_MADVISE;
}

/* How processes and threads are numbered: the process in the upper half, the thread in the lower,
 * as the recorder's pid namespace does it. */
static inline __u32 event_tgid(__u64 id)
{
	return (__u32)(id >> 32);
}

/* The thread of @id: its lower half. */
static inline __u32 event_tid(__u64 id)
{
	return (__u32)id;
}

/*
 * Every record of the rings, with the kernel's 8 bytes before it, is a whole number of the
 * processor's cache lines, so each begins at one: a stack that is copied to the beginning of a
 * line from an even address is written by whole lines, which need not be read first.
 */
#define EVENT_LINE     64
#define EVENT_SMALLEST (EVENT_LINE - 8)

/* The stack is copied from this multiple below the stack pointer. */
#define EVENT_STACK_ALIGN 32

/*
 * What each event begins with.  There are two rings: what finds no room in the first one goes into
 * the second, and says how far the first one had come before that.  Nothing that lies behind there
 * was over when this event began, and nothing before there began after it was over.
 */
union event_head {
	struct {
		__u16 type;  /* enum event_type */
		__u16 what;  /* EVENT_ALLOC: enum event_func; EVENT_FREE: not 0, made inside an
				allocator's call; EVENT_EXEC: not 0, not by the main thread;
				EVENT_EXIT: not 0, only the main thread has ended;
				EVENT_FORK: not 0, the child shares its parent's memory, as after
				vfork */
		__u32 front; /* in the second ring: the writers' position in the first one, as
				event_front() has it; else not set */
	};
	__u64 word; /* all of them, as the programs hold them */
};

/* Of a position in the first ring what event_head has room for: it is a multiple of 8. */
static inline __u32 event_front(__u64 position)
{
	return (__u32)(position >> 3);
}

/* The word of an event_head with these members; @front as event_front() gives it, or 0. */
static inline __u64 event_word(__u32 type, __u32 what, __u32 front)
{
	return (__u64)front << 32 | what << 16 | type;
}

/* Every event but EVENT_ALLOC. */
struct event_small {
	union event_head head;
	__u64 id;      /* process and thread; EVENT_FORK: that which forked */
	__u64 addr;    /* the block; EVENT_FORK: the child's process number; else 0 */
	__u64 value;   /* EVENT_UNMAP and those of pages: bytes; EVENT_EXEC, EVENT_FORK, EVENT_EXIT:
			  CLOCK_MONOTONIC,   nanoseconds; for others it is not set */
	__u64 time_ns; /* CLOCK_MONOTONIC, nanoseconds */
	__u8 unset[EVENT_SMALLEST - 40];
};

/* EVENT_UNMAP: [addr, addr + value) is about to be unmapped, where the kernel rounds the end up to
 * a page; EVENT_RESTORE by the same thread takes it back.  EVENT_ACCESSIBLE, EVENT_GIVEN_BACK and
 * EVENT_LAZILY: the kernel has done so to such a range. */

/* Does an event of @type have a range?  How many bytes there are is its value. */
static inline int event_has_range(__u32 type)
{
	return type == EVENT_UNMAP || (type >= EVENT_ACCESSIBLE && type <= EVENT_LAZILY);
}

/* How mprotect and madvise are told from others, as the kernel's headers number them. */
#define EVENT_PROT_ANY	    7 /* read, write, execute */
#define EVENT_MADV_DONTNEED 4
#define EVENT_MADV_FREE	    8
#define EVENT_MADV_REMOVE   9
#define EVENT_MADV_LOCKED   24 /* MADV_DONTNEED_LOCKED */

/* The enum event_type of an madvise(2) with @advice that succeeded; 0: no event. */
static inline __u32 event_of_advice(__u32 advice)
{
	if (advice == EVENT_MADV_DONTNEED || advice == EVENT_MADV_REMOVE ||
	    advice == EVENT_MADV_LOCKED)
		return EVENT_GIVEN_BACK;
	return advice == EVENT_MADV_FREE ? EVENT_LAZILY : 0;
}

/* The same of an mprotect(2) with @prot.  What is made inaccessible keeps its memory. */
static inline __u32 event_of_prot(__u32 prot)
{
	return prot & EVENT_PROT_ANY ? EVENT_ACCESSIBLE : 0;
}

/* The registers that an event carries, in this order: those that a called function keeps, and where
 * it returns to.  All others hold nothing at a call's return that an unwinder could need (x86-64
 * psABI 1.0, figure 3.4). */
enum event_reg {
	EVENT_RBX,
	EVENT_RBP,
	EVENT_RSP,
	EVENT_R12,
	EVENT_R13,
	EVENT_R14,
	EVENT_R15,
	EVENT_RIP,
	EVENT_NR_REGS,
};

/* EVENT_ALLOC: a new block, with the registers at the call's return and the stack copied then. */
struct event_alloc {
	union event_head head;
	__u64 id;   /* process and thread */
	__u64 addr; /* the block */
	__u64 size; /* bytes requested */
	__u64 time_ns;
	__u64 regs[EVENT_NR_REGS];
	union {
		__u64 take; /* both of these, as the programs hold them */
		struct {
			__u32 stack_len; /* bytes of stack that are valid */
			__u32 flags;	 /* enum dwunw_event_flag, without
					    DWUNW_EVENT_RETURN_ADDRESS: that goes without saying */
		};
	};
	__u64 freed;  /* a block that the thread freed before: event_freed(), event_freed_age() */
	__u8 stack[]; /* from regs[EVENT_RSP] on, or up to EVENT_STACK_ALIGN bytes below */
};

/*
 * EVENT_PART: the thread runs on its own stack, called from another one, which is a goroutine's.
 * The bytes are those of that, from its stack pointer on.
 */
struct event_part {
	union event_head head;
	__u64 id;   /* process and thread */
	__u64 g;    /* the goroutine: the address of its runtime.g */
	__u64 left; /* the stack pointer of the thread's own stack, when the goroutine's was left */
	__u64 sp, hi; /* of the goroutine's stack: its pointer, and its end */
	__u64 len;    /* valid bytes */
	__u8 bytes[];
};

/* A free that waits for the thread's next allocation has a number in the bits above its address, so
 * that two of one address are distinguished; in the event, how long it has waited.  What is below
 * EVENT_FREED_MIN is none. */
#define EVENT_FREED_NONE   1
#define EVENT_FREED_MIN	   2
#define EVENT_ADDRESS_BITS 48
#define EVENT_AGE_SHIFT	   14 /* of nanoseconds: in steps of 16 microseconds, at most a second */
#define EVENT_AGE_MOST	   0xffffull

/* The address of the block in @word, which is event_alloc's freed or a slot's. */
static inline __u64 event_freed(__u64 word)
{
	return word & ((1ull << EVENT_ADDRESS_BITS) - 1);
}

/* Nanoseconds, of struct event_alloc's. */
static inline __u64 event_freed_age(__u64 word)
{
	return word >> EVENT_ADDRESS_BITS << EVENT_AGE_SHIFT;
}

/* Threads' states, of which the recorder reads three words, and takes one. */
#define EVENT_SLOTS	 4096
#define EVENT_SLOT_WORDS 32

/* Which of a slot's words, of 8 bytes each, the recorder looks at; they are members of the
 * thread_state in it. */
enum event_slot_word {
	EVENT_SLOT_ID = 1,	 /* process and thread */
	EVENT_SLOT_FREED = 2,	 /* a free that was not sent yet, with its number */
	EVENT_SLOT_FREED_NS = 3, /* when that was */
};

/* Events that never reached a ring, and why. */
struct event_drops {
	__u64 alloc, free, release, restore, exec, unmap; /* both rings were full */
	__u64 fork, exit; /* these, or the table of processes, were full */
	__u64 ret;	  /* calls replaced by the thread's next one: their return was never seen */
	__u64 state;	  /* no memory for a thread's state */
	__u64 pointer;	  /* posix_memalign's result could not be read */
	__u64 sum;	  /* no room to add up what a thread, process or call site has */
	__u64 frames;	  /* an interpreter's frames: both rings were full, or no memory */
};

/* Why something was not sent on purpose; the same numbers as enum mlk_skip in format/trace.h. */
enum event_skip {
	EVENT_SKIP_SIZE,
	EVENT_SKIP_SAMPLE,
	EVENT_SKIP_TRIGGER,
	EVENT_SKIP_DELAY,
	EVENT_SKIP_FREE,
	EVENT_SKIP_UNKEPT,
	EVENT_SKIP_NR,
};

/* How often something was not sent on purpose, and the bytes of the blocks concerned. */
struct event_skips {
	__u64 nr[EVENT_SKIP_NR], bytes[EVENT_SKIP_NR]; /* by enum event_skip */
};

/* What becomes of a thread's allocations where event_filter.by_thread distinguishes threads; and of
 * those of a process or a call site, where it is chosen. */
enum event_thread_mode {
	EVENT_THREAD_COUNTED = 0,   /* as is a thread of which nothing is said: until a trigger */
	EVENT_THREAD_FULL = 1,	    /* its allocations are sent */
	EVENT_THREAD_HELD = 2,	    /* they are counted, whatever the triggers say */
	EVENT_THREAD_TRIGGERED = 3, /* they are sent, as it has reached a trigger */
};

#define EVENT_MAX_SITES	   16
#define EVENT_MAX_PASSAGES 16
#define EVENT_MAX_PASSED   3	/* of one call */
#define EVENT_MOST_UP	   1024 /* bytes */

/* What is chosen of a process.  Sites and passages are none again when another program runs, where
 * they mean nothing. */
struct event_choices {
	__u32 mode; /* enum event_thread_mode, as the others here; EVENT_THREAD_COUNTED: nothing */
	__u32 nr;   /* sites */
	struct event_site {
		__u64 start, size; /* calls that return to here */
		__u64 mode;
	} sites[EVENT_MAX_SITES]; /* a later one goes before an earlier one */
	__u64 nr_passages;
	/* Calls that return to here are made by a function that allocates for its own caller, as
	 * operator new does. */
	struct event_passage {
		__u64 start, size;
		__u64 up; /* from the stack pointer there to its own return address, bytes */
	} passages[EVENT_MAX_PASSAGES];
};

/* Blocks, and their bytes. */
struct event_amount {
	__u64 nr, bytes;
};

/* What a thread allocated, where event_filter.accounts is set. */
struct event_account {
	__s64 outstanding; /* bytes, sent or not; below 0 by what a thread before had, of its number
			    */
	/* Of blocks that were only counted: */
	struct event_amount counted, freed, freed_by_others;
};

/* What all threads of a process have outstanding, or all calls that return to one address. */
struct event_sum {
	__s64 outstanding; /* bytes */
	__u64 full;	   /* not 0: its allocations are sent */
};

#define EVENT_FILTER_DIGITS 40

/* Which allocations are sent. */
struct event_filter {
	__u64 min_size, max_size;	/* bytes, both included */
	__u32 sum_processes, sum_sites; /* sums are kept of these, too */
	__u32 on;			/* is there any filter? */
	__u32 delays;			/* see event_filter_control.begin_ns */
	__u32 by_thread; /* threads are sent or only counted; so are processes and sites */
	__u32 accounts;	 /* sums are kept, for any of the triggers */
	__u32 samples;
	__u32 by_bytes; /* each byte may be sampled, else each allocation */
	/* Chance of each binary digit of the distance between two samples to be 1, in 2^-32. */
	__u32 digits[EVENT_FILTER_DIGITS];
};

/* What may change while recording. */
struct event_filter_control {
	__u64 begin_ns; /* CLOCK_MONOTONIC, from which on there is no delay; 0: not known yet */
	/* Outstanding bytes from which on a thread is sent, all of a process, and what all calls
	 * allocate that return to one address. */
	__s64 trigger_bytes, trigger_process, trigger_site;
	__u32 all_full; /* set by the recorder: what is not chosen is sent */
	__u32 chosen;	/* the same: something was chosen of a process */
	__u32 full;	/* set by the programs: addresses of blocks were not kept */
};

/* Addresses in the target. */
struct event_code_range {
	__u64 start, size;
};

#define EVENT_MAX_CODE	  8
#define EVENT_MAX_TARGETS 4096

/* Where a Go program has what an EVENT_PART tells: offsets into its structures, in bytes.  The
 * thread's runtime.g is at @tls from its control block, and @m in it leads to the runtime.m, with
 * the own stack's runtime.g first. */
struct event_go {
	__s32 tls;
	__u16 m, curg; /* in a runtime.g its m; in a runtime.m the goroutine that it runs */
	__u16 sp, hi;  /* in a runtime.g: the stack pointer when it was left, and the stack's end */
	__u32 on;      /* 0: it is no Go program, or not known; in memory that is shared with a
			  library, the number of the program of which this is true */
	__u64 mapped;  /* where the runtime's own calls of mmap return to; 0: not known */
};

/* What is known of a process that is recorded: whose calls are an allocator's own.  Set by the
 * recorder; a fork hands it on to the child. */
struct event_code {
	struct event_code_range libraries[EVENT_MAX_CODE]; /* allocators, C library, loader */
	struct event_code_range program; /* the executable, if it defines an allocator */
	__u64 stale;	 /* another program runs, where all this does not hold; set at its exec */
	__u64 is_static; /* it is statically linked: its C library's mappings are told by flags */
	struct event_go go;
};

_Static_assert(sizeof(struct event_small) == EVENT_SMALLEST, "a line with the kernel's header");
_Static_assert(sizeof(struct event_part) == EVENT_SMALLEST, "the same; and its bytes begin a line");
_Static_assert(sizeof(struct event_alloc) == 2 * EVENT_LINE - 8, "two lines; the stack begins one");

#endif
