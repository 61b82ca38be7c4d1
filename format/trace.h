/* trace.h - what a trace holds, as the writer takes it and the reader gives it back
 *
 * The bytes behind it are specified in doc/trace-format.md.  This library prints nothing; its
 * errors are 0, -errno, or one of enum mlk_error.
 */
#ifndef MLK_TRACE_H
#define MLK_TRACE_H

#include <stddef.h>
#include <stdint.h>

#define MLK_MAX_REGS	   34		  /* registers an event may carry; x86-64 has 17 */
#define MLK_MAX_STACK	   (64u << 10)	  /* stack bytes an event may carry */
#define MLK_MAX_ID	   32		  /* bytes of a module's id */
#define MLK_MAX_STRING	   4096		  /* bytes of a path or name, without the NUL */
#define MLK_MAX_IMAGE	   (1u << 30)	  /* bytes of a module's image */
#define MLK_BACKEND_MEMORY "memory alone" /* mlk_meta.backend where no calls were recorded */
#define MLK_SP_REG	   7 /* DWARF number of the stack pointer (x86-64 psABI figure 3.36) */

/* Errors that are no errno. */
enum mlk_error {
	MLK_E_MAGIC = -5001, /* not a trace */
	MLK_E_VERSION =
		-5002, /* a trace of a later major version, or with a required feature unknown */
	MLK_E_HEADER = -5003,  /* the file header is damaged */
	MLK_E_EMPTY = -5004,   /* not one whole chunk */
	MLK_E_CORRUPT = -5005, /* a chunk's content does not decode */
	/* of a trace's place */
	MLK_E_NO_FILE = -5006, /* it exists and is no regular file */
	MLK_E_USER = -5007,    /* a file of another user has the name */
	MLK_E_BUSY = -5008,    /* another process writes a trace to it */
	MLK_E_OTHER = -5009,   /* it is another file than it was */
	/* of a trace that is written: what others have done to it meanwhile */
	MLK_E_DELETED = -5010, /* it has no name any more */
	MLK_E_MOVED = -5011,   /* its name is another file's or does not exist */
	MLK_E_CHANGED = -5012, /* it is shorter or longer than what was written */
	/* of a cache beside a trace */
	MLK_E_CACHE = -5013,   /* its stacks are not those of the trace, or cannot be read */
	MLK_E_LINK = -5014,    /* it is a symbolic link, and is not followed; */
	MLK_E_NOWHERE = -5015, /* one to what does not exist */
};

/* Static text for an error of this library or a negative errno. */
const char *mlk_strerror(int err);

/* Who was recorded, where and how.  Strings are NUL-terminated, "" when not known. */
struct mlk_meta {
	const char *command; /* argv of the target, joined by spaces */
	const char *exe;     /* path of its executable */
	const char *comm;    /* its name as ps shows it */
	const char *hostname;
	const char *kernel;   /* uname -r */
	const char *machine;  /* uname -m; decides what the registers are */
	const char *recorder; /* "mleak 0.1.0" */
	const char *backend;  /* "bpf uprobe_multi", ..., MLK_BACKEND_MEMORY */
	uint64_t tgid;
	uint64_t start_ns;    /* CLOCK_MONOTONIC when recording began */
	uint64_t realtime_ns; /* CLOCK_REALTIME at the same moment */
	uint64_t stack_limit; /* most stack bytes taken for an event */
	uint64_t stack_mode;  /* enum mlk_stack_mode */
	uint64_t whole_life;  /* 1: recorded from the first allocation; 0: attached later */
	/* What was not recorded on purpose; 0: no such limit. */
	uint64_t sample_every;	/* one of so many allocations was recorded */
	uint64_t sample_bytes;	/* mean bytes from one recorded allocation to the next */
	uint64_t min_size;	/* bytes; smaller ones were not recorded */
	uint64_t max_size;	/* bytes; larger ones were not recorded */
	uint64_t trigger_bytes; /* outstanding bytes of a thread from which on it was recorded */
	/* The same of a process, and of all calls that return to one address: in the trace is what
	 * any of the three had recorded. */
	uint64_t trigger_process, trigger_site;
	uint64_t ring_size; /* bytes of the buffer between kernel and recorder */
	uint64_t of_kernel; /* 1: the kernel's own allocations, see struct mlk_origin */
	uint64_t dropped;   /* enum mlk_dropped */
	uint64_t guarded;   /* 1: what lies around each block was watched for overruns */
};

