/* exec_detect.c - see exec_detect.h */
#include "record/preload/process/exec_detect.h"

bool exec_detect_poll(struct exec_detect *w, const struct preload_process *s, uint64_t start)
{
	uint32_t program = __atomic_load_n(&s->program, __ATOMIC_ACQUIRE);
	uint32_t execs = __atomic_load_n(&s->execs, __ATOMIC_ACQUIRE);
	bool lost;

	if (!start)
		return false;
	if (!w->start || program != w->program) {
		*w = (struct exec_detect){.start = start, .program = program, .execs = execs};
		return false;
	}
	if (execs != w->execs)
		w->expected = (int32_t)(execs - w->execs) > 0;
	w->execs = execs;
	if (start == w->start)
		return false;
	/* In one that was started otherwise the library may just be starting. */
	if (!w->expected && !w->strange) {
		w->strange = true;
		return false;
	}
	/* What the library reported is counted already if it does not start there. */
	lost = !w->expected;
	w->expected = w->strange = false;
	w->start = start;
	return lost;
}
