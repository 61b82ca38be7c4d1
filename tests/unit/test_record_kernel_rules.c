/* test_record_kernel_rules.c - rules on the kernel's stacks, made of samples
 *
 * The tables, the stacks and the programs are those of this test. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/kernel/kernel_orc.h"
#include "record/kernel/kernel_rules.h"

#define CODE  0xffffffff81000000ull
#define WORDS 32

/* What the tables say of the code before a return address, if anything. */
static struct kernel_orc_frame frames[64];
static bool has_tables;
/* Stacks, of addresses in units of 1 from CODE on; the last one is 0. */
static const uint64_t *stacks[4];
/* What the programs got. */
static uint64_t rules[64];
static size_t nr_rules, nr_forgotten;
static uint32_t wanted;

int kernel_orc_new(struct kernel_orc **out, const struct kmem_probes *probes,
		   const struct kallsyms *names)
{
	(void)probes;
	(void)names;
	*out = has_tables ? malloc(1) : NULL;
	return has_tables ? 0 : -ENOTSUP;
}

int kernel_orc_find(struct kernel_orc *o, uint64_t pc, struct kernel_orc_frame *frame)
{
	(void)o;
	*frame = frames[pc - CODE];
	return 0;
}

void kernel_orc_free(struct kernel_orc *o)
{
	free(o);
}

size_t kernel_stacks_pcs(const struct kernel_stacks *s, uint32_t number,
			 enum kernel_stacks_from from, uint64_t pcs[KMEM_STACK_DEPTH])
{
	size_t nr = 0;

	(void)s;
	(void)from;
	for (; stacks[number][nr]; nr++)
		pcs[nr] = CODE + stacks[number][nr];
	return nr;
}

bool kmem_probes_rule(struct kmem_probes *p, uint64_t rule)
{
	(void)p;
	rules[nr_rules++] = rule;
	return true;
}

void kmem_probes_forget_stacks(struct kmem_probes *p)
{
	(void)p;
	nr_forgotten++;
}

void kmem_probes_want_samples(struct kmem_probes *p, uint32_t nr)
{
	(void)p;
	wanted = nr;
}

static struct kernel_rules *begin(void)
{
	struct kernel_rules *r;

	memset(frames, 0, sizeof(frames));
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		frames[i].kind = KERNEL_ORC_OTHER;
	nr_rules = nr_forgotten = 0;
	assert_int_equal(kernel_rules_new(&r, NULL, NULL, NULL), 0);
	return r;
}

static int set_up(void **state)
{
	(void)state;
	has_tables = true;
	return 0;
}

/* Have @r learn of stack @number, whose first address is word @at. */
static void learn(struct kernel_rules *r, uint32_t number, uint32_t at)
{
	struct kmem_sample s = {.kind = KMEM_SAMPLE,
				.point = KMEM_POINT_CACHE,
				.stack = number,
				.known = KMEM_NO_STACK,
				.nr = WORDS};

	s.words[at] = CODE + stacks[number][0];
	kernel_rules_learn(r, &s);
}

static bool has_rule(uint64_t rule)
{
	for (size_t i = 0; i < nr_rules; i++)
		if (rules[i] == rule)
			return true;
	return false;
}

static void each_frame_has_its_rule(void **state)
{
	static const uint64_t stack[] = {10, 20, 30, 40, 50, 0};
	struct kernel_rules *r = begin();

	(void)state;
	stacks[0] = stack;
	/* The call is before its return address. */
	frames[9] = (struct kernel_orc_frame){.kind = KERNEL_ORC_CALL, .offset = 48, .saved = -16};
	frames[19] = (struct kernel_orc_frame){.kind = KERNEL_ORC_CALL, .offset = 8};
	frames[29] = (struct kernel_orc_frame){
		.kind = KERNEL_ORC_CALL, .cfa = KERNEL_ORC_FROM_FP, .offset = 16, .saved = -16};
	frames[39] = (struct kernel_orc_frame){
		.kind = KERNEL_ORC_CALL, .cfa = KERNEL_ORC_AT_FP, .offset = -8, .saved_at = true};
	frames[49].kind = KERNEL_ORC_END;
	learn(r, 0, 5);
	assert_int_equal(nr_rules, 6);
	assert_true(has_rule(KMEM_RULE(KMEM_POINT_CACHE, 5, 0)));
	assert_true(has_rule(KMEM_RULE(CODE + 10, 6, 2)));
	assert_true(has_rule(KMEM_RULE(CODE + 20, 1, 0)));
	assert_true(has_rule(KMEM_RULE(CODE + 30, 2, 2) | KMEM_RULE_FP));
	assert_true(has_rule(KMEM_RULE(CODE + 40, 1, 0) | KMEM_RULE_DRAP | KMEM_RULE_SAVED_AT));
	assert_true(has_rule(KMEM_RULE(CODE + 50, 0, 0) | KMEM_RULE_END));
	/* Nothing of it is new. */
	learn(r, 0, 5);
	assert_int_equal(nr_rules, 6);
	assert_int_equal(nr_forgotten, 0);
	kernel_rules_free(r);
}

