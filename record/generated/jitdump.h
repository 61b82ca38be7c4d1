/* jitdump.h - the file in which a process dumps the code that it generates, for perf(1)
 *
 * Its name is jit-PID.dump, and the process maps its first page executable as a sign.  The format
 * is that of the kernel's tools/perf/Documentation/jitdump-specification.txt.  What V8, HotSpot's
 * agent and LLVM write there is read; the process may put anything there.
 */
#ifndef RECORD_JITDUMP_H
#define RECORD_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/generated/code_list.h"
#include "record/generated/name_source.h"
#include "record/target/maps.h"
#include "record/target/target.h"

/* Most that is taken of a process's files: records, and bytes of names; records in one call; and
 * files of a process, of which the one met last is read. */
#define JITDUMP_MAX_RECORDS (UINT64_C(4) << 20)
#define JITDUMP_MAX_NAMES   (UINT64_C(64) << 20)
#define JITDUMP_STEP	    16384u
#define JITDUMP_MAX_FILES   8

/* The begin of the file. */
struct jitdump_header {
	uint32_t magic, version, total_size, elf_mach, pad, pid;
	uint64_t timestamp, flags;
};

/* Where a function begins in its source; of the code at addr. */
struct jitdump_place {
	uint64_t addr;
	char text[512]; /* "FILE:LINE"; "": not known */
};

/* A process's file, and how much of it was taken.  All zero: it has none. */
struct jitdump {
	struct name_source source;
	struct mlk_mapping marker;	 /* the sign; the path is owned, NULL if there was none */
	uint64_t met[JITDUMP_MAX_FILES]; /* inodes of all signs */
	unsigned nr_met;
	int fd;			      /* of the file, if */
	bool is_open;		      /* it could be opened */
	bool is_broken;		      /* what follows is not looked at */
	struct jitdump_header header; /* as it was: another run of a runtime writes another */
	uint64_t offset;	      /* bytes taken, all of them whole records */
	uint64_t nr, names;	      /* records and bytes of names, since the trace began */
	struct jitdump_place place;
};

/* How it is read. */
struct jitdump_how {
	bool no_files; /* as code_list_add() */
	bool last;     /* what is not a whole record now never will be */
};

/* Is @m of @t the sign of a dump?  If so, its file is opened; it is no code. */
bool jitdump_meet(struct jitdump *j, const struct target *t, const struct mlk_mapping *m);

/* The same of all of @maps, which are removed there. */
void jitdump_take_markers(struct jitdump *j, const struct target *t, struct maps *maps);

/*
 * Take what the file of @t has that was not taken, at most JITDUMP_STEP records.  *@list, which is
 * empty, is to be released together with *@text, which the names are in.  *@more: there is more.
 * Returns 0 or -ENOMEM.
 */
int jitdump_read(struct jitdump *j, const struct target *t, const struct jitdump_how *how,
		 struct code_list *list, char **text, bool *more);

/* The number in its name; 0: there is no file. */
pid_t jitdump_number(const struct jitdump *j);

/* A trace begins: all is to be taken once more. */
void jitdump_begin_trace(struct jitdump *j);

/* Names of before do not hold any more: the same, of what the limits leave. */
void jitdump_restart(struct jitdump *j);

/* The process runs another program, which has no dump so far. */
void jitdump_execed(struct jitdump *j);

/* Close the file. */
void jitdump_release(struct jitdump *j);

#endif
