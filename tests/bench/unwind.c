/* unwind.c - how fast recorded stacks are unwound: by unwind/, and by libdw in two ways
 *
 * For each trace given.  CPU time of one thread, the median of rounds in which all take turns.
 *
 * warm: some stacks again and again, in the cache; cold: a pass over stacks that were never seen
 * (the unwinder knows every other one), none of them in the cache; in turn: all stacks in the order
 * of the trace, not in the cache, each thread with its history.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/measure.h"
#include "tests/bench/unwind_libdw.h"
#include "tests/bench/unwind_trace.h"
#include "unwind/state.h"

#define ROUNDS	       7
#define COLD_ROUNDS    5
#define WARM_BYTES     (256u << 10)
#define WARM_STACKS    400
#define TRACE_BYTES    (192u << 20)
#define MIN_NS	       3e7  /* a round of one way */
#define EVENTS_BETWEEN 2000 /* two looks at the clock */

struct contest {
	struct recorded_trace *trace;
	struct recorded warm[WARM_STACKS];
	size_t nr_warm;
	/* the first bytes of each, as close together as in a trace of such events */
	uint8_t slices[WARM_STACKS][DWUNW_CAPTURE_SLICE];
	size_t at; /* the warm stack at hand */
	struct opponent *opponent;
};

static struct dwunw_result capture(const struct recorded *r, const struct dwunw_stack *stack,
				   const struct dwunw_regset *regs, uint32_t flags)
{
	struct dwunw_sample sample = {.regs = regs,
				      .stack = stack,
				      .stale_from = UINT64_MAX,
				      .unchanged_from = UINT64_MAX,
				      .flags = flags};
	struct dwunw_result result;

	if (dwunw_capture(r->space, &sample, NULL, 0, &result))
		exit(1);
	return result;
}

/* As the report unwinds it. */
static struct dwunw_sample recorded_sample(const struct recorded *r)
{
	return (struct dwunw_sample){.regs = &r->regs,
				     .stack = &r->stack,
				     .stale_from = UINT64_MAX,
				     .history = r->history,
				     .unchanged_from = r->unchanged_from};
}

/* The ways to unwind one stack; each returns the number of frames. */
static size_t way_ours(struct contest *c, const struct recorded *r, uint64_t *pcs)
{
	(void)c, (void)pcs;
	return capture(r, &r->stack, &r->regs, 0).nr_frames;
}

static size_t way_full(struct contest *c, const struct recorded *r, uint64_t *pcs)
{
	(void)c, (void)pcs;
	return capture(r, &r->stack, &r->regs, DWUNW_SAMPLE_FULL).nr_frames;
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
	return capture(r, &stack, &regs, 0).nr_frames;
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
} ways[] = {{"fast", way_ours},
	    {"128 B", way_128},
	    {"all registers", way_full},
	    {"dwarf_cfi_addrframe", way_addrframe},
	    {"kept Dwfl", way_dwfl}};

enum { FAST, SLICE, FULL, ADDRFRAME, DWFL, NR_WAYS };

static struct {
	double frame[NR_WAYS][ROUNDS], event[NR_WAYS][ROUNDS];
} warm;

/* Unwind the warm stacks in way @w until that took MIN_NS. */
static void warm_round(struct contest *c, size_t w, size_t round)
{
	static uint64_t pcs[DWUNW_MAX_FRAMES];
	size_t frames = 0, events = 0;
	double start = now_ns(), spent;

	/* reading the clock takes as long as some stacks */
	do {
		for (size_t until = events + EVENTS_BETWEEN; events < until; events += c->nr_warm)
			for (c->at = 0; c->at < c->nr_warm; c->at++)
				frames += ways[w].unwind(c, &c->warm[c->at], pcs);
		spent = now_ns() - start;
	} while (spent < MIN_NS);
	warm.frame[w][round] = spent / (double)frames;
	warm.event[w][round] = spent / (double)events;
}

