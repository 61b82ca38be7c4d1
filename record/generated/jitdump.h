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

/* Most records that are looked at of a process's file, and in one call. */
#define JITDUMP_MAX_RECORDS (UINT64_C(4) << 20)
#define JITDUMP_STEP	    16384u

/* Where a function begins in its source; of the code at addr. */
struct jitdump_place {
	uint64_t addr;
	char text[512]; /* "FILE:LINE"; "": not known */
};

/* A process's file, and how much of it was taken.  All zero: it has none. */
struct jitdump {
	struct name_source source;
	struct mlk_mapping marker; /* the sign; the path is owned, NULL if there was none */
	int fd;			   /* of the file, if */
	bool is_open;		   /* it could be opened */
	bool is_broken;		   /* what follows is not looked at */
	uint64_t offset;	   /* bytes taken, all of them whole records */
	uint64_t nr;		   /* records */
	struct jitdump_place place;
};

/* Is @m of @t the sign of a dump?  If so, its file is opened; it is no code. */
bool jitdump_meet(struct jitdump *j, const struct target *t, const struct mlk_mapping *m);

/* The same of all of @maps, which are removed there. */
void jitdump_take_markers(struct jitdump *j, const struct target *t, struct maps *maps);

/*
 * Take what the file has that was not taken, at most JITDUMP_STEP records.  *@list, which is empty,
 * is to be released together with *@text, which the names are in.  *@more: there is more.
 * @no_files: as code_list_add().  Returns 0 or -ENOMEM.
 */
int jitdump_read(struct jitdump *j, bool no_files, struct code_list *list, char **text, bool *more);

/* The number in its name; 0: there is no file. */
pid_t jitdump_number(const struct jitdump *j);

/* All is to be taken once more: a trace begins, or names of before do not hold any more. */
void jitdump_restart(struct jitdump *j);

/* The process runs another program, which has no dump so far. */
void jitdump_execed(struct jitdump *j);

/* Close the file. */
void jitdump_release(struct jitdump *j);

#endif
