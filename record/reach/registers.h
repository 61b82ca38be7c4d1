/* registers.h - the registers of a process's threads, none of which is stopped for that */
#ifndef RECORD_REACH_REGISTERS_H
#define RECORD_REACH_REGISTERS_H

#include <stddef.h>

#include "format/reach.h"
#include "record/target/target.h"

/* List all threads of @t in *@threads, to be freed.  Of those that wait in a system call the
 * arguments, the stack pointer and the program counter are known, of others nothing.  Returns 0,
 * -ENOMEM, or the -errno of opendir(3). */
int registers_read(const struct target *t, struct mlk_reach_thread **threads, size_t *nr);

/* The same of one thread, from what /proc/PID/task/TID/syscall says: @text. */
void registers_parse(struct mlk_reach_thread *thread, const char *text);

#endif
