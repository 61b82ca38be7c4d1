/* kmem_stack.h - the number of the stack that a program stands on
 *
 * Included by kmem.bpf.c only.  The kernel's walk takes some microseconds, so stacks are known by
 * rules: see kmem.h.
 */
#ifndef MLEAK_BPF_KMEM_STACK_H
#define MLEAK_BPF_KMEM_STACK_H

#include "bpf/kmem_state.h"

#define THREAD_SIZE 32768  /* at most: arch/x86/include/asm/page_64_types.h, with KASAN */
#define KNOWN	    65536u /* at most so many: a number takes 16 bits */
#define NUMBER	    0xffffu
#define FRAMES	    64

/* One of so many stacks that are known is walked, too. */
const volatile __u32 check_each = 1024;
/* The recorder takes so many samples for now. */
__s32 samples_wanted;
/* Which stacks were sent since it asked, by some bits of their number: another one tells more. */
__u8 sampled[256];
__u8 samples_round;
/* Changed by the recorder when a rule was wrong: what was known by it is forgotten. */
__u64 rules_seed;

/* Rules, written by the recorder. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, KMEM_RULES);
	__type(key, __u32);
	__type(value, __u64);
} rules SEC(".maps");

/* Numbers of stacks, in the lower bits of what identifies them; by these bits of that. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KNOWN);
	__type(key, __u32);
	__type(value, __u64);
} known_stacks SEC(".maps");

/* A frame that the rules have led to. */
struct frame {
	__u64 pc, fp;
	__u32 at;   /* the word above its return address: the stack pointer after the return */
	__u32 next; /* what was interrupted is not behind a call: 1, else 0 */
};

/* Words of a stack. */
struct copied {
	__u64 word[KMEM_WORDS];
	__u32 uses; /* changes when an interrupt uses it, too */
	__u32 checks;
	__u64 zero; /* which the verifier does not know */
};

/* For each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct copied);
} copies SEC(".maps");

/* The kernel's walk.  One place calls it, as it tells the programs' frames, too. */
static __noinline __u32 walk_stack(void *ctx)
{
	long id = bpf_get_stackid(ctx, &stacks, 0);

	if (id >= 0)
		return (__u32)id;
	if (id == -EEXIST) {
		id = bpf_get_stackid(ctx, &spare_stacks, 0);
		if (id >= 0)
			return (__u32)id + KMEM_STACKS;
	}
	count(KMEM_LOST_STACK, 1);
	return KMEM_NO_STACK;
}

/* The difference of two pointers, which is a number for the verifier; a pointer is none. */
#define DISTANCE(from, to)                                       \
	({                                                       \
		__u64 d_ = (__u64)(to);                          \
		asm volatile("%0 -= %1" : "+r"(d_) : "r"(from)); \
		d_;                                              \
	})

/* The bytes from @ctx, the arguments of a tracepoint, to the registers of user space, which are at
 * the end of the task's stack, in threads of the kernel, too. */
static __always_inline __u64 bytes_above(void *ctx)
{
	return DISTANCE(ctx, bpf_task_pt_regs(bpf_get_current_task_btf()));
}

/* Is the program on the stack of the task?  Else it is in an interrupt. */
static __always_inline int is_on_stack(void *ctx)
{
	return bytes_above(ctx) < THREAD_SIZE;
}

/* The stack of the task as far as it matters, of which some words are copied. */
struct extent {
	__u64 from; /* address of the first word */
	__u32 nr;   /* words; 0: the program is not on this stack, or they are too many */
};

/* What there is of the task's stack around @ctx. */
static __always_inline struct extent find_extent(void *ctx)
{
	__u64 at = DISTANCE(bpf_get_current_task_btf(), ctx) + bpf_get_current_task();
	__u64 bytes = bytes_above(ctx) + 8 * KMEM_BELOW;
	struct extent e = {.from = at - 8 * KMEM_BELOW};

	if (bytes <= 8 * KMEM_WORDS)
		e.nr = (__u32)bytes / 8;
	return e;
}

/* The rule for @pc; 0: there is none. */
static __always_inline __u64 rule_for(__u32 pc)
{
	__u32 at = KMEM_RULE_AT(pc);
	__u64 *rule = bpf_map_lookup_elem(&rules, &at);

	if (rule && (__u32)*rule == pc)
		return *rule;
	at ^= KMEM_RULE_OTHER;
	rule = bpf_map_lookup_elem(&rules, &at);
	return rule && (__u32)*rule == pc ? *rule : 0;
}

/* The word at @at of the stack. */
static __always_inline __u64 word_at(const struct copied *c, __u32 at)
{
	return c->word[at & (KMEM_WORDS - 1)];
}

/* Go from @f, which called nothing but was interrupted, to what it interrupted.  False: it was user
 * space, or cannot be told. */
static __always_inline int leave_regs(const struct copied *c, const struct extent *e,
				      struct frame *f)
{
	__u32 at = f->at;
	__u64 sp = (word_at(c, at + KMEM_REGS_SP) - e->from) / 8;

	if (at + KMEM_REGS_NR >= e->nr || sp < at + KMEM_REGS_NR || sp >= e->nr ||
	    word_at(c, at + KMEM_REGS_CS) & 3)
		return 0;
	f->pc = word_at(c, at + KMEM_REGS_PC);
	f->fp = word_at(c, at + KMEM_REGS_FP);
	f->at = (__u32)sp;
	f->next = 1;
	return 1;
}

