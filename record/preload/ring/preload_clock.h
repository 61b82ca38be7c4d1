/* preload_clock.h - times of a preloaded library into nanoseconds of CLOCK_MONOTONIC */
#ifndef RECORD_PRELOAD_CLOCK_H
#define RECORD_PRELOAD_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define PRELOAD_CLOCK_KNOTS 16

/* What the time stamp counter was at some moments; between them it runs evenly. */
struct preload_clock {
	bool is_tsc; /* else times are nanoseconds already */
	unsigned int nr;
	struct {
		uint64_t ticks, ns;
	} knots[PRELOAD_CLOCK_KNOTS]; /* ascending, the newest last; of the counter alone */
	uint64_t read_ns, step_ns;    /* of CLOCK_MONOTONIC: read last, and its steps */
	uint64_t last_ns;
};

/* Choose the time stamp counter where the kernel itself trusts it; takes some milliseconds. */
void preload_clock_init(struct preload_clock *c);

/* The same, where the file @source names the kernel's clocksource; one that cannot be read is not
 * the counter. */
void preload_clock_init_from(struct preload_clock *c, const char *source);

/* The time now, as the library has it. */
uint64_t preload_clock_now(struct preload_clock *c);

/* The time in @ns from now. */
uint64_t preload_clock_after(struct preload_clock *c, uint64_t ns);

/* More than a store takes to become visible, in the clock's unit. */
uint64_t preload_clock_margin(const struct preload_clock *c);

/* @time in nanoseconds, never less than what was returned before. */
uint64_t preload_clock_ns(struct preload_clock *c, uint64_t time);

/* The same for an event, in steps of PRELOAD_CLOCK_STEP_NS: the last bits of its time are noise
 * that takes more of a trace than what the event says. */
uint64_t preload_clock_event_ns(struct preload_clock *c, uint64_t time);

#define PRELOAD_CLOCK_STEP_NS 256u /* the low byte of a time has a column of its own there */

#endif
