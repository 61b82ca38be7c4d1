/* refusal.c - the facts, and the sentences made of them */
#include "record/probe/refusal.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bpf/event.h"
#include "mleak.h"
#include "record/base/kernel.h"
#include "record/base/proc.h"
#include "record/privilege/privileges.h"

/* Inode of the initial user namespace, include/linux/proc_ns.h: PROC_USER_INIT_INO. */
#define INITIAL_USERNS 0xeffffffdul

#define BTF "/sys/kernel/btf/vmlinux"

void refusal_read_facts(struct refusal_facts *f)
{
	char text[4096];
	const char *seccomp;
	struct utsname host;
	struct stat ns;

	memset(f, 0, sizeof(*f));
	if (!uname(&host))
		snprintf(f->release, sizeof(f->release), "%s", host.release);
	f->has_bpf = privileges_has(CAP_BPF);
	f->has_perfmon = privileges_has(CAP_PERFMON);
	f->has_admin = privileges_has(CAP_SYS_ADMIN);
	f->in_user_namespace = !stat("/proc/self/ns/user", &ns) && ns.st_ino != INITIAL_USERNS;
	f->has_btf = !access(BTF, R_OK);
	proc_read(text, sizeof(text), "/sys/kernel/security/lockdown");
	f->locked_down = strstr(text, "[confidentiality]") != NULL;
	proc_read(text, sizeof(text), "/proc/sys/kernel/perf_event_paranoid");
	f->perf_paranoid = (int)strtol(text, NULL, 10);
	proc_read(text, sizeof(text), "/proc/self/status");
	seccomp = strstr(text, "\nSeccomp:");
	f->filtered = seccomp && strtol(seccomp + strlen("\nSeccomp:"), NULL, 10) != 0;
}

bool refusal_is_usual(const struct refusal_facts *f)
{
	return !f->has_bpf && !f->has_perfmon && !f->has_admin;
}

/* "CAP_BPF and CAP_PERFMON"; "": nothing is missing.  @perf: for probes by perf events. */
static void name_missing(const struct refusal_facts *f, bool perf, char *text, size_t size)
{
	const char *lacking[3];
	size_t nr = 0;

	if (!f->has_admin && !f->has_bpf)
		lacking[nr++] = "CAP_BPF";
	if (!f->has_admin && !f->has_perfmon)
		lacking[nr++] = "CAP_PERFMON";
	if (!f->has_admin && perf)
		lacking[nr++] = "CAP_SYS_ADMIN";
	text[0] = '\0';
	for (size_t i = 0; i < nr; i++) {
		size_t len = strlen(text);

		snprintf(text + len, size - len, "%s%s",
			 !i	      ? ""
			 : i + 1 < nr ? ", "
				      : " and ",
			 lacking[i]);
	}
}

/* What no privilege helps against.  Returns whether there is such a reason. */
static bool explain_kernel(const struct refusal_facts *f, bool force, char *text, size_t size)
{
	if (!force && !kernel_is_proven(f->release))
		snprintf(text, size,
			 "Linux %s is older than " KERNEL_OLDEST
			 ", the oldest kernel that mleak's BPF programs are tested on; --force "
			 "tries it anyway",
			 f->release);
	else if (!f->has_btf)
		snprintf(text, size,
			 "this kernel, Linux %s, has no BTF (" BTF
			 "), which mleak's BPF programs need; use a kernel built with "
			 "CONFIG_DEBUG_INFO_BTF",
			 f->release);
	else if (f->locked_down)
		snprintf(text, size,
			 "this kernel, Linux %s, is locked down (/sys/kernel/security/lockdown "
			 "says confidentiality) and does not allow this use of BPF; boot it "
			 "without lockdown=confidentiality",
			 f->release);
	else
		return false;
	return true;
}

