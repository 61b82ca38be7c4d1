/* ages.c - see ages.h */
#include "report/context/ages.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/text.h"

struct ages {
	uint64_t end_ns;
	struct live_amount (*all)[AGES_NR]; /* by number of stack */
};

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

static void add_block(void *arg, const struct live_block *block)
{
	struct ages *ages = arg;
	uint64_t age = ages->end_ns > block->time_ns ? ages->end_ns - block->time_ns : 0;
	struct live_amount *sum = &ages->all[block->stack][ages_class(age)];
	struct live_amount amount = sampling_amount(block);

	sum->blocks += amount.blocks;
	sum->bytes += amount.bytes;
}

int ages_new(struct ages **out, const struct replay *leaks)
{
	size_t nr = stacks_nr(replay_stacks(leaks));
	struct ages *ages = calloc(1, sizeof(*ages));

	*out = ages;
	if (!ages)
		return -ENOMEM;
	ages->end_ns = replay_chosen(leaks)->end_ns;
	ages->all = calloc(nr + 1, sizeof(*ages->all));
	if (!ages->all) {
		ages_free(ages);
		*out = NULL;
		return -ENOMEM;
	}
	chosen_each(replay_chosen(leaks), replay_live(leaks), add_block, ages);
	return 0;
}

const struct live_amount *ages_of(const struct ages *ages, uint32_t number)
{
	return ages->all[number];
}

void ages_print(FILE *out, const struct ages *ages, uint32_t number)
{
	const char *before = "age: ";
	char blocks[TEXT_NUMBER_MAX];

	for (size_t i = 0; i < AGES_NR; i++) {
		uint64_t nr = ages->all[number][i].blocks;

		if (!nr)
			continue;
		fprintf(out, "%s%s %s %s", before, text_number(blocks, nr), text_blocks(nr),
			classes[i].text);
		before = ", ";
	}
}

void ages_free(struct ages *ages)
{
	if (!ages)
		return;
	free(ages->all);
	free(ages);
}
