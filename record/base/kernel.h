/* kernel.h - what is wrong with the kernel that runs, by its version */
#ifndef RECORD_KERNEL_H
#define RECORD_KERNEL_H

#include <stdbool.h>

/* Is version @release ("6.1.0-18-amd64") at least @major.@minor.@patch? */
bool kernel_release_at_least(const char *release, int major, int minor, int patch);

/* The oldest kernel on which all BPF programs were seen to load and to count right. */
#define KERNEL_OLDEST "6.1"

/* Is version @release that one or a later one? */
bool kernel_is_proven(const char *release);

/* Does a uprobe_multi link filter by thread where a process is meant?  6.6 to 6.6.34, and 6.7
 * to 6.9.4; mended by "uprobe: Filter by process, not by thread" (46ba0e49b642). */
bool kernel_multi_filters_threads(void);

/* Has it uprobe_multi links?  6.6. */
bool kernel_has_multi(void);

/* Has it links for functions' entries and returns together?  6.13. */
bool kernel_has_sessions(void);

/* Why a return probe would kill a process. */
enum kernel_risk {
	KERNEL_NO_RISK,
	KERNEL_RISK_SECCOMP,	  /* under seccomp, on 6.11 to 6.12.13 and 6.13 to 6.13.2
				     (CVE-2025-21834) */
	KERNEL_RISK_SHADOW_STACK, /* with a shadow stack, which Linux has since 6.6; before 6.11 */
};

/* Would one kill the process of which /proc/PID/status says @status, on a kernel of version
 * @release?
 */
enum kernel_risk kernel_risk_of(const char *status, const char *release);

/* Does a BPF program always find what it put into a task's storage?  Before 6.2 not where it has
 * interrupted another that looks there. */
bool kernel_finds_storage(void);

/* Does the use of a BPF map need CAP_BPF even in a process that has it open? Before 5.19, where
 * kernel.unprivileged_bpf_disabled is set. */
bool kernel_maps_take_bpf(void);

#endif
