/* ledger.h - whose the resident memory of a process is, and which blocks keep pages nearly empty
 *
 * Each byte of a page that is in memory is counted once: as part of a block, of what the program
 * mapped, of a stack, a file, or of what is left.
 */
#ifndef REPORT_LEDGER_H
#define REPORT_LEDGER_H

#include "report/ledger/keepers.h"
#include "report/ledger/residence.h"
#include "report/live/live.h"
#include "report/trace/module_image.h"

/* What a byte belongs to.  The order is that in which they are printed. */
enum ledger_kind {
	LEDGER_BLOCK,	  /* a recorded block that lives */
	LEDGER_MAPPED,	  /* a recorded mapping that lives, outside of blocks */
	LEDGER_OLDER,	  /* blocks in use of which nobody saw the allocation */
	LEDGER_FREE,	  /* free in the allocator's memory, as a walk through it found */
	LEDGER_ALLOCATOR, /* between these: the allocator's own; without a walk free, or from before
			   */
	LEDGER_STACK,
	LEDGER_FILE,   /* a file: code, data, what is mapped of it */
	LEDGER_SHARED, /* shared memory */
	LEDGER_CODE,   /* executable, and of no file: generated while it ran */
	LEDGER_KERNEL, /* what the kernel maps, as [vdso] */
	LEDGER_KEPT,   /* anonymous memory that nobody was seen to map, by what points to it */
	LEDGER_OTHER,  /* anonymous memory of which nothing is known */
	LEDGER_NR,
};

/* A part of it: blocks of one stack, or a file. */
struct ledger_row {
	enum ledger_kind kind;
	uint32_t stack;	      /* number, of LEDGER_BLOCK and LEDGER_MAPPED */
	const char *path;     /* of LEDGER_FILE and LEDGER_SHARED: borrowed from the residence; of
				 LEDGER_FREE where it is free: static */
	uint64_t bytes;	      /* in memory */
	struct keeper keeper; /* of LEDGER_KEPT, with its number in ledger.roots; */
	uint64_t mappings;    /* so many begin where it points to */
};

#define LEDGER_NO_STACK UINT32_MAX

/* What the blocks of a stack keep in memory beside themselves: pages of which at most a quarter is
 * in use are divided among the blocks in them by their bytes. */
struct ledger_pin {
	uint32_t stack;	 /* LEDGER_NO_STACK: of blocks that nobody saw allocated */
	uint64_t blocks; /* parts of them in such pages */
	double bytes;	 /* not in use in these pages */
};

/* All of a process. */
struct ledger {
	uint32_t tgid;
	uint64_t time_ns;
	uint64_t rss, pss, swap, lazy;
	uint64_t unseen; /* of rss: pages that came or went while it was looked */
	uint64_t sums[LEDGER_NR];
	struct live_amount blocks, mapped, older; /* that live; older: bytes that may be used */
	bool whole;				  /* all of it was walked: every block is known */
	bool walked;		 /* the allocator's memory: what is free is known */
	bool trims;		 /* malloc_trim() gives free pages back */
	uint64_t whole_pages;	 /* bytes of pages that are free and in memory */
	struct ledger_row *rows; /* most bytes first */
	size_t nr, room;
	struct ledger_pin *pins; /* most bytes first */
	size_t nr_pins;
	uint64_t pinned_pages, pinned_bytes; /* of which so much is not in use */
	struct root_names *roots;	     /* of keepers; NULL: none */
};

/* What it is made of; all is borrowed. */
struct ledger_input {
	const struct residence *of;
	const struct live *live; /* has its blocks, of stacks below nr_stacks */
	size_t nr_stacks;
	const struct module_paths *modules; /* whose files' data have memory behind them */
	struct mlk_reader *trace; /* that nobody else reads; NULL: keepers are not known */
};

/* Make it.  @ledger is to be released in any case.  Returns 0, -ENOMEM or -errno of read(2). */
int ledger_make(struct ledger *ledger, const struct ledger_input *input);

/* Static text for people and programs: "live blocks", ...; "blocks". */
const char *ledger_kind_text(enum ledger_kind kind);
const char *ledger_kind_word(enum ledger_kind kind);

/* Forget all. */
void ledger_release(struct ledger *ledger);

#endif
