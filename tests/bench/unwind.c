/* unwind.c - how fast recorded stacks are unwound: by unwind/, and by libdw in two ways
 *
 * For each trace given.  CPU time of one thread, the median of rounds in which all take turns; how
 * many times faster, the median of each round's ratio.
 *
 * warm: some stacks from all over the trace again and again, in the cache; in turn: so many of
 * events that follow one another, with the histories of their threads as the report has them; cold:
 * a pass over stacks that were never seen (the unwinder knows every other one), none of them in the
 * cache; cold, with history: all stacks in the order of the trace, not in the cache.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/measure.h"
#include "tests/bench/unwind_cold.h"
#include "tests/bench/unwind_libdw.h"
#include "tests/bench/unwind_trace.h"

#define ROUNDS	       7
#define COLD_ROUNDS    5
#define WARM_BYTES     (256u << 10)
#define WARM_STACKS    400
#define TRACE_BYTES    (192u << 20)
#define MIN_NS	       3e7  /* a round of one way */
#define EVENTS_BETWEEN 2000 /* two looks at the clock */

/* Stacks that are unwound again and again. */
struct set {
	struct recorded all[WARM_STACKS];
	size_t nr;
};

struct contest {
	struct recorded_trace *trace;
	struct set warm, turn;
	/* the first bytes of each, as close together as in a trace of such events */
	uint8_t slices[WARM_STACKS][DWUNW_CAPTURE_SLICE];
	size_t at; /* the stack at hand, of its set */
	struct opponent *opponent;
};

enum { FAST, SLICE, FULL, ADDRFRAME, DWFL, TURN, TURN_FAST, TURN_ADDRFRAME, NR_WAYS };

/* The ways to unwind one stack; each returns the number of frames. */
static size_t way_ours(struct contest *c, const struct recorded *r, uint64_t *pcs)
{
	const struct dwunw_sample sample = {.regs = &r->regs,
					    .stack = &r->stack,
					    .stale_from = UINT64_MAX,
					    .unchanged_from = UINT64_MAX};
	struct dwunw_result result;

	(void)c, (void)pcs;
	if (dwunw_capture(r->space, &sample, NULL, 0, &result))
		exit(1);
	return result.nr_frames;
}

static size_t way_full(struct contest *c, const struct recorded *r, uint64_t *pcs)
{
	(void)c, (void)pcs;
	return recorded_capture(r, &r->stack, &r->regs, DWUNW_SAMPLE_FULL).nr_frames;
}

static size_t way_128(struct contest *c, const struct recorded *r, uint64_t *pcs)
{
	struct dwunw_stack stack = r->stack;
	struct dwunw_regset regs;

	(void)pcs;
	stack.bytes = c->slices[c->at];
	if (stack.len > DWUNW_CAPTURE_SLICE)
		stack.len = DWUNW_CAPTURE_SLICE;
	dwunw_regset_prepare(&regs, r->regs.reg, DWUNW_MAX_ARCH_REGS,
			     r->regs.flags | DWUNW_EVENT_STACK_LIMIT);
	return recorded_capture(r, &stack, &regs, 0).nr_frames;
}

static size_t way_in_turn(struct contest *c, const struct recorded *r, uint64_t *pcs)
{
	(void)c, (void)pcs;
	return recorded_capture_next(r, r->unchanged_from).nr_frames;
}

static size_t way_addrframe(struct contest *c, const struct recorded *r, uint64_t *pcs)
{
	return opponent_addrframe(c->opponent, &r->regs, &r->stack, pcs);
}

static size_t way_dwfl(struct contest *c, const struct recorded *r, uint64_t *pcs)
{
	return opponent_dwfl(c->opponent, &r->regs, &r->stack, pcs);
}

