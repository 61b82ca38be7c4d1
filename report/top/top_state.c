/* top_state.c - see top_state.h */
#include "report/top/top_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"

void top_state_changed(void *arg, const struct live_change *change)
{
	struct top_state *state = arg;
	const struct live_block *block = change->block;
	struct live_amount more = live_change_of_outstanding(change);
	uint64_t born_ns = block->time_ns > state->start_ns ? block->time_ns - state->start_ns : 0;

	if (array_cover(&state->all, &state->room, (size_t)block->stack + 1, sizeof(*state->all)))
		state->failed = true;
	else
		/* what is taken away wraps, as the amount does */
		state->all[block->stack].born_us += more.blocks * (born_ns / 1000);
}

void top_state_forget(void *arg, uint32_t number)
{
	struct top_state *state = arg;

	if (number < state->room)
		state->all[number] = (struct top_stack){0};
}

int top_state_tick(struct top_state *state, const struct stacks *stacks, uint64_t now_ns)
{
	size_t at = state->nr_ticks % TOP_TREND;

	if (state->failed ||
	    array_cover(&state->all, &state->room, stacks->nr, sizeof(*state->all)))
		return -ENOMEM;
	for (size_t i = 0; i < stacks->nr; i++)
		state->all[i].bytes[at] = stacks->all[i].now.bytes;
	state->since_ns = now_ns - (state->nr_ticks ? state->tick_ns : state->start_ns);
	state->tick_ns = now_ns;
	state->nr_ticks++;
	return 0;
}

uint64_t top_state_bytes(const struct top_state *state, uint32_t number, uint64_t back)
{
	if (back >= state->nr_ticks || back >= TOP_TREND || number >= state->room)
		return 0;
	return state->all[number].bytes[(state->nr_ticks - 1 - back) % TOP_TREND];
}

static struct top_row make_row(const struct top_state *state, const struct stack *stack,
			       uint32_t number)
{
	struct top_row row = {.stack = number,
			      .now = stack->now,
			      .given = stack->allocated.blocks,
			      .taken = stack->freed.blocks};
	int64_t grown =
		(int64_t)(top_state_bytes(state, number, 0) - top_state_bytes(state, number, 1));
	uint64_t born_ns = 0;

	if (state->since_ns)
		row.rate = (double)grown * 1e9 / (double)state->since_ns;
	if (stack->allocated.blocks)
		row.freed = (double)stack->freed.blocks / (double)stack->allocated.blocks;
	if (stack->now.blocks)
		born_ns = state->start_ns + state->all[number].born_us / stack->now.blocks * 1000;
	if (stack->now.blocks && state->tick_ns > born_ns)
		row.age_ns = state->tick_ns - born_ns;
	return row;
}

static int compare_numbers(double a, double b)
{
	return a > b ? -1 : a < b;
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct top_row *x = a, *y = b;
	int order = 0;

	switch (*(const enum top_sort *)arg) {
	case TOP_BLOCKS:
		order = compare_numbers((double)x->now.blocks, (double)y->now.blocks);
		break;
	case TOP_RATE:
		order = compare_numbers(x->rate, y->rate);
		break;
	case TOP_AGE:
		order = compare_numbers((double)x->age_ns, (double)y->age_ns);
		break;
	default:
		break;
	}
	if (!order)
		order = compare_numbers((double)x->now.bytes, (double)y->now.bytes);
	return order ? order : x->stack < y->stack ? -1 : x->stack > y->stack;
}

int top_table_fill(struct top_table *table, const struct top_state *state,
		   const struct stacks *stacks)
{
	table->nr = table->nr_stacks = 0;
	table->now_ns = state->tick_ns;
	for (uint32_t i = 0; i < stacks->nr; i++) {
		const struct stack *stack = &stacks->all[i];
		struct top_row row;
		int err;

		table->nr_stacks += stack->now.blocks != 0;
		if (!stack->now.blocks && !stack->now.bytes)
			continue;
		row = make_row(state, stack, i);
		err = array_append(&table->rows, &table->nr, &table->room, &row, sizeof(row));
		if (err)
			return err;
	}
	return 0;
}

void top_table_sort(struct top_table *table, enum top_sort sort)
{
	if (table->nr)
		qsort_r(table->rows, table->nr, sizeof(*table->rows), compare_rows, &sort);
}

void top_table_release(struct top_table *table)
{
	free(table->rows);
	*table = (struct top_table){0};
}

void top_state_release(struct top_state *state)
{
	free(state->all);
	*state = (struct top_state){0};
}
