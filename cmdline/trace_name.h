/* trace_name.h - names of traces that have the process, the host, the time or a number in them */
#ifndef CMDLINE_TRACE_NAME_H
#define CMDLINE_TRACE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Can @name be replaced, by a process's number, too, if @has_pid, and by the trace's if @numbered?
 * Returns 0, or -EINVAL after one sentence was logged. */
int trace_name_check(const char *name, bool has_pid, bool numbered);

/* Does @name, which was checked, have a % with @c behind it? */
bool trace_name_has(const char *name, char c);

/* Write @name, which was checked, to the @size bytes at @path, with %p (@pid), %h (host), %t
 * (time), %n (@number) and %% replaced.  Returns 0 or -ENAMETOOLONG. */
int trace_name_expand(char *path, size_t size, const char *name, pid_t pid, unsigned int number);

#endif