static const struct way {
	const char *name;
	size_t (*unwind)(struct contest *c, const struct recorded *r, uint64_t *pcs);
	bool in_turn; /* else warm */
	int rival;    /* the way that it is compared with; or itself */
} ways[] = {
	[FAST] = {"fast", way_ours, false, FAST},
	[SLICE] = {"128 B", way_128, false, SLICE},
	[FULL] = {"all registers", way_full, false, FAST},
	[ADDRFRAME] = {"dwarf_cfi_addrframe", way_addrframe, false, FAST},
	[DWFL] = {"kept Dwfl", way_dwfl, false, FAST},
	[TURN] = {"in turn, with history", way_in_turn, true, TURN},
	[TURN_FAST] = {"in turn, without", way_ours, true, TURN_FAST},
	[TURN_ADDRFRAME] = {"in turn, addrframe", way_addrframe, true, TURN},
};

static struct {
	double frame[NR_WAYS][ROUNDS], event[NR_WAYS][ROUNDS];
} spent;

static const struct set *set_of(const struct contest *c, size_t w)
{
	return ways[w].in_turn ? &c->turn : &c->warm;
}

/* Unwind the stacks of way @w until that took MIN_NS. */
static void one_round(struct contest *c, size_t w, size_t round)
{
	static uint64_t pcs[DWUNW_MAX_FRAMES];
	const struct set *set = set_of(c, w);
	size_t frames = 0, events = 0;
	double start = clock_now_ns(), ns;

	/* reading the clock takes as long as some stacks */
	do {
		for (size_t until = events + EVENTS_BETWEEN; events < until; events += set->nr)
			for (c->at = 0; c->at < set->nr; c->at++)
				frames += ways[w].unwind(c, &set->all[c->at], pcs);
		ns = clock_now_ns() - start;
	} while (ns < MIN_NS);
	spent.frame[w][round] = ns / (double)frames;
	spent.event[w][round] = ns / (double)events;
}

/* Every @step th stack from number @from on, as many as are to be in the cache. */
static void choose(struct set *set, const struct recorded_trace *t, size_t from, size_t step)
{
	size_t bytes = 0;

	set->nr = 0;
	for (size_t i = from; i < t->nr && set->nr < WARM_STACKS; i += step) {
		bytes += t->all[i].stack.len;
		if (bytes > WARM_BYTES && set->nr)
			break;
		set->all[set->nr++] = t->all[i];
	}
}

static void choose_slices(struct contest *c)
{
	for (size_t i = 0; i < c->warm.nr; i++) {
		const struct dwunw_stack *stack = &c->warm.all[i].stack;

		memcpy(c->slices[i], stack->bytes,
		       stack->len < DWUNW_CAPTURE_SLICE ? stack->len : DWUNW_CAPTURE_SLICE);
	}
}

/* The first stack of each thread follows on the last of the round before. */
static void forget_what_was_before(struct set *set)
{
	for (size_t i = 0; i < set->nr; i++) {
		size_t first = 0;

		while (set->all[first].history != set->all[i].history)
			first++;
		if (first == i)
			set->all[i].unchanged_from = UINT64_MAX;
	}
}

/* The share of its stacks of which way @w finds the frames that we find. */
static double share_equal(struct contest *c, size_t w)
{
	static struct dwunw_frame frames[DWUNW_MAX_FRAMES];
	static uint64_t pcs[DWUNW_MAX_FRAMES];
	const struct set *set = set_of(c, w);
	size_t equal = 0;

	for (size_t i = 0; i < set->nr; i++) {
		const struct recorded *r = &set->all[i];
		uint32_t id = recorded_capture(r, &r->stack, &r->regs, 0).id;
		size_t nr = dwunw_stack_frames(c->trace->dw, id, frames, DWUNW_MAX_FRAMES),
		       same = 0;

		if (ways[w].unwind(c, r, pcs) == nr)
			while (same < nr && frames[same].pc == pcs[same])
				same++;
		equal += same == nr;
	}
	return 100.0 * (double)equal / (double)set->nr;
}

