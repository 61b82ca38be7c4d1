/* exec_env.h - what the next program finds the recording by, in its environment
 *
 * At its start the library took itself out of the environment, so that nothing the target starts
 * carries it.  Here it is put back, for this process alone: not for a child of fork or vfork.  With
 * --follow it stays in the environment; here it is put into a new one.
 */
#ifndef LIBPRELOAD_EXEC_ENV_H
#define LIBPRELOAD_EXEC_ENV_H

#include <stdbool.h>

#include "record/libpreload/process/begun.h"

struct scratch; /* opaque */

/* @env, which is borrowed, for @program, which begins now, and count that; @other_process: in
 * another than this one.  NULL: it is not to be recorded.  Else, where this program goes on, given
 * back by exec_env_drop(), and before by exec_env_back() if none began. */
struct scratch *carry(char *const *env, const struct begun_program *program, bool other_process);

/* The environment to begin it with: that of @s, valid as long as @s, or @env. */
char *const *exec_env_of(const struct scratch *s, char *const *env);

/* No program began: all goes on as before, except for errno. */
void exec_env_back(struct scratch *s);

/* Give @s and what it holds back. */
void exec_env_drop(struct scratch *s);

#endif
