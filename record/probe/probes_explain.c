/* probes_explain.c - messages about probes that could not be attached */
#include "record/probe/probes.h"

#include <errno.h>

#include "bpf/event.h"
#include "mleak.h"
#include "record/probe/refusal.h"

void probes_refused(const struct target *t, const struct refusal *refusal)
{
	struct refusal_facts facts;
	char why[REFUSAL_TEXT];

	refusal_read_facts(&facts);
	refusal_explain(&facts, refusal, why, sizeof(why));
	log_error("cannot probe process %d: %s", (int)t->pid, why);
}

void probes_explain(const struct target *t, int err, bool perf)
{
	/* Its parent's probes are attached: the kernel's age was no hindrance. */
	const struct refusal refusal = {
		.stage = REFUSED_PROBES, .err = err, .perf = perf, .force = true};

	if ((err == -EPERM || err == -EACCES) && t->helper)
		log_error("cannot probe process %d: the kernel refuses it, or it is no longer a "
			  "child of a recorded process",
			  (int)t->pid);
	else if (err == -E2BIG)
		log_error("cannot record process %d, or later ones: %d processes are recorded "
			  "already, which is the maximum",
			  (int)t->pid, EVENT_MAX_TARGETS);
	else
		probes_refused(t, &refusal);
}