static void what_no_rule_can_say_has_none(void **state)
{
	static const uint64_t stack[] = {10, 20, 30, 40, 0};
	struct kernel_rules *r = begin();

	(void)state;
	stacks[0] = stack;
	frames[9] = (struct kernel_orc_frame){.kind = KERNEL_ORC_CALL, .offset = 12};
	frames[19] = (struct kernel_orc_frame){.kind = KERNEL_ORC_CALL, .offset = 8 * KMEM_WORDS};
	frames[29] = (struct kernel_orc_frame){.kind = KERNEL_ORC_CALL, .offset = -8};
	frames[39] = (struct kernel_orc_frame){.kind = KERNEL_ORC_CALL, .offset = 8, .saved = 8};
	learn(r, 0, 5);
	assert_int_equal(nr_rules, 1); /* where it begins */
	kernel_rules_free(r);
}

/* What was interrupted is behind no call: the instruction itself is looked up, and the rule is that
 * of what would be returned to if it were one of a byte. */
static void interrupted_code_is_looked_up_itself(void **state)
{
	static const uint64_t stack[] = {10, 20, 30, 0};
	struct kernel_rules *r = begin();

	(void)state;
	stacks[0] = stack;
	frames[9].kind = KERNEL_ORC_REGS;
	frames[19] = (struct kernel_orc_frame){.kind = KERNEL_ORC_CALL, .offset = 8};
	frames[20] = (struct kernel_orc_frame){.kind = KERNEL_ORC_CALL, .offset = 24};
	frames[29].kind = KERNEL_ORC_END;
	learn(r, 0, 5);
	assert_true(has_rule(KMEM_RULE(CODE + 10, 0, 0) | KMEM_RULE_REGS));
	assert_true(has_rule(KMEM_RULE(CODE + 21, 3, 0)));
	assert_true(has_rule(KMEM_RULE(CODE + 30, 0, 0) | KMEM_RULE_END));
	assert_int_equal(nr_rules, 4);
	kernel_rules_free(r);
}

static void a_beginning_that_moved_is_told_again(void **state)
{
	static const uint64_t stack[] = {10, 0};
	struct kernel_rules *r = begin();

	(void)state;
	stacks[0] = stack;
	learn(r, 0, 5);
	learn(r, 0, 7);
	assert_int_equal(nr_forgotten, 1);
	assert_true(has_rule(KMEM_RULE(KMEM_POINT_CACHE, 7, 0)));
	kernel_rules_free(r);
}

static void check(struct kernel_rules *r, uint32_t known)
{
	const struct kmem_sample s = {.kind = KMEM_SAMPLE,
				      .point = KMEM_POINT_CACHE,
				      .stack = 0,
				      .known = known,
				      .nr = WORDS};

	kernel_rules_learn(r, &s);
}

static void rules_that_were_wrong_are_taken_back(void **state)
{
	static const uint64_t stack[] = {10, 20, 0}, other[] = {10, 30, 0}, again[] = {10, 20, 0};
	struct kernel_rules *r = begin();

	(void)state;
	stacks[0] = stack;
	stacks[1] = other;
	stacks[2] = again;
	frames[9] = (struct kernel_orc_frame){.kind = KERNEL_ORC_CALL, .offset = 8};
	learn(r, 0, 5);
	nr_rules = 0;
	/* The same stack under another number is none. */
	check(r, 2);
	assert_int_equal(kernel_rules_wrong(r), 0);
	assert_int_equal(nr_rules, 0);
	check(r, 1);
	assert_int_equal(kernel_rules_wrong(r), 1);
	assert_int_equal(nr_forgotten, 1);
	assert_int_equal(nr_rules, 2);
	assert_true(has_rule(KMEM_RULE(CODE + 10, 0, 0)));
	assert_true(has_rule(KMEM_RULE(CODE + 20, 0, 0)));
	/* Nor are they made again. */
	nr_rules = 0;
	learn(r, 0, 5);
	assert_int_equal(nr_rules, 0);
	kernel_rules_free(r);
}

static void who_learns_asks_for_more(void **state)
{
	static const uint64_t stack[] = {10, 0};
	struct kernel_rules *r = begin();
	uint32_t first = wanted;

	(void)state;
	assert_true(first > 0);
	assert_false(kernel_rules_ask(r));
	assert_int_equal(wanted, first / 2);
	for (int i = 0; i < 20; i++)
		assert_false(kernel_rules_ask(r));
	assert_true(wanted > 0 && wanted < first / 8);
	stacks[0] = stack;
	frames[9].kind = KERNEL_ORC_END;
	learn(r, 0, 5);
	assert_true(kernel_rules_ask(r));
	assert_int_equal(wanted, first);
	kernel_rules_free(r);
}

static void a_kernel_without_tables_gets_no_rules(void **state)
{
	static const uint64_t stack[] = {10, 0};
	struct kernel_rules *r;

	(void)state;
	has_tables = false;
	wanted = 0;
	r = begin();
	stacks[0] = stack;
	learn(r, 0, 5);
	assert_false(kernel_rules_ask(r));
	assert_int_equal(nr_rules, 0);
	assert_int_equal(wanted, 0);
	kernel_rules_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_frame_has_its_rule, set_up),
		cmocka_unit_test_setup(what_no_rule_can_say_has_none, set_up),
		cmocka_unit_test_setup(interrupted_code_is_looked_up_itself, set_up),
		cmocka_unit_test_setup(a_beginning_that_moved_is_told_again, set_up),
		cmocka_unit_test_setup(rules_that_were_wrong_are_taken_back, set_up),
		cmocka_unit_test_setup(who_learns_asks_for_more, set_up),
		cmocka_unit_test_setup(a_kernel_without_tables_gets_no_rules, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
