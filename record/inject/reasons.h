/* reasons.h - why a process cannot be changed, in words behind "it", where several files say so */
#ifndef RECORD_INJECT_REASONS_H
#define RECORD_INJECT_REASONS_H

/* Its memory cannot be opened for writing, which is allowed to whoever may trace it, because of
 * @err, -errno: put why into @why, INJECT_WHY bytes. */
void reason_denied(char *why, int err);

#endif