static void choose_warm(struct contest *c)
{
	size_t bytes = 0, step = c->trace->nr / WARM_STACKS + 1;

	c->nr_warm = 0;
	for (size_t i = 0; i < c->trace->nr && c->nr_warm < WARM_STACKS; i += step) {
		bytes += c->trace->all[i].stack.len;
		if (bytes > WARM_BYTES && c->nr_warm)
			break;
		memcpy(c->slices[c->nr_warm], c->trace->all[i].stack.bytes,
		       c->trace->all[i].stack.len < DWUNW_CAPTURE_SLICE ? c->trace->all[i].stack.len
									: DWUNW_CAPTURE_SLICE);
		c->warm[c->nr_warm++] = c->trace->all[i];
	}
}

/* The share of warm stacks of which way @w finds the frames that we find. */
static double share_equal(struct contest *c, size_t w)
{
	static struct dwunw_frame frames[DWUNW_MAX_FRAMES];
	static uint64_t pcs[DWUNW_MAX_FRAMES];
	size_t equal = 0;

	for (size_t i = 0; i < c->nr_warm; i++) {
		const struct recorded *r = &c->warm[i];
		uint32_t id = capture(r, &r->stack, &r->regs, 0).id;
		size_t nr = dwunw_stack_frames(c->trace->dw, id, frames, DWUNW_MAX_FRAMES),
		       same = 0;

		if (ways[w].unwind(c, r, pcs) == nr)
			while (same < nr && frames[same].pc == pcs[same])
				same++;
		equal += same == nr;
	}
	return 100.0 * (double)equal / (double)c->nr_warm;
}

