/* kernel_rules.c - see kernel_rules.h */
#include "record/kernel/kernel_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/kernel/kernel_orc.h"

#define SLOTS	  (2 * KMEM_RULES) /* a power of 2 */
#define ASK_MOST  128
#define ASK_LEAST 2
#define WORD	  8

/* A return address that was looked up. */
struct known {
	uint64_t pc; /* 0: the slot is empty */
	bool regs;   /* what follows was interrupted */
};

struct kernel_rules {
	struct kmem_probes *probes;
	const struct kernel_stacks *stacks;
	struct kernel_orc *orc; /* NULL: no rules can be made */
	struct known *known;	/* open addressing */
	size_t nr;
	uint32_t begin[KMEM_POINT_NR]; /* where a walk begins; 0: not known */
	uint32_t ask;
	uint64_t wrong;
	bool learned; /* since the last question */
};

int kernel_rules_new(struct kernel_rules **out, struct kmem_probes *probes,
		     const struct kernel_stacks *stacks, const struct kallsyms *names)
{
	struct kernel_rules *r = calloc(1, sizeof(*r));
	int err;

	*out = NULL;
	if (!r)
		return -ENOMEM;
	r->probes = probes;
	r->stacks = stacks;
	r->known = calloc(SLOTS, sizeof(*r->known));
	err = r->known ? kernel_orc_new(&r->orc, probes, names) : -ENOMEM;
	if (err == -ENOMEM) {
		kernel_rules_free(r);
		return err;
	}
	r->ask = ASK_MOST;
	if (r->orc)
		kmem_probes_want_samples(probes, r->ask);
	*out = r;
	return 0;
}

/* The rule for @pc where the code before it has frame @f; 0: there is none. */
static uint64_t make_rule(uint64_t pc, const struct kernel_orc_frame *f)
{
	int32_t offset = f->cfa == KERNEL_ORC_AT_FP ? -f->offset : f->offset, saved = -f->saved;
	uint64_t rule;

	if (f->kind == KERNEL_ORC_END)
		return KMEM_RULE(pc, 0, 0) | KMEM_RULE_END;
	if (f->kind == KERNEL_ORC_REGS)
		return KMEM_RULE(pc, 0, 0) | KMEM_RULE_REGS;
	if (f->kind != KERNEL_ORC_CALL || offset < 0 || offset % WORD || saved < 0 ||
	    saved % WORD || offset / WORD >= KMEM_WORDS || saved / WORD >= KMEM_WORDS)
		return 0;
	rule = KMEM_RULE(pc, offset / WORD, saved / WORD);
	if (f->cfa != KERNEL_ORC_FROM_SP)
		rule |= f->cfa == KERNEL_ORC_AT_FP ? KMEM_RULE_DRAP : KMEM_RULE_FP;
	return f->saved_at ? rule | KMEM_RULE_SAVED_AT : rule;
}

/* What is known of @pc, which is looked up if it is new.  NULL: there are too many. */
static const struct known *look_up(struct kernel_rules *r, uint64_t pc)
{
	size_t at = (uint32_t)pc * 0x9e3779b1u % SLOTS;
	struct kernel_orc_frame f;
	uint64_t rule;

	while (r->known[at].pc && r->known[at].pc != pc)
		at = (at + 1) % SLOTS;
	if (r->known[at].pc)
		return &r->known[at];
	if (r->nr >= KMEM_RULES)
		return NULL;
	r->nr++;
	r->known[at].pc = pc;
	/* The call is before. */
	if (kernel_orc_find(r->orc, pc - 1, &f))
		return &r->known[at];
	r->known[at].regs = f.kind == KERNEL_ORC_REGS;
	rule = make_rule(pc, &f);
	if (rule)
		r->learned |= kmem_probes_rule(r->probes, rule);
	return &r->known[at];
}

/* Learn what belongs to @pcs, each of which is a return address, or what was interrupted. */
static void learn_rules(struct kernel_rules *r, const uint64_t *pcs, size_t nr)
{
	const struct known *known = NULL;

	for (size_t i = 0; i < nr; i++)
		/* What was interrupted is looked up as if a call were before it. */
		known = look_up(r, pcs[i] + (known && known->regs));
}

/* Find where the programs return to the kernel, which is the first of @pcs outside of programs. */
static void find_begin(struct kernel_rules *r, const struct kmem_sample *s, uint64_t pc)
{
	uint32_t at = 0;

	for (uint32_t i = 1; i < KMEM_BELOW && i < s->nr; i++) {
		if (s->words[i] != pc)
			continue;
		/* In several places: another sample will tell. */
		if (at)
			return;
		at = i;
	}
	if (!at || r->begin[s->point] == at)
		return;
	if (r->begin[s->point])
		kmem_probes_forget_stacks(r->probes);
	r->begin[s->point] = at;
	r->learned = kmem_probes_rule(r->probes, KMEM_RULE(s->point, at, 0));
}

/* A stack was another one than the rules say: one of them is wrong, and any may be. */
static void distrust(struct kernel_rules *r, const uint64_t *pcs, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		kmem_probes_rule(r->probes, KMEM_RULE(pcs[i], 0, 0));
	kmem_probes_forget_stacks(r->probes);
	r->wrong++;
}

/* The same stack has two numbers when the way to the programs changed, which is not part of it. */
static bool is_same(const struct kernel_rules *r, const struct kmem_sample *s)
{
	uint64_t a[KMEM_STACK_DEPTH], b[KMEM_STACK_DEPTH];
	size_t nr = kernel_stacks_pcs(r->stacks, s->stack, KERNEL_STACKS_CALLERS, a);

	return nr == kernel_stacks_pcs(r->stacks, s->known, KERNEL_STACKS_CALLERS, b) &&
	       !memcmp(a, b, nr * sizeof(*a));
}

void kernel_rules_learn(struct kernel_rules *r, const struct kmem_sample *sample)
{
	uint64_t pcs[KMEM_STACK_DEPTH];
	size_t nr;

	if (!r->orc || !sample->nr || sample->nr > KMEM_WORDS || !sample->point ||
	    sample->point >= KMEM_POINT_NR)
		return;
	nr = kernel_stacks_pcs(r->stacks, sample->stack, KERNEL_STACKS_TRACEPOINT, pcs);
	if (sample->known != KMEM_NO_STACK) {
		if (!is_same(r, sample))
			distrust(r, pcs, nr);
		return;
	}
	if (nr)
		find_begin(r, sample, pcs[0]);
	learn_rules(r, pcs, nr);
}

uint64_t kernel_rules_wrong(const struct kernel_rules *r)
{
	return r->wrong;
}

bool kernel_rules_ask(struct kernel_rules *r)
{
	bool learned = r->learned;

	if (!r->orc)
		return false;
	if (learned)
		r->ask = ASK_MOST;
	else if (r->ask > ASK_LEAST)
		r->ask /= 2;
	r->learned = false;
	kmem_probes_want_samples(r->probes, r->ask);
	return learned;
}

void kernel_rules_free(struct kernel_rules *r)
{
	if (!r)
		return;
	kernel_orc_free(r->orc);
	free(r->known);
	free(r);
}
