/* kernel_rules.h - rules by which the programs know stacks of the kernel without its walk
 *
 * bpf/kmem.h says what a rule is.  They are made of what the kernel's own unwinder goes by, for
 * return addresses that occur: the programs send samples of stacks that their rules did not lead
 * through.  They have the kernel walk one of so many of the other stacks, too, and send those that
 * are not what the rules said.
 */
#ifndef RECORD_KERNEL_RULES_H
#define RECORD_KERNEL_RULES_H

#include "record/kernel/kernel_stacks.h"
#include "record/kernel/kmem_probes.h"

struct kernel_rules; /* opaque */

/* For @probes, whose stacks @stacks has, and the kernel that @names has; all are borrowed until
 * kernel_rules_free().  A kernel that has no tables gets no rules, and walks.  *@out is NULL on
 * failure.  Returns 0 or -ENOMEM. */
int kernel_rules_new(struct kernel_rules **out, struct kmem_probes *probes,
		     const struct kernel_stacks *stacks, const struct kallsyms *names);

/* Learn from @sample. */
void kernel_rules_learn(struct kernel_rules *r, const struct kmem_sample *sample);

/* Stacks that were found to be others than the rules had said: of those that were checked. */
uint64_t kernel_rules_wrong(const struct kernel_rules *r);

/* Ask for more samples.  To be called a few times each second, and more often while it returns
 * true: the last ones had something to learn. */
bool kernel_rules_ask(struct kernel_rules *r);

/* Release @r; NULL is allowed. */
void kernel_rules_free(struct kernel_rules *r);

#endif
