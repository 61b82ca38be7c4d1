/* target.h - the process that is recorded: its identity, and where its allocator is */
#ifndef RECORD_TARGET_H
#define RECORD_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "record/privilege/helper.h"
#include "record/target/maps.h"

/* A process, and how to reach it: owns its pidfd; the helper is borrowed. */
struct target {
	pid_t pid;
	pid_t task; /* a thread of it that lives: /proc tells nothing of an ended main thread */
	int pidfd;  /* readable when the process has ended */
	struct helper *helper; /* does what the kernel refuses us; NULL: there is none */
	bool started;	       /* by us: it is our child */
	bool unprobed;	       /* nothing will be put into its code */
	bool hushed;	       /* why it cannot be recorded is not said: it was of many others */
	bool dispensable;      /* others are asked for, too: that it has gone is but a warning */
	bool gone;	       /* which was said of it */
	char comm[64];	       /* its name */
	char exe[PATH_MAX];
	char command[MLK_MAX_STRING + 1]; /* arguments joined by spaces */
};

/* Attach to process @pid by reference: nothing of it is changed; only helper, unprobed and
 * dispensable of @t are used.  On failure one sentence was logged. target_release() in any case.
 * Returns 0 or -errno. */
int target_open(struct target *t, pid_t pid);

/* Has the process ended? */
bool target_has_ended(const struct target *t);

/* Has the process ended and been waited for, so that its number may be another's by now?  If not,
 * all that was read of it before was its own. */
bool target_is_reaped(const struct target *t);

/* Has the process ended, or come so far on its way there that it has no memory any more?  What
 * /proc says of it then, or refuses to say, means nothing. */
bool target_is_ending(const struct target *t);

/* Is its program one for another processor, or a 32-bit one?  False also where that is not known.
 */
bool target_is_foreign(const struct target *t);

/* May this user still watch the process, which runs another program now?  It may have gained
 * rights by that.  If not, one sentence was logged.  Returns 0, -EACCES, or -ESRCH: it has ended,
 * of which nothing was logged. */
int target_check_again(struct target *t);

/* Of a process whose main thread ends: t->task is then another thread that lives, if there is one.
 */
void target_find_other(struct target *t);

/* Has its main thread ended? */
bool target_lacks_main(const struct target *t);

/* Read comm, exe and command again (after exec).  What cannot be read stays empty. */
void target_describe(struct target *t);

/* Close the descriptor of the process. */
void target_release(struct target *t);

/* Open a file of its /proc/PID.  Returns the descriptor, or -errno. */
int target_open_file(const struct target *t, enum helper_file file);

/* Look at @path below HELPER_ROOT or, "", at the file HELPER_EXE itself.  Returns 0 or -errno. */
int target_stat(const struct target *t, enum helper_file file, const char *path, struct stat *st);

/* As maps_read(), of @t. */
int target_read_maps(const struct target *t, struct maps *maps);

/* Open the file behind @m for reading: the very file that is mapped, also when it was replaced, or
 * lives in another mount namespace.  Returns the descriptor, or -errno. */
int target_open_mapped(const struct target *t, const struct mlk_mapping *m);

/* A path by which this process sees the file behind @m, for finding its debug file: in the target's
 * root if that is another. */
void target_path(const struct target *t, const struct mlk_mapping *m, char *path, size_t size);

/* Is @path a C library's, by its name? */
bool target_is_libc(const char *path);

/* The value of the auxiliary vector's entry @type; 0: it has none. */
uint64_t target_auxv(const struct target *t, uint64_t type);

/* Copy what /proc says of the system call in which its thread @tid waits, a line, into @text, of
 * @size bytes, at least 64.  Returns 0 or -errno. */
int target_read_syscall(const struct target *t, pid_t tid, char *text, size_t size);

/* Copy @len bytes of the target's memory.  Returns 0 or -errno. */
int target_read_memory(const struct target *t, uint64_t addr, void *to, size_t len);

#endif