/* What a trace lost once its stacks were unwound. */
enum mlk_dropped {
	MLK_DROPPED_STACKS = 1, /* registers and stacks; by versions before 1.8 */
	/* these, what modules have beside names of functions, and, if no block was guarded, the
	 * addresses of blocks, which have numbers in their place: see format/summary.h */
	MLK_DROPPED_ALL = 2,
};

/* How much of the stacks a trace holds. */
enum mlk_stack_mode {
	MLK_STACK_RAW = 0, /* all of them */
	MLK_STACK_FILTERED =
		1, /* their first 128 bytes, and what an unwinder may need of the rest */
	MLK_STACK_REDACTED = 2, /* only what an unwinder may need, of registers too */
};

/* What happened. */
enum mlk_kind {
	MLK_ALLOC = 1, /* a block was allocated */
	MLK_FREE = 2,  /* a block is about to be freed */
	MLK_RELEASE =
		3, /* realloc is about to release its old block; its ALLOC or RESTORE follows */
	MLK_RESTORE = 4, /* that realloc failed: the old block lives */
	MLK_EXEC = 5,	 /* the process started another program: all its blocks are gone */
	MLK_UNMAP = 6,	 /* the range [addr, addr + size) is unmapped, whatever was in it */
	MLK_FORK = 7,	 /* the process begins as a copy of the process addr, with its blocks */
	MLK_EXIT = 8,	 /* the process ended */
	MLK_PAGES = 9, /* something was done to the pages of [addr, addr + size): func says what */
	MLK_KIND_NR,
};

/* Which function allocated. */
enum mlk_func {
	MLK_FUNC_MALLOC = 1,
	MLK_FUNC_CALLOC = 2,
	MLK_FUNC_REALLOC = 3,
	MLK_FUNC_POSIX_MEMALIGN = 4,
	MLK_FUNC_ALIGNED_ALLOC = 5,
	MLK_FUNC_MEMALIGN = 6,
	MLK_FUNC_VALLOC = 7,
	MLK_FUNC_PVALLOC = 8,
	MLK_FUNC_REALLOCARRAY = 9,
	MLK_FUNC_MMAP = 10,
	MLK_FUNC_MREMAP = 11,
	MLK_FUNC_NEW = 12, /* operator new */
	MLK_FUNC_NEW_ARRAY = 13,
	/* of the kernel */
	MLK_FUNC_KMALLOC = 14,
	MLK_FUNC_KMEM_CACHE_ALLOC = 15,
	MLK_FUNC_ALLOC_PAGES = 16,
	MLK_FUNC_ALLOC_PERCPU = 17,
	MLK_FUNC_NR,
};

/* What was done to pages: whether they need memory. */
enum mlk_pages {
	MLK_PAGES_ACCESSIBLE = 1, /* mprotect made them so; reserved ones are in use from then on */
	MLK_PAGES_GIVEN_BACK = 2, /* madvise: they take no memory until they are used again */
	MLK_PAGES_LAZILY = 3,	  /* the same, but only when the kernel needs it (MADV_FREE) */
	MLK_PAGES_RESIDENT = 4,	  /* they take memory: those given back were used again */
	MLK_PAGES_NR,
};

/* Bits of mlk_event.flags. */
enum mlk_event_flag {
	/* a free inside an allocator's call: it may name a block whose RELEASE was already logged
	 */
	MLK_EVENT_NESTED = 1 << 8,
	/* of a thread's stack, see mlk_writer_stack(): it ran while that was copied */
	MLK_EVENT_TORN = 1 << 9,
	/* of an ALLOC by mmap: it cannot be accessed (PROT_NONE), so it needs no memory yet */
	MLK_EVENT_RESERVED = 1 << 10,
	/* bits 0..7 of an ALLOC are those of enum dwunw_event_flag in unwind/dwunw_event.h */
};

struct mlk_code_frame; /* in format/code.h */