/* All ways must come to the same id, over the whole trace, also with a history. */
static void check_all(struct recorded_trace *t)
{
	for (size_t i = 0; i < t->nr; i++) {
		const struct recorded *r = &t->all[i];
		uint32_t full = recorded_capture(r, &r->stack, &r->regs, DWUNW_SAMPLE_FULL).id;

		if (recorded_capture_next(r, r->unchanged_from).id != full ||
		    recorded_capture(r, &r->stack, &r->regs, 0).id != full) {
			fprintf(stderr, "unwind: stack %zu comes out in two ways\n", i);
			exit(1);
		}
	}
}

struct opponents_map {
	struct opponent_module modules[256];
	size_t nr;
};

/* Note the files that frames were found in, each with the code that is mapped of it. */
static void note_modules(struct opponents_map *map, const struct recorded_trace *t)
{
	static struct dwunw_frame frames[DWUNW_MAX_FRAMES];

	for (size_t i = 0; i < t->nr; i++) {
		const struct recorded *r = &t->all[i];
		uint32_t id = recorded_capture(r, &r->stack, &r->regs, 0).id;
		size_t nr = dwunw_stack_frames(t->dw, id, frames, DWUNW_MAX_FRAMES);

		for (size_t f = 0; f < nr; f++) {
			const char *path = dwunw_module_path(t->dw, frames[f].module);
			uint64_t bias = frames[f].pc - frames[f].addr;
			struct opponent_module *m = map->modules;

			while (path && m < map->modules + map->nr && m->path != path)
				m++;
			if (!path || m == map->modules + 256)
				continue;
			if (m == map->modules + map->nr) {
				*m = (struct opponent_module){path, UINT64_MAX, 0, bias};
				map->nr++;
			}
			if (frames[f].pc - 1 < m->start)
				m->start = frames[f].pc - 1;
			if (frames[f].pc + 1 > m->end)
				m->end = frames[f].pc + 1;
		}
	}
}

static void print_ways(struct contest *c)
{
	for (size_t w = 0; w < NR_WAYS; w++) {
		double ratio[ROUNDS], frame[ROUNDS], event[ROUNDS];

		memcpy(frame, spent.frame[w], sizeof(frame));
		memcpy(event, spent.event[w], sizeof(event));
		for (size_t round = 0; round < ROUNDS; round++)
			ratio[round] = frame[round] / spent.frame[ways[w].rival][round];
		printf("  %-24s %8.2f ns a frame %8.1f M frames/s %8.0f ns a stack", ways[w].name,
		       median(frame, ROUNDS), 1e3 / median(frame, ROUNDS), median(event, ROUNDS));
		if (ways[w].rival != (int)w)
			printf("   x %.1f", median(ratio, ROUNDS));
		if (ways[w].unwind == way_addrframe || ways[w].unwind == way_dwfl)
			printf(", %.1f %% of stacks equal", share_equal(c, w));
		printf("\n");
	}
}

static void measure(const char *path)
{
	static struct opponents_map map;
	struct recorded_trace trace = recorded_trace_read(path, TRACE_BYTES);
	static struct contest contest;

	contest.trace = &trace;
	check_all(&trace);
	map.nr = 0;
	note_modules(&map, &trace);
	contest.opponent = opponent_new(map.modules, map.nr);
	choose(&contest.warm, &trace, 0, trace.nr / WARM_STACKS + 1);
	choose_slices(&contest);
	choose(&contest.turn, &trace, trace.nr / 2, 1);
	forget_what_was_before(&contest.turn);
	for (size_t turn = 0; turn < ROUNDS * NR_WAYS; turn++)
		one_round(&contest, turn % NR_WAYS, turn / NR_WAYS);
	printf("%s: %zu stacks (%zu warm, %zu in turn), %" PRIu32 " nodes\n", path, trace.nr,
	       contest.warm.nr, contest.turn.nr, dwunw_stack_limit(trace.dw));
	print_ways(&contest);
	measure_cold(path, TRACE_BYTES, &trace);
	opponent_free(contest.opponent);
	recorded_trace_release(&trace);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: unwind TRACE...\n");
		return 2;
	}
	for (int i = 1; i < argc; i++)
		measure(argv[i]);
	return 0;
}
