/* print_block.c - see print_block.h */
#include "report/context/print_block.h"

#include <inttypes.h>
#include <string.h>

#include "report/base/text.h"

#define INDENT "      "

uint32_t block_stack(const struct replay *leaks, const struct live_block *block)
{
	return leaks->stacks->all[block->stack].id;
}

int block_want_around(struct stack_names *named, const struct replay *leaks,
		      const struct live_around *around)
{
	int err = 0;

	if (around->held)
		err = stack_names_want(named, block_stack(leaks, &around->holder));
	if (!err && around->has_before)
		err = stack_names_want(named, block_stack(leaks, &around->before));
	if (!err && around->has_after)
		err = stack_names_want(named, block_stack(leaks, &around->after));
	return err;
}

void print_thread(const struct block_printer *p, uint32_t tgid, uint32_t tid)
{
	const char *name = thread_names_get(p->leaks->chosen.threads, tgid, tid);

	fprintf(p->out, "thread %" PRIu32, tid);
	if (!name[0])
		return;
	fputs(" (", p->out);
	text_print(p->out, name);
	fputc(')', p->out);
}

static uint64_t since(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void print_seconds(FILE *out, uint64_t ns)
{
	fprintf(out, "%" PRIu64 ".%03" PRIu64 " s", ns / 1000000000, ns / 1000000 % 1000);
}

void print_time(const struct block_printer *p, uint64_t time_ns)
{
	print_seconds(p->out, since(p->start_ns, time_ns));
}

void print_block(const struct block_printer *p, const char *what, const struct live_block *block)
{
	char size[TEXT_NUMBER_MAX];

	fprintf(p->out, "  %s: 0x%" PRIx64 ", %s %s, allocated at ", what, block->addr,
		text_number(size, block->size), block->size == 1 ? "byte" : "bytes");
	print_time(p, block->time_ns);
	fputs(" (", p->out);
	print_seconds(p->out, since(block->time_ns, p->now_ns));
	fputs(p->gone ? " old at its end) by " : " old) by ", p->out);
	print_thread(p, block->tgid, block->tid);
	fputs(":\n", p->out);
	stack_names_print(p->named, p->out, block_stack(p->leaks, block), INDENT);
}

static void print_neighbour(const struct block_printer *p, const char *which, uint64_t distance,
			    const struct live_block *block)
{
	char what[128], number[TEXT_NUMBER_MAX];

	snprintf(what, sizeof(what), "%s, %s %s away", which, text_number(number, distance),
		 distance == 1 ? "byte" : "bytes");
	print_block(p, what, block);
}

void print_neighbours(const struct block_printer *p, const char *adjective,
		      const struct live_around *around)
{
	uint64_t end = around->holder.addr + around->holder.size;
	char which[64];

	snprintf(which, sizeof(which), "%sblock before", adjective);
	if (around->has_before)
		print_neighbour(p, which,
				around->holder.addr - around->before.addr - around->before.size,
				&around->before);
	else
		fprintf(p->out, "  %sblock before: none\n", adjective);
	snprintf(which, sizeof(which), "%sblock after", adjective);
	if (around->has_after)
		print_neighbour(p, which, around->after.addr - end, &around->after);
	else
		fprintf(p->out, "  %sblock after: none\n", adjective);
}

int block_want_near(struct stack_names *named, const struct replay *leaks,
		    const struct live_near *near)
{
	int err = 0;

	for (size_t i = 0; i < near->nr_before && !err; i++)
		err = stack_names_want(named, block_stack(leaks, &near->before[i]));
	for (size_t i = 0; i < near->nr_after && !err; i++)
		err = stack_names_want(named, block_stack(leaks, &near->after[i]));
	return err;
}

void print_near(const struct block_printer *p, const char *adjective, const struct live_near *near)
{
	const struct live_block *holder = &near->around->holder;
	char which[64];

	snprintf(which, sizeof(which), "%sblock before", adjective);
	if (!near->nr_before)
		fprintf(p->out, "  %s: none\n", which);
	for (size_t i = near->nr_before; i-- > 0;)
		print_neighbour(p, which,
				holder->addr - near->before[i].addr - near->before[i].size,
				&near->before[i]);
	snprintf(which, sizeof(which), "%sblock after", adjective);
	if (!near->nr_after)
		fprintf(p->out, "  %s: none\n", which);
	for (size_t i = 0; i < near->nr_after; i++)
		print_neighbour(p, which, near->after[i].addr - holder->addr - holder->size,
				&near->after[i]);
}

static void put_blocks(const struct block_printer *p, struct json *json, const char *key,
		       const struct live_block *all, size_t nr)
{
	json_open(json, key, '[');
	for (size_t i = 0; i < nr; i++)
		block_json(p, json, NULL, &all[i]);
	json_close(json, ']');
}

void near_json(const struct block_printer *p, struct json *json, const struct live_near *near)
{
	put_blocks(p, json, "before_all", near->before, near->nr_before);
	put_blocks(p, json, "after_all", near->after, near->nr_after);
}

void block_json(const struct block_printer *p, struct json *json, const char *key,
		const struct live_block *block)
{
	json_open(json, key, '{');
	json_number(json, "address", block->addr);
	json_number(json, "size", block->size);
	json_number(json, "given_out_ns", since(p->start_ns, block->time_ns));
	json_number(json, "age_ns", since(block->time_ns, p->now_ns));
	json_number(json, "pid", block->tgid);
	json_number(json, "thread", block->tid);
	json_text(json, "thread_name",
		  thread_names_get(p->leaks->chosen.threads, block->tgid, block->tid));
	stack_names_json(p->named, json, block_stack(p->leaks, block));
	json_close(json, '}');
}

void neighbours_json(const struct block_printer *p, struct json *json,
		     const struct live_around *around)
{
	if (around->has_before)
		block_json(p, json, "before", &around->before);
	if (around->has_after)
		block_json(p, json, "after", &around->after);
}
