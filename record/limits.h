/* limits.h - the limits of the recorder's own process, which are not its command's */
#ifndef RECORD_LIMITS_H
#define RECORD_LIMITS_H

/* Before anything is made or started: take all descriptors that are allowed, and have writes beyond
 * the limit on files' sizes fail rather than kill. */
void limits_raise(void);

/* In a child of fork(), before it becomes the command: all is as it was before limits_raise(), if
 * that was called. */
void limits_restore(void);

#endif
