/* walk_plan.c - see walk_plan.h */
#include "record/target/walk_plan.h"

#define PAGE	       4096u
#define PAGE_NS	       100u /* the most that was measured */
#define MAPPING_NS     1000u
#define FIRST_PAUSE_NS UINT64_C(16000000000)
#define MOST_PAUSE_NS  UINT64_C(1024000000000)

/* Nanoseconds that what has come since the last walk is likely to take. */
static uint64_t guess_growth(const struct walk_plan *plan, const struct walk_size *size)
{
	const struct walk_size *then = &plan->size;
	uint64_t ns = 0;

	if (size->bytes > then->bytes)
		ns += (size->bytes - then->bytes) / PAGE * PAGE_NS;
	if (size->mappings > then->mappings)
		ns += (size->mappings - then->mappings) * MAPPING_NS;
	return ns;
}

/* What the last walk took, of as much of it as is still there.  Those mappings may all be. */
static uint64_t guess_rest(const struct walk_plan *plan, const struct walk_size *size)
{
	const struct walk_size *then = &plan->size;
	uint64_t mappings_ns = then->mappings * MAPPING_NS;

	if (size->bytes >= then->bytes || plan->took_ns <= mappings_ns)
		return plan->took_ns;
	return mappings_ns + (uint64_t)((double)(plan->took_ns - mappings_ns) *
					((double)size->bytes / (double)then->bytes));
}

bool walk_is_allowed(const struct walk_plan *plan, const struct walk_size *size, uint64_t now_ns)
{
	uint64_t growth_ns = guess_growth(plan, size);

	if (growth_ns > WALK_LONGEST_NS)
		return false;
	if (guess_rest(plan, size) + growth_ns <= WALK_LONGEST_NS)
		return true;
	return plan->again_ns && now_ns >= plan->again_ns;
}

void walk_note(struct walk_plan *plan, const struct walk_size *size, uint64_t took_ns,
	       uint64_t now_ns)
{
	uint64_t pause_ns = plan->pause_ns ? plan->pause_ns * 2 : FIRST_PAUSE_NS;

	if (took_ns <= WALK_LONGEST_NS)
		pause_ns = 0;
	else if (pause_ns > MOST_PAUSE_NS)
		pause_ns = MOST_PAUSE_NS;
	*plan = (struct walk_plan){.took_ns = took_ns,
				   .size = *size,
				   .pause_ns = pause_ns,
				   .again_ns = pause_ns ? now_ns + pause_ns : 0};
}
