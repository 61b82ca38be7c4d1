/* leader.h - the probes of a process whose main thread has ended
 *
 * The kernel knows by the memory of a link's thread, the main one, which processes the link is for,
 * and a thread that has ended has none.  The breakpoints stay until any process on the machine
 * detaches a probe at the same place: then the kernel checks who still wants it, and finds nobody.
 * So a perf event without a program, by a thread that lives, is put on each place: it keeps the
 * breakpoint there, and the links there see what they saw before.
 *
 * Links that are perf events themselves see nothing from the end of their thread on: they are put
 * in anew, by another one.
 */
#ifndef RECORD_LEADER_H
#define RECORD_LEADER_H

struct process;
struct session;

/* Has the main thread of @p ended, or the thread that took its place? Then make sure that its
 * probes stay.  Where some had gone, it is noted that calls may be missing. */
void leader_follow(struct session *s, struct process *p);

/* leader_follow() of those whose main thread is known to have ended since the last time. */
void leader_look(struct session *s);

#endif
