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

int top_state_tick(struct top_state *state, const struct follow *follow, uint64_t now_ns)
{
	const struct stacks *stacks = follow_replay(follow)->stacks;
	size_t at = state->nr_ticks % TOP_TREND;

	if (state->failed ||
	    array_cover(&state->all, &state->room, stacks->nr, sizeof(*state->all)))
		return -ENOMEM;
	for (size_t i = 0; i < stacks->nr; i++)
		state->all[i].bytes[at] = stacks->all[i].now.bytes;
	state->before_ns = state->nr_ticks ? state->tick_ns : state->start_ns;
	state->tick_ns = now_ns;
	state->known_before_ns = state->nr_ticks ? state->known_ns : follow_begun_ns(follow);
	state->known_ns = follow_known_ns(follow, now_ns);
	if (state->known_ns < state->known_before_ns)
		state->known_ns = state->known_before_ns;
	state->since_ns = state->known_ns - state->known_before_ns;
	state->nr_ticks++;
	return 0;
}

void top_state_redo(struct top_state *state)
{
	if (!state->nr_ticks)
		return;
	state->nr_ticks--;
	state->tick_ns = state->before_ns;
	state->known_ns = state->known_before_ns;
}

/* What stack @number had @back tables ago, 0: at the last one. */
static uint64_t bytes_then(const struct top_state *state, uint32_t number, uint64_t back)
{
	if (back >= state->nr_ticks || number >= state->room)
		return 0;
	return state->all[number].bytes[(state->nr_ticks - 1 - back) % TOP_TREND];
}

static struct top_row make_row(const struct top_state *state, const struct stack *stack,
			       uint32_t number)
{
	struct top_row row = {.stack = number,
			      .id = stack->id,
			      .now = stack->now,
			      .given = stack->allocated.blocks,
			      .taken = stack->freed.blocks};
	uint64_t born_ns = 0;
	int64_t grown;

	for (uint64_t back = 0; back < TOP_TREND; back++)
		row.trend[back] = bytes_then(state, number, back);
	grown = (int64_t)(row.trend[0] - row.trend[1]);
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

static void release_processes(struct top_table *table)
{
	for (size_t i = 0; i < table->nr_processes; i++)
		free(table->processes[i]);
	free(table->processes);
	table->processes = NULL;
	table->nr_processes = 0;
}

/* Set whose @row is, which is of process @number. */
static int name_process(struct top_table *table, const struct replay *leaks, uint32_t number,
			struct top_row *row)
{
	row->tgid = live_process(leaks->live, number).tgid;
	if (table->nr_processes < 2)
		return 0;
	if (!table->processes[number])
		table->processes[number] = processes_label(leaks->processes, row->tgid);
	row->process = table->processes[number];
	return row->process ? 0 : -ENOMEM;
}

int top_table_fill(struct top_table *table, const struct top_state *state,
		   const struct replay *leaks)
{
	const struct stacks *stacks = leaks->stacks;
	int err = 0;

	release_processes(table);
	table->nr = table->nr_stacks = 0;
	table->now_ns = state->tick_ns;
	table->nr_processes = live_nr_processes(leaks->live);
	table->processes = calloc(table->nr_processes + 1, sizeof(*table->processes));
	if (!table->processes) {
		table->nr_processes = 0;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < stacks->nr; i++) {
		const struct stack *stack = &stacks->all[i];
		struct top_row row;

		table->nr_stacks += stack->now.blocks != 0;
		if (!stack->now.blocks && !stack->now.bytes)
			continue;
		row = make_row(state, stack, i);
		err = name_process(table, leaks, stack->process, &row);
		if (!err)
			err = array_append(&table->rows, &table->nr, &table->room, &row,
					   sizeof(row));
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
	release_processes(table);
	free(table->rows);
	*table = (struct top_table){0};
}

void top_state_release(struct top_state *state)
{
	free(state->all);
	*state = (struct top_state){0};
}
