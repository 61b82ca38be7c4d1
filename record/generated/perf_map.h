/* perf_map.h - the names that a process writes of the code which it generates
 *
 * Runtimes that are asked to write the file /tmp/perf-PID.map for perf(1); PID is the process's
 * number in its own namespace, and /tmp that of its own root.  The process may put anything there.
 */
#ifndef RECORD_PERF_MAP_H
#define RECORD_PERF_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/generated/code_list.h"
#include "record/generated/name_source.h"
#include "record/target/target.h"

/* Most bytes that are taken of one process's file, and those that one call takes. */
#define PERF_MAP_MAX  ((uint64_t)64 << 20)
#define PERF_MAP_STEP ((size_t)4 << 20)

/* A process's file, and how much of it was taken.  All zero: nothing was looked for. */
struct perf_map {
	struct name_source source;
	int fd;			    /* as it was found last, if */
	bool is_open;		    /* it was */
	bool own_root;		    /* its /tmp is ours */
	pid_t inner;		    /* the process's number in its namespace; 0: not known */
	uid_t uid;		    /* and its user */
	int64_t started_s;	    /* by CLOCK_REALTIME, about */
	uint64_t offset;	    /* bytes taken, all of them whole lines */
	uint64_t taken;		    /* of all files, since the trace began */
	char tail[64];		    /* the last bytes taken, */
	size_t tail_len;	    /* so many: they tell whether the file was written anew */
	uint64_t first_ns, last_ns; /* when it was looked at */
};

/*
 * Take what the file of @t has that was not taken, at most PERF_MAP_STEP bytes.  *@list, which is
 * empty, is to be released together with *@text, which the names are in.  *@more: there is more.
 * @no_files: as code_list_read().  Returns 0 or -ENOMEM.
 */
int perf_map_read(struct perf_map *m, const struct target *t, bool no_files, struct code_list *list,
		  char **text, bool *more);

/* A trace begins: all is to be taken once more. */
void perf_map_begin_trace(struct perf_map *m);

/* Names of before do not hold any more: all is to be taken once more, of what the limit leaves. */
void perf_map_restart(struct perf_map *m);

/* The process runs another program. */
void perf_map_execed(struct perf_map *m);

/* Close the file. */
void perf_map_release(struct perf_map *m);

#endif
