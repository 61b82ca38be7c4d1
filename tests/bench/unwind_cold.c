/* unwind_cold.c - see unwind_cold.h */
#include "tests/bench/unwind_cold.h"

#include <stdbool.h>
#include <stdio.h>

#include "tests/bench/measure.h"
#include "unwind/module/dwunw_state.h"

#define COLD_ROUNDS 5

/* ns a frame over every other stack, the ones between being known. */
static double cold_round(struct recorded_trace *t)
{
	size_t frames = 0;
	double start;

	for (size_t i = 0; i < t->nr; i += 2)
		recorded_capture(&t->all[i], &t->all[i].stack, &t->all[i].regs, 0);
	evict();
	start = clock_now_ns();
	for (size_t i = 1; i < t->nr; i += 2)
		frames += recorded_capture(&t->all[i], &t->all[i].stack, &t->all[i].regs, 0)
				  .nr_frames;
	return (clock_now_ns() - start) / (double)frames;
}

struct in_turn {
	double ns_frame[COLD_ROUNDS], ns_event[COLD_ROUNDS], taken;
};

static void turn_round(struct recorded_trace *t, struct in_turn *turn, size_t round)
{
	size_t frames = 0, taken = 0;
	double start;

	evict();
	start = clock_now_ns();
	for (size_t i = 0; i < t->nr; i++) {
		const struct recorded *r = &t->all[i];
		struct dwunw_result result = recorded_capture_next(r, r->unchanged_from);

		frames += result.nr_frames;
		taken += result.nr_taken_over;
	}
	start = clock_now_ns() - start;
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
	recorded_capture(r, &stack, &regs, 0);
}

/* Look at all places of @known in @fresh, which has seen none: one of each file, then the others.
 */
static void new_pc_round(const struct recorded_trace *known, const struct recorded_trace *fresh,
			 struct new_pcs *n, size_t round)
{
	const struct dwunw_frame_table *places = &known->dw->stacks->places;
	const struct recorded *r = &fresh->all[fresh->nr - 1];
	bool seen[1024] = {false}, *other = calloc(places->nr, sizeof(*other));
	double start = clock_now_ns();

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
	n->first[round] = (clock_now_ns() - start) / (double)n->nr_files;
	start = clock_now_ns();
	for (uint32_t i = 1; i < places->nr; i++) {
		if (!other[i])
			continue;
		look_at(r, &places->all[i]);
		n->nr++;
	}
	n->other[round] = (clock_now_ns() - start) / (double)n->nr;
	free(other);
}

void measure_cold(const char *path, size_t max_bytes, const struct recorded_trace *known)
{
	double cold[COLD_ROUNDS];
	struct in_turn turn;
	struct new_pcs pcs;

	for (size_t round = 0; round < COLD_ROUNDS; round++) {
		struct recorded_trace fresh = recorded_trace_read(path, max_bytes);

		new_pc_round(known, &fresh, &pcs, round);
		cold[round] = cold_round(&fresh);
		turn_round(&fresh, &turn, round);
		recorded_trace_release(&fresh);
	}
	printf("  %-24s %8.2f ns a frame %8.1f M frames/s\n", "cold, never seen",
	       median(cold, COLD_ROUNDS), 1e3 / median(cold, COLD_ROUNDS));
	printf("  %-24s %8.2f ns a frame %8.1f M frames/s %8.0f ns a stack, %.1f %% of frames "
	       "taken over\n",
	       "cold, with history", median(turn.ns_frame, COLD_ROUNDS),
	       1e3 / median(turn.ns_frame, COLD_ROUNDS), median(turn.ns_event, COLD_ROUNDS),
	       turn.taken);
	printf("  a new pc %.0f ns (of %zu; the first of each of %zu files %.0f ns)\n",
	       median(pcs.other, COLD_ROUNDS), pcs.nr, pcs.nr_files,
	       median(pcs.first, COLD_ROUNDS));
}
