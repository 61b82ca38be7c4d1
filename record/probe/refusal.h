/* refusal.h - why eBPF cannot be used, in words: from what is known of the kernel and of this
 * process, and from what was refused */
#ifndef RECORD_REFUSAL_H
#define RECORD_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

#include "record/probe/probes.h"

/* Room for any reason. */
#define REFUSAL_TEXT 512

/* What refusals depend on. */
struct refusal_facts {
	char release[65];		      /* of the kernel, as "6.1.0-18-amd64" */
	bool has_bpf, has_perfmon, has_admin; /* CAP_..., effective; has_admin implies all */
	bool in_user_namespace;		      /* other than the initial one */
	bool has_btf;
	bool locked_down;  /* confidentiality */
	bool filtered;	   /* by seccomp, of this process */
	int perf_paranoid; /* kernel.perf_event_paranoid */
};

/* How far it came before the kernel refused, and what was refused. */
enum refusal_stage {
	REFUSED_UNTRIED,  /* nothing was tried yet */
	REFUSED_LOAD,	  /* maps, programs or their tracepoints, without a word */
	REFUSED_VERIFIER, /* a program, by the kernel's verifier, which said why */
	REFUSED_PROBES,	  /* loaded programs on a process's functions */
};

/* A trial that the kernel refused, and what the user had asked for. */
struct refusal {
	enum refusal_stage stage;
	int err;	      /* -errno; 0 with REFUSED_UNTRIED */
	enum probe_link link; /* that the user asked for */
	bool perf;	      /* probes by perf events were tried last */
	bool force;	      /* the kernel's age does not count */
};

/* Find out what holds here and now. */
void refusal_read_facts(struct refusal_facts *facts);

/* Is it known without a trial that eBPF will be refused?  @refusal->link and ->force matter.  Then
 * the reason is in @text, as refusal_explain() writes it. */
bool refusal_foreseen(const struct refusal_facts *facts, const struct refusal *refusal, char *text,
		      size_t size);

/* Write to @text why, and what is needed: what goes on after "cannot probe process 5: ". */
void refusal_explain(const struct refusal_facts *facts, const struct refusal *refusal, char *text,
		     size_t size);

/* Write to @text why perf_event_open(2) failed with -errno @err: what goes on after "cannot listen
 * for new mappings: ". */
void refusal_explain_events(const struct refusal_facts *facts, int err, char *text, size_t size);

/* Has this user's recorder nothing that eBPF takes, as ordinary users' have not? */
bool refusal_is_usual(const struct refusal_facts *facts);

#endif
