/* choose.c - see choose.h */
#include "record/choose.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <unistd.h>

#include "mleak.h"

bool choose_refused(const struct record_opts *o, struct refusal_facts *facts, char *why)
{
	struct refusal refusal = {.link = o->link, .force = o->force};
	int fd;

	refusal_read_facts(facts);
	if (refusal_foreseen(facts, &refusal, why, REFUSAL_TEXT))
		return true;
	/* A container may refuse to root what its capabilities allow. */
	fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "mleak_try", 0, 0, 4096, NULL);
	if (fd >= 0) {
		close(fd);
		return false;
	}
	refusal.stage = REFUSED_LOAD;
	refusal.err = fd;
	refusal_explain(facts, &refusal, why, REFUSAL_TEXT);
	return true;
}

int choose_check(const struct record_opts *o, pid_t pid)
{
	const struct refusal refusal = {.link = o->link, .force = o->force};
	struct refusal_facts facts;
	char why[REFUSAL_TEXT];

	refusal_read_facts(&facts);
	if (!refusal_foreseen(&facts, &refusal, why, sizeof(why)))
		return 0;
	log_error("cannot probe process %d: %s", (int)pid, why);
	return -EPERM;
}

void choose_tell(const char *why)
{
	log_warn("the command is recorded by the preloaded library, not by eBPF: %s", why);
}

int choose_backend(const struct record_opts *o, enum record_backend *backend)
{
	const char *option = record_options_for_probes(o);
	struct refusal_facts facts;
	char why[REFUSAL_TEXT];

	*backend = option ? BACKEND_BPF : BACKEND_AUTO;
	if (!choose_refused(o, &facts, why))
		return 0;
	if (option) {
		log_error("%s needs eBPF: %s; or leave it out to record the command with the "
			  "preloaded library",
			  option, why);
		return -EPERM;
	}
	/* An ordinary user expects nothing else. */
	if (!refusal_is_usual(&facts))
		choose_tell(why);
	*backend = BACKEND_PRELOAD;
	return 0;
}
