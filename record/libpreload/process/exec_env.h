/* exec_env.h - what the next program finds the recording by, in its environment
 *
 * At its start the library took itself out of the environment, so that nothing the target starts
 * carries it.  Here it is put back, for this process alone: not for a child of fork or vfork.  With
 * --follow it stays in the environment; here it is seen to that it is in one that was made anew.
 */
#ifndef PRELOAD_CARRY_H
#define PRELOAD_CARRY_H

#include <stdbool.h>

struct scratch; /* opaque */

/* @env, which is borrowed, for a program that begins now, and count that; @other_process: in
 * another than this one.  NULL: it is not to be recorded.  Else, where this program goes on, given
 * back by carry_drop(), and before by carry_back() if none began. */
struct scratch *carry(char *const *env, bool other_process);

/* The environment to begin it with: that of @s, valid as long as @s, or @env. */
char *const *carry_env(const struct scratch *s, char *const *env);

/* No program began: all goes on as before, but for errno. */
void carry_back(struct scratch *s);

/* Give @s and what it holds back. */
void carry_drop(struct scratch *s);

#endif