/* What happened in a thread at one moment. */
struct mlk_event {
	uint8_t kind; /* enum mlk_kind */
	uint8_t func; /* ALLOC: enum mlk_func; PAGES: enum mlk_pages; else 0 */
	uint16_t nr_regs;
	uint32_t flags;
	uint32_t tgid, tid;
	uint64_t time_ns; /* CLOCK_MONOTONIC; may run backwards by some microseconds between threads
			   */
	uint64_t addr;	  /* the block; FORK: tgid of the parent; not for EXEC and EXIT */
	uint64_t size;	  /* ALLOC: bytes requested; UNMAP, PAGES: of the range */
	/* ALLOC only: */
	uint64_t alloc_id;	     /* unique in the trace */
	uint64_t regs[MLK_MAX_REGS]; /* by DWARF number; regs[MLK_SP_REG] is where stack begins */
	const uint8_t
		*stack; /* borrowed: by the writer for the call, by the reader until the next */
	uint32_t stack_len;
	/*
	 * ALLOC, as the reader gives it: from this address up to the stack's end all bytes are
	 * those of the same thread's ALLOC given before this one, whose stack had the same end.
	 * Never too low.  UINT64_MAX: nothing is known to be the same.  The writer ignores it.
	 */
	uint64_t stack_same_from;
	/* ALLOC, given to the writer: the same, of the event of this thread that it was given
	 * before; 0: nothing is known.  What lies from there on need not be compared. */
	uint64_t stack_kept_from;
	/* ALLOC: frames of an interpreter, innermost first; borrowed as the stack.  As the reader
	 * gives it, equal frames of a chunk have the same number, from 1; 0: there are none. */
	const struct mlk_code_frame *frames;
	uint32_t nr_frames, frames_number;
};

/* What a mapping may be used for. */
enum mlk_perm { MLK_PERM_R = 1, MLK_PERM_W = 2, MLK_PERM_X = 4, MLK_PERM_SHARED = 8 };

/* What identifies a module: its kind in the first byte, then the bytes.  len 0: no module. */
struct mlk_id {
	uint8_t len;
	uint8_t bytes[MLK_MAX_ID];
};

/* What an id is made of. */
enum mlk_id_kind {
	MLK_ID_BUILD_ID = 1, /* the GNU build-id */
	MLK_ID_FILE = 2,     /* no build-id: device, inode, size and time of the file as recorded */
};

/* One line of /proc/PID/maps. */
struct mlk_mapping {
	uint64_t start, end; /* [start, end) */
	uint64_t offset;     /* bytes into the file */
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	uint32_t perms; /* enum mlk_perm */
	struct mlk_id id;
	const char *path; /* as the kernel prints it; "" for anonymous memory */
};

/* The address space of a process from time_ns on, until the next snapshot. */
struct mlk_maps {
	uint32_t tgid;
	uint64_t time_ns;
	size_t nr;
	const struct mlk_mapping *mappings; /* ascending, not overlapping */
};

/* A piece of a module's reduced ELF image; pieces of one module come in ascending order. */
struct mlk_module {
	struct mlk_id id;
	const char *path;
	uint64_t image_len; /* of the whole image; 0: the file could not be read */
	uint64_t offset;    /* of this piece */
	const uint8_t *piece;
	uint32_t piece_len;
};

/* A thread and its name. */
struct mlk_thread {
	uint32_t tgid, tid;
	const char *name;
};

/* A sum of blocks. */
struct mlk_sum {
	uint64_t blocks, bytes;
};

/*
 * What was counted of a thread up to time_ns, since the recording began: of the blocks that it
 * allocated and that are not in the trace, because the thread was only counted then.
 */
struct mlk_account {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t tgid, tid;
	uint32_t flags; /* enum mlk_account_flag */
	struct mlk_sum allocated;
	struct mlk_sum freed;		/* of these, by the thread itself */
	struct mlk_sum freed_by_others; /* and by other threads */
};

/* Bits of mlk_account.flags. */
enum mlk_account_flag {
	MLK_ACCOUNT_ENDED = 1 << 0, /* the thread had ended */
	/* what the next account of this number says is beside what this one says, and does not
	 * replace it */
	MLK_ACCOUNT_CLOSED = 1 << 1,
};

/* Where a block of the kernel's comes from.  An ALLOC has the number of its origin in register
 * MLK_ORIGIN_REG. */
struct mlk_origin {
	uint32_t number;     /* from 1 */
	uint32_t tgid;	     /* the process on whose behalf it was; 0: none, as in an interrupt */
	const char *process; /* its name */
	const char *cgroup; /* the path of its cgroup in the unified hierarchy, "" when not known */
	const char *cache;  /* the slab cache's name; "" for pages and percpu memory */
	const char *flags;  /* of the allocation, as GFP_KERNEL|__GFP_ZERO */
	uint32_t order;	    /* of pages: 2 to this power were allocated */
};

#define MLK_ORIGIN_REG 3 /* rbx, as DWARF numbers it */

/* The register of such an ALLOC that has the process whose user space its stack goes on in; 0:
 * none. */
