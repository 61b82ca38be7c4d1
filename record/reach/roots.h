/* roots.h - words that the kernel keeps for a process: of epoll, timers and stacks for signals */
#ifndef RECORD_REACH_ROOTS_H
#define RECORD_REACH_ROOTS_H

#include <stddef.h>

#include "format/reach.h"
#include "record/target/target.h"

#define ROOTS_MOST 1048576u /* that are kept, as the trace can have */

/* Such words; all zero: none. */
struct reach_roots {
	struct mlk_root *v;
	size_t nr, room;
};

/* Add one to @roots, unless @value is 0 or there are too many.  Returns 0 or -ENOMEM. */
int roots_add(struct reach_roots *roots, enum mlk_root_kind kind, uint32_t number, uint64_t value);

/* Add those of @t that files in /proc tell, of epoll and timers, by its helper where the kernel
 * refuses us.  A kernel without CONFIG_CHECKPOINT_RESTORE tells of no timers.  Returns 0, -ENOMEM
 * or the -errno of opendir(3). */
int roots_read(const struct target *t, struct reach_roots *roots);

/* Write those of @t to a file without a name.  Returns its descriptor or -errno. */
int roots_to_file(const struct target *t);

/* Add what a line of a file in /proc/PID/fdinfo says of epoll's descriptor @number, or what a line
 * of /proc/PID/timers says of the timer *@number.  Other lines say nothing.  Returns 0 or -ENOMEM.
 */
int roots_parse_epoll(struct reach_roots *roots, uint32_t number, const char *line);
int roots_parse_timer(struct reach_roots *roots, uint32_t *number, const char *line);

/* Forget them. */
void reach_roots_release(struct reach_roots *roots);

#endif
