/* crew.h - threads that do the same work at the same time, each its part
 *
 * Only the thread that traces another may ask it anything by ptrace(2), and let it go.  Where many
 * are to be stopped for a short time, several threads share them.
 */
#ifndef RECORD_CREW_H
#define RECORD_CREW_H

#define CREW_MOST 4u /* threads, with the caller's */

struct crew; /* opaque; NULL: the caller alone */

/* Start threads beside the caller's, with its priority, so that there are @nr, of CREW_MOST; fewer
 * where there are not so many processors or they cannot be started.  NULL: none. */
struct crew *crew_new(unsigned int nr);

/* How many threads there are, with the caller's. */
unsigned int crew_size(const struct crew *c);

/* What thread @who of the crew does; 0 is the caller's.  Returns 0 or -errno. */
typedef int crew_fn(void *arg, unsigned int who);

/* Have all call @what with @arg, as nearly at the same moment as can be, and wait until all have
 * returned.  Returns 0, or what one of them returned. */
int crew_do(struct crew *c, crew_fn *what, void *arg);

/* End the threads of @c, which trace nothing any more then. */
void crew_free(struct crew *c);

#endif