#define MLK_SPACE_REG 0 /* rax */

/* What a sample tells of a process's memory, all in bytes; of the machine's from
 * MLK_MEMORY_TOTAL on.  The order is that of the file: append. */
enum mlk_memory_value {
	MLK_MEMORY_MAPPED, /* address space in use (VmSize) */
	MLK_MEMORY_RSS,	   /* resident: the sum of the next three but PSS */
	MLK_MEMORY_PSS,	   /* the same, pages that others map, too, in parts (Pss) */
	MLK_MEMORY_ANON,   /* anonymous pages (RssAnon): heaps, stacks, written private files */
	MLK_MEMORY_FILE,   /* pages of files (RssFile) */
	MLK_MEMORY_SHMEM,  /* shared memory and tmpfs (RssShmem) */
	MLK_MEMORY_SWAP,   /* on swap (VmSwap) */
	MLK_MEMORY_PAGE_TABLES, /* of the process (VmPTE); of the machine (PageTables) */
	MLK_MEMORY_PEAK,	/* most that was ever resident (VmHWM) */
	MLK_MEMORY_LAZY_FREE,	/* given back, but resident until the kernel needs it (LazyFree) */
	MLK_MEMORY_HUGE,	/* anonymous memory in huge pages (AnonHugePages) */
	/* of the machine, as /proc/meminfo has them */
	MLK_MEMORY_TOTAL,	  /* MemTotal */
	MLK_MEMORY_FREE,	  /* MemFree */
	MLK_MEMORY_AVAILABLE,	  /* MemAvailable */
	MLK_MEMORY_CACHED,	  /* Cached */
	MLK_MEMORY_SLAB_RECLAIM,  /* SReclaimable */
	MLK_MEMORY_SLAB_KEPT,	  /* SUnreclaim */
	MLK_MEMORY_KERNEL_STACKS, /* KernelStack */
	MLK_MEMORY_VMALLOC,	  /* VmallocUsed */
	MLK_MEMORY_PERCPU,	  /* Percpu */
	MLK_MEMORY_NR,
};

/* Static text for people: "RSS", "page tables", ... */
const char *mlk_memory_text(enum mlk_memory_value value);

/* A sample of a process's memory, or of the machine's. */
struct mlk_memory {
	uint32_t tgid;	  /* 0: of the machine */
	uint32_t error;	  /* of one that could not be taken, where nothing is known: the errno */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t known;	  /* bit i: value[i] is known */
	uint64_t value[MLK_MEMORY_NR]; /* by enum mlk_memory_value; 0 where it is not known */
};

/* Who marked a moment. */
enum mlk_mark_kind {
	MLK_MARK_SIGNAL = 0, /* somebody who sent SIGUSR2 to the recorder */
	MLK_MARK_TEXT = 1,   /* somebody who asked for it, with a text or without */
	MLK_MARK_CHANGE = 2, /* the recorder: what is recorded has changed, as the text says */
};

/* A moment that was marked while recording. */
struct mlk_mark {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t kind;	  /* enum mlk_mark_kind, or of a later version */
	const char *text; /* "": none */
};

/* What was lost, counted from the start of the recording.  The order is that of the file: append.
 */
enum mlk_loss {
	MLK_LOST_ALLOC,	  /* allocations that found the buffer full */
	MLK_LOST_FREE,	  /* frees that found the buffer full; their blocks will look leaked */
	MLK_LOST_RELEASE, /* realloc's releases that found the buffer full */
	MLK_LOST_RESTORE, /* failed reallocs that found the buffer full; their blocks will look
			     freed */
	MLK_LOST_RETURN,  /* calls of an allocator whose return was never seen */
	MLK_LOST_STATE,	  /* calls for which the kernel had no memory to note them */
	MLK_LOST_POINTER, /* posix_memalign results that could not be read */
	MLK_LOST_EXEC,	 /* programs or processes that were not recorded; in traces without the last
			    kind those exec notices, too */
	MLK_LOST_MAPS,	 /* notices of new mappings, or of threads, that the kernel dropped */
	MLK_LOST_MODULE, /* modules whose file could not be read */
	/* unmaps that found the buffer full, and what was done to pages; their blocks will look
	 * leaked */
	MLK_LOST_UNMAP,
	MLK_LOST_OVERRUN, /* overruns that found the buffer full */
	MLK_LOST_NOTICE,  /* exec notices that found the buffer full; the blocks of before will look
			     leaked */
	MLK_LOST_LOOK,	  /* processes that ended before their guarded blocks were checked */
	MLK_LOST_USER,	  /* allocations of the kernel whose stack of user space is missing */
	MLK_LOST_SUM,	  /* changes of what is outstanding that were not added up for --trigger */
	MLK_LOST_FRAMES,  /* allocations whose interpreted frames found the buffer full */
	MLK_LOST_CALLERS, /* allocations of whose interpreted frames not all were read */
	MLK_LOST_CODE,	  /* interpreted frames whose function is not known */
	MLK_LOSS_NR,
};