/* Go from @f to its caller by @rule.  False: the rule does not fit. */
static __always_inline int leave_call(const struct copied *c, const struct extent *e, __u64 rule,
				      struct frame *f)
{
	__u64 cfa = f->at + KMEM_RULE_WORDS(rule);
	__u32 saved = KMEM_RULE_SAVED(rule);

	if (rule & KMEM_RULE_RARE) {
		__u64 fp = (f->fp - e->from) / 8;

		if (rule & KMEM_RULE_FP)
			cfa = fp + KMEM_RULE_WORDS(rule);
		else if (rule & KMEM_RULE_DRAP)
			cfa = (word_at(c, (__u32)fp - KMEM_RULE_WORDS(rule)) - e->from) / 8;
		if (fp >= e->nr || cfa <= f->at)
			return 0;
		if (rule & KMEM_RULE_SAVED_AT)
			f->fp = word_at(c, (__u32)fp);
	}
	if (cfa > e->nr)
		return 0;
	if (saved)
		f->fp = word_at(c, (__u32)cfa - saved);
	f->pc = word_at(c, (__u32)cfa - 1);
	f->at = (__u32)cfa;
	f->next = 0;
	return 1;
}

/* Go by the rules through the words.  What identifies the stack; 0: they do not lead to its end.
 * Not static: the verifier follows it once, not for each program. */
__noinline __u64 follow_rules(const struct copied *c, const struct extent *e, __u32 point)
{
	__u64 print = rules_seed + point, rule = rule_for(point);
	__u32 at = KMEM_RULE_WORDS(rule);
	struct frame f;

	if (!rule || !c || !e)
		return 0;
	/* The program returns to the kernel by this word. */
	f = (struct frame){.pc = word_at(c, at), .fp = word_at(c, at - 1), .at = at + 1};
	for (int i = 0; i < FRAMES; i++) {
		/* For the verifier, all ways to this place are the same. */
		f.at += c->zero;
		f.next += c->zero;
		rule = f.pc >> 31 == 0x1ffffffff ? rule_for((__u32)f.pc + f.next) : 0;
		if (!rule)
			return 0;
		print = (print ^ f.pc) * 0x9e3779b97f4a7c15ull;
		print ^= print >> 29;
		if (rule & (KMEM_RULE_END | KMEM_RULE_REGS)) {
			if (rule & KMEM_RULE_END || f.at == e->nr)
				return print | (NUMBER + 1);
			if (!leave_regs(c, e, &f))
				return 0;
		} else if (!leave_call(c, e, rule, &f)) {
			return 0;
		}
	}
	return 0;
}

/* What identifies the stack of which there is @e; 0: it is not known. */
static __always_inline __u64 identify(struct copied *c, const struct extent *e, __u32 point)
{
	__u32 uses = ++c->uses;
	__u32 nr = e->nr;
	__u64 print;

	/* Two comparisons: of one that stands for both, the verifier learns no bound. */
	if (!nr)
		return 0;
	asm volatile("" : "+r"(nr));
	if (nr > KMEM_WORDS || bpf_probe_read_kernel(c->word, nr * 8, (void *)e->from))
		return 0;
	print = follow_rules(c, e, point);
	barrier();
	return *(volatile __u32 *)&c->uses == uses ? print : 0;
}

/* For the recorder: a stack that no rules lead through, or that has another number than @known. */
static __noinline void send_sample(const struct extent *e, __u32 point, __u32 stack, __u32 known)
{
	struct kmem_sample *s;
	__u32 nr = e->nr;

	if (!nr || nr > KMEM_WORDS || stack == KMEM_NO_STACK)
		return;
	if (known == KMEM_NO_STACK) {
		if (samples_wanted <= 0 || sampled[stack & 255] == samples_round)
			return;
		sampled[stack & 255] = samples_round;
		__sync_fetch_and_add(&samples_wanted, -1);
	}
	s = bpf_ringbuf_reserve(&ring, sizeof(*s), 0);
	if (!s)
		return;
	s->kind = KMEM_SAMPLE;
	s->point = point;
	s->stack = stack;
	s->known = known;
	s->nr = bpf_probe_read_kernel(s->words, nr * 8, (void *)e->from) ? 0 : nr;
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
}

/* The number of the stack that @ctx is on, which are the arguments of a tracepoint. */
static __noinline __u32 take_stack(void *ctx, __u32 point)
{
	const struct extent e = find_extent(ctx);
	__u32 at = 0, id, was = KMEM_NO_STACK;
	struct copied *c = bpf_map_lookup_elem(&copies, &at);
	__u64 print, *known;

	if (!c)
		return KMEM_NO_STACK;
	print = identify(c, &e, point);
	at = (__u32)print & (KNOWN - 1);
	known = bpf_map_lookup_elem(&known_stacks, &at);
	/* The bits of the place are those of the number: what they are follows from the place. */
	if (print && known && (*known ^ print) <= NUMBER) {
		was = *known & NUMBER;
		if (c->checks++ % check_each)
			return was;
		count(KMEM_CHECKED, 1);
	}
	id = walk_stack(ctx);
	count(KMEM_WALKED, 1);
	if (!print || (was != KMEM_NO_STACK && was != id))
		send_sample(&e, point, id, was);
	if (print && known && id != KMEM_NO_STACK)
		*known = (print & ~(__u64)NUMBER) | id;
	return id;
}

#endif
