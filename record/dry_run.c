/* dry_run.c - see dry_run.h */
#include "record/dry_run.h"

#include <stdio.h>

#include "mleak.h"
#include "record/allocator/allocator_explain.h"
#include "record/choose.h"
#include "record/inject/inject.h"

int record_dry_run(const struct session *s, const struct record_opts *o)
{
	const struct probes_opts probes = {.link = o->link};
	struct allocator_opts how = o->allocators;
	struct refusal_facts facts;
	char why[REFUSAL_TEXT];
	int err = 0;

	for (size_t i = 0; !err && i < s->nr; i++) {
		const struct target *t = &s->all[i]->target;
		struct allocators a;

		how.spares_handlers = probes_spare_handlers(&probes);
		how.entries_alone = o->backend == BACKEND_INJECT;
		err = allocators_find(&a, t, &how);
		if (!err && o->backend == BACKEND_INJECT)
			err = inject_explain(stdout, t->pid, &a);
		else if (!err)
			dry_run_print(stdout, t, &a);
		allocators_release(&a);
	}
	if (!err && o->argv && o->backend == BACKEND_AUTO && choose_refused(o, &facts, why))
		log_warn("without --dry-run the command is recorded by the preloaded library, not "
			 "by these probes: %s",
			 why);
	return err ? EXIT_RECORD_FAILED : 0;
}
