/* pace.c - see pace.h */
#include "record/reach/pace.h"

#include <time.h>

#include "record/base/clock.h"

#define FEW	16 /* to have waited for a sixteenth of the time that it ran is chance */
#define TIMES	4  /* a pause is so many times as long as the work */
#define LONGEST UINT64_C(10000000000)

struct pace pace_begin(void)
{
	return (struct pace){.begin_ns = clock_now_ns(),
			     .ran_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID)};
}

uint64_t pace_pause(const struct pace *p)
{
	uint64_t took = clock_now_ns() - p->begin_ns,
		 ran = clock_ns(CLOCK_THREAD_CPUTIME_ID) - p->ran_ns;

	if (took <= p->slept_ns + ran + ran / FEW)
		return 0;
	return took < LONGEST / TIMES ? took * TIMES : LONGEST;
}
