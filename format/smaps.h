/* smaps.h - where a process's resident memory is, doc/trace-format.md 4.22 */
#ifndef MLK_SMAPS_H
#define MLK_SMAPS_H

#include <stddef.h>
#include <stdint.h>

#define MLK_SMAPS_PAGE 4096u

/* What /proc/PID/smaps says of a mapping, in bytes.  The order is that of the file: append. */
enum mlk_smaps_value {
	MLK_SMAPS_RSS,
	MLK_SMAPS_PSS,	/* pages of several processes in parts */
	MLK_SMAPS_ANON, /* of rss: pages that are no file's */
	MLK_SMAPS_SWAP,
	MLK_SMAPS_LAZY,	 /* of rss: freed lazily */
	MLK_SMAPS_DIRTY, /* of rss: pages that differ from the file's, or are anonymous */
	MLK_SMAPS_NR,
};

/* Pages that are in memory: [start, end), multiples of MLK_SMAPS_PAGE. */
struct mlk_page_run {
	uint64_t start, end;
};

/* A mapping, or more of the pages of one. */
struct mlk_smaps {
	uint32_t tgid, snapshot; /* as those of a struct mlk_pass; 0: of none */
	uint64_t time_ns;	 /* CLOCK_MONOTONIC; of one process and snapshot the same */
	uint64_t start, end;
	uint32_t perms;	  /* enum mlk_perm */
	uint64_t offset;  /* bytes into the file */
	const char *path; /* as the kernel prints it; "" for anonymous memory */
	uint32_t known;	  /* bit i: value[i] is; 0: this is more of the mapping before */
	uint64_t value[MLK_SMAPS_NR];
	size_t nr_pages;
	const struct mlk_page_run *pages; /* ascending; of private writable mappings alone. Borrowed
					  as the path: by the writer for the call, by the reader
					  until the next */
};

#endif