/* Static text, what @nr of it are called: "allocation" of 1, else "allocations"; ... */
const char *mlk_loss_text(enum mlk_loss kind, uint64_t nr);

/* What was not recorded on purpose.  The order is that of the file: append. */
enum mlk_skip {
	MLK_SKIPPED_SIZE,    /* allocations smaller or larger than requested */
	MLK_SKIPPED_SAMPLE,  /* allocations that were not among the sample */
	MLK_SKIPPED_TRIGGER, /* allocations of threads that were only counted */
	MLK_SKIPPED_DELAY,   /* allocations before the delay was over */
	MLK_SKIPPED_FREE,    /* frees of blocks that are not in the trace */
	/* recorded blocks that were not noted as such, for lack of room: all frees that may be
	 * theirs are in the trace from then on, marked nested */
	MLK_SKIPPED_UNKEPT,
	MLK_SKIPPED_CHILD, /* child processes, where children were not to be recorded */
	/* of the kernel's memory: */
	MLK_SKIPPED_SHORT, /* allocations that were freed before the recorder looked at them */
	MLK_SKIPPED_OWN,   /* the recorder's own allocations */
	MLK_SKIPPED_SLAB,  /* pages of slabs, whose objects are recorded */
	/* ranges that madvise gave back, of which it is not known whether they were used again */
	MLK_SKIPPED_PAGES,
	MLK_SKIP_NR,
};

/* Likewise: "allocations of another size than asked for", ... */
const char *mlk_skip_text(enum mlk_skip kind, uint64_t nr);

/* Counted from the start of the recording. */
struct mlk_losses {
	uint64_t count[MLK_LOSS_NR];	     /* by enum mlk_loss */
	uint64_t skipped[MLK_SKIP_NR];	     /* by enum mlk_skip: no losses */
	uint64_t skipped_bytes[MLK_SKIP_NR]; /* and their bytes, where these are known */
	/* For readers: kinds that the writer knew, which are the first so many. */
	uint64_t nr_kinds;
	/* CLOCK_MONOTONIC: what these figures are more than those before fell into this time.  For
	 * the writer, 0: from the last such time, to the last event. */
	uint64_t first_ns, last_ns;
};

#define MLK_MAX_OVERRUN 256 /* bytes of memory that an overrun may carry */

/* When it was found that a block had been written beyond its bounds. */
enum mlk_found {
	MLK_FOUND_FREE = 1,    /* when it was about to be freed */
	MLK_FOUND_REALLOC = 2, /* when it was about to be reallocated */
	MLK_FOUND_EXIT = 3,    /* alive when its process ended */
	MLK_FOUND_EXEC = 4,    /* alive when its process was about to run another program */
	MLK_FOUND_NR,
};

/* A block around which there was written. */
struct mlk_overrun {
	/* In the form of an MLK_ALLOC: which thread found it, when, and its registers and stack
	 * then.  addr and size are the block's, UINT64_MAX a size that is not known. */
	struct mlk_event at;
	uint8_t found;	  /* enum mlk_found */
	int64_t offset;	  /* of the first byte that was overwritten, from the block's beginning */
	uint32_t len;	  /* bytes from that to the last one, at most MLK_MAX_OVERRUN */
	uint32_t changed; /* how many of these have changed; at most len */
	/* They, len, as they were found; NULL: they are not in the trace.  Borrowed as at.stack. */
	const uint8_t *bytes;
};

/* Why a recording ended. */
enum mlk_end {
	MLK_END_EXITED = 1,   /* the target ended */
	MLK_END_SIGNAL = 2,   /* the recorder was asked to stop */
	MLK_END_DURATION = 3, /* the time requested is over */
	MLK_END_SIZE = 5,     /* the trace has the size requested */
	MLK_END_ERROR = 4,    /* the trace could not be written on */
	MLK_END_COPIED = 6,   /* it is a copy, made while the recording went on */
};

#endif
