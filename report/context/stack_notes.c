/* stack_notes.c - see stack_notes.h */
#include "report/context/stack_notes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"
#include "report/base/sizes.h"
#include "report/base/text.h"

static const struct {
	uint64_t seconds; /* from this age on */
	const char *text;
} classes[AGES_NR] = {
	{0, "< 1 s"},
	{1, "1 s - 10 s"},
	{10, "10 s - 1 min"},
	{60, "1 min - 10 min"},
	{600, "10 min - 1 h"},
	{3600, "1 h - 10 h"},
	{36000, "10 h - 1 day"},
	{86400, "> 1 day"},
};

uint64_t ages_from_ns(size_t i)
{
	return classes[i].seconds * UINT64_C(1000000000);
}

const char *ages_text(size_t i)
{
	return classes[i].text;
}

size_t ages_class(uint64_t age_ns)
{
	size_t i = AGES_NR - 1;

	while (i && age_ns < ages_from_ns(i))
		i--;
	return i;
}

static void add_block_notes(void *arg, const struct live_block *block)
{
	struct stack_notes *notes = arg;
	uint64_t age = notes->end_ns > block->time_ns ? notes->end_ns - block->time_ns : 0;
	struct live_amount *sum = &notes->ages[block->stack][ages_class(age)];
	struct taker wanted = {.stack = block->stack, .tgid = block->tgid, .tid = block->tid};
	struct live_amount amount = sampling_amount(block);
	uint32_t number;

	if (notes->err || intern_pair(&notes->table, &wanted, sizeof(wanted), &number) < 0) {
		notes->err = -ENOMEM;
		return;
	}
	live_amount_add(sum, amount);
	live_amount_add(&notes->all[number].amount, amount);
}

static int compare_takers(const void *a, const void *b)
{
	const struct taker *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	if (x->amount.bytes != y->amount.bytes)
		return x->amount.bytes > y->amount.bytes ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

const struct taker *stack_notes_takers(const struct stack_notes *takers, uint32_t number,
				       size_t *nr)
{
	size_t from = array_first_from(takers->all, takers->nr, sizeof(*takers->all),
				       offsetof(struct taker, stack), number);
	size_t to;

	for (to = from; to < takers->nr && takers->all[to].stack == number;)
		to++;
	*nr = to - from;
	return takers->all + from;
}

/* Who got what is outstanding of stack @number, as ", by thread 1234 worker" or ", by 3 threads,
 * most by 1234 worker (17 blocks)"; nothing when nothing is. */
static void print_takers(FILE *out, const struct stack_notes *notes, uint32_t number)
{
	char buf[TEXT_NUMBER_MAX];
	const char *name;
	size_t nr;
	const struct taker *first = stack_notes_takers(notes, number, &nr);

	if (!nr)
		return;
	if (nr == 1)
		fputs(", by thread ", out);
	else
		fprintf(out, ", by %s threads, most by ", text_number(buf, nr));
	name = thread_names_get(notes->threads, first->tgid, first->tid);
	fprintf(out, "%" PRIu32 "%s", first->tid, *name ? " " : "");
	text_print(out, name);
	if (nr > 1)
		fprintf(out, " (%s %s)", text_number(buf, first->amount.blocks),
			text_blocks(first->amount.blocks));
}

/* How many blocks of stack @number are how old, as "age: 3 blocks < 1 s, 1 block 1 s - 10 s". */
static void print_ages(FILE *out, const struct stack_notes *notes, uint32_t number)
{
	const char *before = "age: ";
	char blocks[TEXT_NUMBER_MAX];

	for (size_t i = 0; i < AGES_NR; i++) {
		uint64_t nr = notes->ages[number][i].blocks;

		if (!nr)
			continue;
		fprintf(out, "%s%s %s %s", before, text_number(blocks, nr), text_blocks(nr),
			classes[i].text);
		before = ", ";
	}
}

int stack_notes_init(struct stack_notes *notes, const struct replay *leaks)
{
	int err;

	*notes = (struct stack_notes){.end_ns = leaks->chosen.end_ns,
				      .threads = leaks->chosen.threads,
				      .ages = calloc(leaks->stacks->nr + 1, sizeof(*notes->ages))};
	if (!notes->ages)
		return -ENOMEM;
	chosen_each(&leaks->chosen, leaks->live, add_block_notes, notes);
	if (notes->nr)
		qsort(notes->all, notes->nr, sizeof(*notes->all), compare_takers);
	err = notes->err;
	if (err)
		stack_notes_release(notes);
	return err;
}

/* In milliseconds from the start of the recording on. */
static uint64_t rounded(const struct report_data *export, uint64_t time_ns)
{
	return (report_data_since_start(export, time_ns) + 500000) / 1000000;
}

static void print_times(FILE *out, const struct report_data *export, const struct stack *stack)
{
	uint64_t first = rounded(export, stack->first_ns), last = rounded(export, stack->last_ns);

	if (first != last)
		fprintf(out, "allocated from %.3f to %.3f s", (double)first / 1e3,
			(double)last / 1e3);
	else
		fprintf(out, "allocated at %.3f s", (double)first / 1e3);
}

void stack_notes_lost(FILE *out, const struct report_data *export, struct live_amount lost,
		      const char *indent)
{
	char blocks[TEXT_NUMBER_MAX], bytes[SIZE_TEXT_MAX];

	if (export->by_verdict && lost.blocks)
		fprintf(out, "%s%s in %s %s lost: no pointer leads to %s\n", indent,
			size_text(bytes, lost.bytes), text_number(blocks, lost.blocks),
			lost.blocks == 1 ? "block is" : "blocks are",
			lost.blocks == 1 ? "it" : "them");
}

void stack_notes_print(FILE *out, const struct report_data *export, const struct stack_notes *notes,
		       size_t i, const char *indent)
{
	uint32_t number = export->view->chosen[i];

	fputs(indent, out);
	if (!view_stack(export->view, i)->allocs) {
		fputs("allocated before the recording\n", out);
		return;
	}
	print_ages(out, notes, number);
	fprintf(out, "\n%s", indent);
	print_times(out, export, view_stack(export->view, i));
	print_takers(out, notes, number);
	fputc('\n', out);
	stack_notes_lost(out, export, view_stack(export->view, i)->lost, indent);
}

void stack_notes_release(struct stack_notes *notes)
{
	intern_release(&notes->table);
	free(notes->ages);
	*notes = (struct stack_notes){0};
}
