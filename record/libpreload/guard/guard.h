/* guard.h - bytes of our own around each block, which tell when it is written beyond its bounds */
#ifndef LIBPRELOAD_GUARD_H
#define LIBPRELOAD_GUARD_H

#include "record/libpreload/overrun.h"
#include "record/libpreload/preload.h"

/* Guard the blocks that are allocated from now on: the functions of preload_real are replaced by
 * some that do.  @secret is any number. */
void guard_begin(uint64_t secret);

/* The real functions, from then on. */
extern struct real guard_under;

/* A block of operator new @o, called with these arguments, guarded. */
struct preload_operator;
void *guard_new(const struct preload_operator *o, size_t size, uint64_t second, uint64_t third);

/* Have *@block, before it is given back, be the allocator's again; NULL where that is not known any
 * more.  False: it is not one of ours. */
bool guard_undress(void **block);

/* Report @block if it was written beyond its bounds; it need not be one of ours. */
void guard_check(const void *block, enum overrun_found found);

/* The same for all blocks there are, because the process ends. */
void guard_check_all(enum overrun_found found);

/* guard_signals.c: @taken: the same before a signal ends the process, from now on; else no more. */
void guard_signals(bool taken);

/* The state of the check at the end, for the recorder. */
void guard_note(enum preload_guard guard);

/* guard_check(), where blocks have guard bytes. */
static inline void guard_look(const void *block, enum overrun_found found)
{
	if (UNLIKELY(preload_state.guards))
		guard_check(block, found);
}

/* What was found, on its way to stubs.S and back: see wrap_guard_tell(). */
struct guard_finding {
	uint64_t addr, size;
	struct overrun overrun;
};

/* Tell the recorder, with the stack of the caller. */
void guard_tell(const struct guard_finding *finding);

/* guard_bitmap.c: which addresses are those of guarded blocks.  A mark is set and taken away
 * without a lock. */

/* Make room for the marks at @addr.  False: there is no memory. */
bool marks_cover(const void *addr);

/* Set the mark of @addr, a multiple of 16 that is covered. */
void marks_set(const void *addr);

/* Take it away.  Returns whether it was there. */
bool marks_clear(const void *addr);

/* Has @addr, which may be any, a mark? */
bool marks_has(const void *addr);

/* Call @visit for each mark; those set or taken away meanwhile may be missed. */
void marks_each(void (*visit)(uint8_t *addr, void *arg), void *arg);

#endif
