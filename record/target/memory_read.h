/* memory_read.h - how much memory a process has, or the machine, as /proc tells it */
#ifndef RECORD_MEMORY_READ_H
#define RECORD_MEMORY_READ_H

#include "format/trace.h"
#include "record/target/target.h"

/*
 * Read the sums that the kernel keeps of @t, whatever its size in some microseconds.  Values that
 * this kernel does not tell are not known.  If nothing is, sample->error says why: ESRCH of a
 * process that has ended, or is about to.  t->task is set anew if that thread has ended.  tgid and
 * time are set, too.
 */
void memory_read(const struct target *t, struct mlk_memory *sample);

/* Open what tells PSS and the like of @t, at the cost of a walk through all its pages when it is
 * read.  Returns the descriptor or -errno. */
int memory_open_pages(const struct target *t);

/* Read @fd, such a file's descriptor, which is closed, into @sample.  Meanwhile the process's calls
 * of mmap may wait, and this may wait for them.  Returns 0 or -errno, and then they are not known.
 */
int memory_read_pages(int fd, struct mlk_memory *sample);

/* Read what /proc/meminfo says, as memory_read(). */
void memory_read_machine(struct mlk_memory *sample);

#endif
