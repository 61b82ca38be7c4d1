/* preload_clock.c - the time stamp counter, tied to CLOCK_MONOTONIC again and again
 *
 * The latter is adjusted by NTP, so that one factor does not hold for long.  Where the kernel takes
 * another clocksource, as on many virtual machines, times are those of CLOCK_MONOTONIC themselves.
 */
#include "record/preload/ring/preload_clock.h"

#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "record/base/clock.h"
#include "record/base/proc.h"

#define KNOT_NS	  200000000u
#define FIRST_NS  4000000 /* between the first two */
#define MARGIN_NS 20000u
#define AHEAD	  (1ull << 40) /* units that a time may lie beyond the last one that was read */
#define SOURCE	  "/sys/devices/system/clocksource/clocksource0/current_clocksource"

static uint64_t ticks_now(void)
{
	_mm_lfence();
	return __rdtsc();
}

/* Read both clocks at once: of some tries the one that took least. */
static void add_knot(struct preload_clock *c)
{
	uint64_t best = UINT64_MAX, ticks = 0, ns = 0;

	for (int i = 0; i < 5; i++) {
		uint64_t before = ticks_now(), at = clock_now_ns(), after = ticks_now();

		if (after - before < best) {
			best = after - before;
			ticks = before + best / 2;
			ns = at;
		}
	}
	if (c->nr == PRELOAD_CLOCK_KNOTS)
		memmove(c->knots, c->knots + 1, sizeof(c->knots[0]) * --c->nr);
	c->knots[c->nr].ticks = ticks;
	c->knots[c->nr++].ns = ns;
}

/* The kernel takes the counter as its clock only if it is the same on all processors. */
static bool kernel_trusts_tsc(const char *source)
{
	char name[8];

	return proc_read(name, sizeof(name), "%s", source) == 4 && !strcmp(name, "tsc\n");
}

void preload_clock_init(struct preload_clock *c)
{
	preload_clock_init_from(c, SOURCE);
}

void preload_clock_init_from(struct preload_clock *c, const char *source)
{
	struct timespec wait = {.tv_nsec = FIRST_NS}, step = {0};

	memset(c, 0, sizeof(*c));
	c->is_tsc = kernel_trusts_tsc(source);
	if (!c->is_tsc) {
		/* Without a timer of its own the kernel may count by ticks of milliseconds. */
		clock_getres(CLOCK_MONOTONIC, &step);
		c->step_ns = (uint64_t)step.tv_sec * 1000000000u + (uint64_t)step.tv_nsec;
		c->read_ns = clock_now_ns();
		return;
	}
	add_knot(c);
	nanosleep(&wait, NULL);
	add_knot(c);
}

uint64_t preload_clock_now(struct preload_clock *c)
{
	if (!c->is_tsc)
		return c->read_ns = clock_now_ns();
	if (clock_now_ns() - c->knots[c->nr - 1].ns > KNOT_NS)
		add_knot(c);
	return ticks_now();
}

/* Units of the clock in @ns. */
static uint64_t units_in(const struct preload_clock *c, uint64_t ns)
{
	if (!c->is_tsc)
		return ns;
	return (uint64_t)((double)(c->knots[1].ticks - c->knots[0].ticks) /
			  (double)(c->knots[1].ns - c->knots[0].ns) * (double)ns);
}

uint64_t preload_clock_after(struct preload_clock *c, uint64_t ns)
{
	return preload_clock_now(c) + units_in(c, ns);
}

uint64_t preload_clock_margin(const struct preload_clock *c)
{
	return units_in(c, MARGIN_NS + c->step_ns);
}

static uint64_t convert(const struct preload_clock *c, uint64_t ticks)
{
	unsigned int i = c->nr - 1, from;
	double rate;

	while (i > 1 && ticks < c->knots[i - 1].ticks)
		i--;
	rate = (double)(c->knots[i].ns - c->knots[i - 1].ns) /
	       (double)(c->knots[i].ticks - c->knots[i - 1].ticks);
	from = ticks >= c->knots[i].ticks ? i : i - 1;
	if (ticks < c->knots[from].ticks)
		return c->knots[from].ns; /* before the recording: no event is */
	return c->knots[from].ns + (uint64_t)((double)(ticks - c->knots[from].ticks) * rate);
}

static uint64_t any_ns(const struct preload_clock *c, uint64_t time)
{
	/* What a hostile target says must not make times overflow. */
	uint64_t max = (c->is_tsc ? c->knots[c->nr - 1].ticks : c->read_ns) + AHEAD;

	if (time > max)
		time = max;
	return c->is_tsc ? convert(c, time) : time;
}

static uint64_t not_before_last(struct preload_clock *c, uint64_t ns)
{
	if (ns > c->last_ns)
		c->last_ns = ns;
	return c->last_ns;
}

uint64_t preload_clock_ns(struct preload_clock *c, uint64_t time)
{
	return not_before_last(c, any_ns(c, time));
}

uint64_t preload_clock_event_ns(struct preload_clock *c, uint64_t time)
{
	return not_before_last(c, any_ns(c, time) & ~(uint64_t)(PRELOAD_CLOCK_STEP_NS - 1));
}