bool refusal_foreseen(const struct refusal_facts *f, const struct refusal *r, char *text,
		      size_t size)
{
	bool perf = r->link == PROBE_LINK_PERF;
	char missing[64];

	name_missing(f, perf, missing, sizeof(missing));
	if (f->in_user_namespace && !*missing)
		snprintf(text, size,
			 "BPF needs capabilities in the initial user namespace, and mleak runs in "
			 "another; run it on the host");
	else if (*missing)
		snprintf(text, size,
			 "mleak lacks %s; run it as root, or give it CAP_BPF, CAP_PERFMON and "
			 "CAP_SYS_PTRACE%s",
			 missing, perf ? " (--uprobes=perf needs CAP_SYS_ADMIN)" : "");
	else
		return explain_kernel(f, r->force, text, size);
	return true;
}

/* Permission was refused for loading, or for the probes. */
static void explain_denied(const struct refusal_facts *f, const struct refusal *r, char *text,
			   size_t size)
{
	char paranoid[64] = "";

	if (f->perf_paranoid > 2)
		snprintf(paranoid, sizeof(paranoid), " because kernel.perf_event_paranoid is %d",
			 f->perf_paranoid);
	if (r->stage == REFUSED_PROBES && r->perf && !f->has_admin)
		snprintf(text, size,
			 "Linux %s %s probes by perf events, which need CAP_SYS_ADMIN%s; run mleak "
			 "as root, or also give it CAP_SYS_ADMIN",
			 f->release,
			 kernel_release_at_least(f->release, 6, 6, 0)
				 ? "offers mleak here only"
				 : "is older than 6.6 and has no uprobe_multi links, only",
			 paranoid);
	else
		snprintf(text, size,
			 "Linux %s refuses it though mleak has CAP_BPF and CAP_PERFMON; %s",
			 f->release,
			 f->filtered ? "the cause may be the seccomp filter that mleak runs under, "
				       "as in a container; run it on the host"
				     : "the cause may be a security module");
}

/* Nothing was known before, and something was refused. */
static void explain_trial(const struct refusal_facts *f, const struct refusal *r, char *text,
			  size_t size)
{
	const char *name = strerrorname_np(-r->err);

	if (!name)
		name = strerror(-r->err);
	if (r->stage == REFUSED_VERIFIER)
		snprintf(
			text, size,
			"the verifier of this kernel, Linux %s, refused mleak's BPF programs (%s); "
			"MLEAK_LIBBPF_LOG=1 in the environment shows why",
			f->release, name);
	else if (r->stage == REFUSED_PROBES && r->link == PROBE_LINK_MULTI &&
		 !kernel_release_at_least(f->release, 6, 6, 0))
		snprintf(text, size,
			 "Linux %s has no uprobe_multi links, which came with 6.6; leave "
			 "--uprobes=multi out",
			 f->release);
	else if (r->err == -EPERM || r->err == -EACCES)
		explain_denied(f, r, text, size);
	else if (r->err == -ESRCH && r->stage == REFUSED_PROBES)
		snprintf(text, size, "it has ended");
	else if (r->err == -ENOMEM)
		snprintf(text, size,
			 "Linux %s has no memory for %s, perhaps by the limit of mleak's control "
			 "group; give a smaller --ring-size",
			 f->release,
			 r->stage == REFUSED_PROBES ? "the probes" : "mleak's BPF programs");
	else
		snprintf(text, size,
			 "Linux %s refused %s (%s); MLEAK_LIBBPF_LOG=1 in the environment shows "
			 "libbpf's messages",
			 f->release,
			 r->stage == REFUSED_PROBES ? "the probes" : "mleak's BPF programs", name);
}

void refusal_explain(const struct refusal_facts *f, const struct refusal *r, char *text,
		     size_t size)
{
	if (!refusal_foreseen(f, r, text, size))
		explain_trial(f, r, text, size);
}

void refusal_explain_events(const struct refusal_facts *f, int err, char *text, size_t size)
{
	if ((err == -EACCES || err == -EPERM) && f->perf_paranoid > 2 && !f->has_admin)
		snprintf(text, size,
			 "kernel.perf_event_paranoid is %d, so this kernel, Linux %s, allows perf "
			 "events only with CAP_SYS_ADMIN",
			 f->perf_paranoid, f->release);
	else
		snprintf(text, size, "%s", strerror(-err));
}

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