/* All ways must come to the same id, over the whole trace, also with a history. */
static void check_all(struct recorded_trace *t)
{
	for (size_t i = 0; i < t->nr; i++) {
		const struct recorded *r = &t->all[i];
		struct dwunw_sample sample = recorded_sample(r);
		struct dwunw_result result;
		uint32_t full = capture(r, &r->stack, &r->regs, DWUNW_SAMPLE_FULL).id;

		if (dwunw_capture(r->space, &sample, NULL, 0, &result) || result.id != full ||
		    capture(r, &r->stack, &r->regs, 0).id != full) {
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
		uint32_t id = capture(r, &r->stack, &r->regs, 0).id;
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

/* ns a frame over every other stack, the ones between being known. */
static double cold_round(struct recorded_trace *t)
{
	size_t frames = 0;
	double start;

	for (size_t i = 0; i < t->nr; i += 2)
		capture(&t->all[i], &t->all[i].stack, &t->all[i].regs, 0);
	evict();
	start = now_ns();
	for (size_t i = 1; i < t->nr; i += 2)
		frames += capture(&t->all[i], &t->all[i].stack, &t->all[i].regs, 0).nr_frames;
	return (now_ns() - start) / (double)frames;
}

struct in_turn {
	double ns_frame[COLD_ROUNDS], ns_event[COLD_ROUNDS], taken;
};

static void turn_round(struct recorded_trace *t, struct in_turn *turn, size_t round)
{
	size_t frames = 0, taken = 0;
	double start;

	evict();
	start = now_ns();
	for (size_t i = 0; i < t->nr; i++) {
		const struct recorded *r = &t->all[i];
		struct dwunw_sample sample = recorded_sample(r);
		struct dwunw_result result;

		if (dwunw_capture(r->space, &sample, NULL, 0, &result))
			exit(1);
		frames += result.nr_frames;
		taken += result.nr_taken_over;
	}
	start = now_ns() - start;
	turn->ns_frame[round] = start / (double)frames;
	turn->ns_event[round] = start / (double)t->nr;
	turn->taken = 100.0 * (double)taken / (double)frames;
}

struct new_pcs {
	double first[COLD_ROUNDS], other[COLD_ROUNDS]; /* ns each */
	size_t nr, nr_files;
};

/* Have a look at @place alone: its caller is above the bytes at hand. */
static void look_at(const struct recorded *r, const struct dwunw_place *place)
{
	static const uint8_t bytes[8];
	const struct dwunw_stack stack = {0x7ffd00000000, bytes, sizeof(bytes)};
	struct dwunw_regset regs = {.known = (1u << DWUNW_MAX_ARCH_REGS) - 1,
				    .reg[DWUNW_X86_64_RIP] = place->pc,
				    .reg[DWUNW_X86_64_RBP] = stack.addr,
				    .reg[DWUNW_X86_64_RSP] = stack.addr};

	if (place->flags & DWUNW_FRAME_FLAG_RETURN)
		regs.flags = DWUNW_EVENT_RETURN_ADDRESS;
	capture(r, &stack, &regs, 0);
}

/* Look at all places of @known in @fresh, which has seen none: one of each file, then the others.
 */
static void new_pc_round(const struct recorded_trace *known, const struct recorded_trace *fresh,
			 struct new_pcs *n, size_t round)
{
	const struct dwunw_places *places = &dwunw_stacks(known->dw)->places;
	const struct recorded *r = &fresh->all[fresh->nr - 1];
	bool seen[1024] = {false}, *other = calloc(places->nr, sizeof(*other));
	double start = now_ns();

	n->nr = n->nr_files = 0;
	for (uint32_t i = 1; i < places->nr; i++) {
		uint32_t module = places->all[i].module;

		if (module >= 1024 || seen[module]) {
			other[i] = module < 1024;
			continue;
		}
		seen[module] = true;
		look_at(r, &places->all[i]);
		n->nr_files++;
	}
	n->first[round] = (now_ns() - start) / (double)n->nr_files;
	start = now_ns();
	for (uint32_t i = 1; i < places->nr; i++) {
		if (!other[i])
			continue;
		look_at(r, &places->all[i]);
		n->nr++;
	}
	n->other[round] = (now_ns() - start) / (double)n->nr;
	free(other);
}

static void print_warm(struct contest *c)
{
	double ours = median(warm.frame[FAST], ROUNDS);

	for (size_t w = 0; w < NR_WAYS; w++) {
		double frame = median(warm.frame[w], ROUNDS), event = median(warm.event[w], ROUNDS);

		printf("  %-20s %8.2f ns a frame %8.1f M frames/s %10.0f ns a stack", ways[w].name,
		       frame, 1e3 / frame, event);
		if (w > SLICE)
			printf("   x %.1f", frame / ours);
		if (w >= ADDRFRAME)
			printf(", %.1f %% of stacks equal", share_equal(c, w));
		printf("\n");
	}
}

static void measure(const char *path)
{
	static struct opponents_map map;
	struct recorded_trace trace = recorded_trace_read(path, TRACE_BYTES);
	static struct contest contest;
	double cold[COLD_ROUNDS];
	struct in_turn turn;
	struct new_pcs pcs;

	contest.trace = &trace;
	check_all(&trace);
	map.nr = 0;
	note_modules(&map, &trace);
	contest.opponent = opponent_new(map.modules, map.nr);
	choose_warm(&contest);
	for (size_t turn = 0; turn < ROUNDS * NR_WAYS; turn++)
		warm_round(&contest, turn % NR_WAYS, turn / NR_WAYS);
	for (size_t round = 0; round < COLD_ROUNDS; round++) {
		struct recorded_trace fresh = recorded_trace_read(path, TRACE_BYTES);

		new_pc_round(&trace, &fresh, &pcs, round);
		cold[round] = cold_round(&fresh);
		turn_round(&fresh, &turn, round);
		recorded_trace_release(&fresh);
	}
	printf("%s: %zu stacks (%zu warm), %" PRIu32 " nodes\n", path, trace.nr, contest.nr_warm,
	       dwunw_stack_limit(trace.dw));
	print_warm(&contest);
	printf("  %-20s %8.2f ns a frame %8.1f M frames/s\n", "cold, never seen",
	       median(cold, COLD_ROUNDS), 1e3 / median(cold, COLD_ROUNDS));
	printf("  %-20s %8.2f ns a frame %8.1f M frames/s %10.0f ns a stack, %.1f %% of frames "
	       "taken over\n",
	       "cold, with history", median(turn.ns_frame, COLD_ROUNDS),
	       1e3 / median(turn.ns_frame, COLD_ROUNDS), median(turn.ns_event, COLD_ROUNDS),
	       turn.taken);
	printf("  a new pc %.0f ns (of %zu; the first of each of %zu files %.0f ns)\n",
	       median(pcs.other, COLD_ROUNDS), pcs.nr, pcs.nr_files,
	       median(pcs.first, COLD_ROUNDS));
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
