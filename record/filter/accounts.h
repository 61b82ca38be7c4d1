/* accounts.h - what the programs count of threads that are not recorded, on its way into the trace
 */
#ifndef RECORD_ACCOUNTS_H
#define RECORD_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/writer.h"

struct account_entry;
struct event_account;

/* Threads, at most: of further ones only the sums of what was left out tell. */
#define ACCOUNTS_MOST (1u << 20)

/* Of the threads that live, and of those that have ended since the last call of accounts_write(): a
 * table, owned, in which nr of room slots are used.  All zero is empty. */
struct accounts {
	struct account_entry *slots; /* open addressing by process and thread */
	size_t nr, room;
	uint64_t reading; /* how often they were read */
	uint64_t read_ns; /* when they were read last */
};

/* Read @fd, the programs' map thread_accounts, and take those out of it whose threads have ended,
 * by
 * @targets, their map of that name, and by /proc.  Returns 0 or -ENOMEM. */
int accounts_read(struct accounts *a, int fd, int targets);

/* All that is counted is read anew: what follows until the next call adds up. */
void accounts_begin_read(struct accounts *a);

/* There is @value of the thread @id, as in events; @ended: it has, before its process.  @taken: it
 * is taken out of where it was read, and what comes there is a new one.  Returns 0 or -ENOMEM. */
int accounts_note(struct accounts *a, uint64_t id, const struct event_account *value, bool ended,
		  bool taken);

/* Write what has changed since the last call, as of @time_ns, and forget the threads that have
 * ended.  Returns 0, -ENOMEM or what the writer returned. */
int accounts_write(struct accounts *a, struct mlk_writer *writer, uint64_t time_ns);

/* The next trace begins: it gets those of threads that live. */
void accounts_begin_trace(struct accounts *a);

/* Release what @a holds. */
void accounts_release(struct accounts *a);

#endif
