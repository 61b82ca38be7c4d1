/* test_record_refusal.c - why eBPF is refused, on kernels and machines that are not at hand */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/probe/refusal.h"

/* All is there, on Debian 12's kernel. */
static const struct refusal_facts root = {.release = "6.1.0-18-amd64",
					  .has_bpf = true,
					  .has_perfmon = true,
					  .has_admin = true,
					  .has_btf = true,
					  .perf_paranoid = 3};

/* As setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep gives it. */
static struct refusal_facts with_file_capabilities(const char *release)
{
	struct refusal_facts f = root;

	f.has_admin = false;
	strcpy(f.release, release);
	return f;
}

static struct refusal_facts root_on(const char *release)
{
	struct refusal_facts f = root;

	strcpy(f.release, release);
	return f;
}

static const char *why(const struct refusal_facts *f, const struct refusal *r)
{
	static char text[REFUSAL_TEXT];

	memset(text, 'x', sizeof(text));
	refusal_explain(f, r, text, sizeof(text));
	assert_true(strlen(text) < sizeof(text) - 1);
	return text;
}

static bool foreseen(const struct refusal_facts *f, const struct refusal *r)
{
	char text[REFUSAL_TEXT];

	return refusal_foreseen(f, r, text, sizeof(text));
}

static void kernels_older_than_all_that_are_proven_are_named(void **state)
{
	const struct refusal none = {0}, force = {.force = true};
	struct refusal_facts f = root_on("5.10.0-28-amd64");

	(void)state;
	assert_true(foreseen(&f, &none));
	assert_string_equal(why(&f, &none),
			    "Linux 5.10.0-28-amd64 is older than 6.1, the oldest kernel that "
			    "mleak's BPF programs are tested on; --force tries it anyway");
	assert_false(foreseen(&f, &force));
	f = root_on("6.0.12");
	assert_true(foreseen(&f, &none));
	f = root_on("6.1.0-18-amd64");
	assert_false(foreseen(&f, &none));
	f = root_on("7.3-rc1");
	assert_false(foreseen(&f, &none));
}

static void verifiers_are_told_from_permissions(void **state)
{
	struct refusal r = {.stage = REFUSED_VERIFIER, .err = -EACCES, .force = true};
	struct refusal_facts f = root_on("5.10.0-28-amd64");

	(void)state;
	assert_string_equal(why(&root, &r),
			    "the verifier of this kernel, Linux 6.1.0-18-amd64, refused mleak's "
			    "BPF programs (EACCES); MLEAK_LIBBPF_LOG=1 in the environment shows "
			    "why");
	assert_non_null(strstr(why(&f, &r), "verifier of this kernel, Linux 5.10.0-28-amd64"));
	r.stage = REFUSED_LOAD;
	assert_string_equal(why(&root, &r),
			    "Linux 6.1.0-18-amd64 refuses it though mleak has CAP_BPF and "
			    "CAP_PERFMON; the cause may be a security module");
	f = root;
	f.filtered = true;
	assert_string_equal(why(&f, &r),
			    "Linux 6.1.0-18-amd64 refuses it though mleak has CAP_BPF and "
			    "CAP_PERFMON; the cause may be the seccomp filter that mleak runs "
			    "under, as in a container; run it on the host");
	r.err = -EINVAL;
	assert_string_equal(why(&root, &r),
			    "Linux 6.1.0-18-amd64 refused mleak's BPF programs (EINVAL); "
			    "MLEAK_LIBBPF_LOG=1 in the environment shows libbpf's messages");
	r.err = -ENOMEM;
	assert_string_equal(why(&root, &r),
			    "Linux 6.1.0-18-amd64 has no memory for mleak's BPF programs, perhaps "
			    "by the limit of mleak's control group; give a smaller --ring-size");
}

static void missing_btf_is_no_ended_process(void **state)
{
	struct refusal r = {.stage = REFUSED_LOAD, .err = -ESRCH};
	struct refusal_facts f = root;

	(void)state;
	assert_non_null(strstr(why(&f, &r), "refused mleak's BPF programs (ESRCH)"));
	f.has_btf = false;
	assert_non_null(strstr(why(&f, &r), "has no BTF (/sys/kernel/btf/vmlinux)"));
	r.force = true;
	assert_non_null(strstr(why(&f, &r), "has no BTF (/sys/kernel/btf/vmlinux)"));
	f.has_btf = true;
	r.stage = REFUSED_PROBES;
	assert_string_equal(why(&f, &r), "it has ended");
}

static void lockdown_is_named_whatever_the_error(void **state)
{
	static const int errors[] = {-EINVAL, -EPERM, -EACCES, -ENOTSUP};
	struct refusal_facts f = root;

	(void)state;
	f.locked_down = true;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		for (enum refusal_stage stage = REFUSED_UNTRIED; stage <= REFUSED_PROBES; stage++) {
			const struct refusal r = {.stage = stage, .err = errors[i]};

			assert_string_equal(
				why(&f, &r),
				"this kernel, Linux 6.1.0-18-amd64, is locked down "
				"(/sys/kernel/security/lockdown says confidentiality) and does not "
				"allow this use of BPF; boot it without lockdown=confidentiality");
		}
}

static void kernels_before_6_6_need_more_for_probes(void **state)
{
	struct refusal r = {.stage = REFUSED_PROBES, .err = -EACCES, .perf = true};
	struct refusal_facts f = with_file_capabilities("6.1.0-18-amd64");

	(void)state;
	assert_false(foreseen(&f, &r));
	assert_string_equal(why(&f, &r),
			    "Linux 6.1.0-18-amd64 is older than 6.6 and has no uprobe_multi links, "
			    "only probes by perf events, which need CAP_SYS_ADMIN because "
			    "kernel.perf_event_paranoid is 3; run mleak as root, or also give it "
			    "CAP_SYS_ADMIN");
	f.perf_paranoid = 2;
	assert_string_equal(why(&f, &r),
			    "Linux 6.1.0-18-amd64 is older than 6.6 and has no uprobe_multi links, "
			    "only probes by perf events, which need CAP_SYS_ADMIN; run mleak as "
			    "root, or also give it CAP_SYS_ADMIN");
	f = with_file_capabilities("6.6.0");
	assert_null(strstr(why(&f, &r), "older than 6.6"));
	assert_non_null(strstr(why(&f, &r), "need CAP_SYS_ADMIN"));
	/* Where there is CAP_SYS_ADMIN, it is not what lacks. */
	assert_null(strstr(why(&root, &r), "CAP_SYS_ADMIN"));
}

static void uprobe_multi_is_told_to_have_come_with_6_6(void **state)
{
	struct refusal r = {.stage = REFUSED_PROBES, .err = -EINVAL, .link = PROBE_LINK_MULTI};
	struct refusal_facts f = root_on("6.6.0");

	(void)state;
	assert_string_equal(why(&root, &r),
			    "Linux 6.1.0-18-amd64 has no uprobe_multi links, which came with 6.6; "
			    "leave --uprobes=multi out");
	assert_string_equal(why(&f, &r), "Linux 6.6.0 refused the probes (EINVAL); "
					 "MLEAK_LIBBPF_LOG=1 in the environment shows libbpf's "
					 "messages");
}

static void missing_capabilities_are_named(void **state)
{
	struct refusal r = {0};
	struct refusal_facts f = with_file_capabilities("6.12.6");

	(void)state;
	assert_false(foreseen(&f, &r));
	r.link = PROBE_LINK_PERF;
	assert_string_equal(why(&f, &r), "mleak lacks CAP_SYS_ADMIN; run it as root, or give it "
					 "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE (--uprobes=perf "
					 "needs CAP_SYS_ADMIN)");
	f.has_bpf = f.has_perfmon = false;
	assert_non_null(strstr(why(&f, &r), "lacks CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN;"));
	assert_true(refusal_is_usual(&f));
	f.has_perfmon = true;
	assert_false(refusal_is_usual(&f));
	f = root;
	f.in_user_namespace = true;
	assert_non_null(strstr(why(&f, &r), "in the initial user namespace"));
}

static void debian_s_setting_for_perf_events_is_named(void **state)
{
	struct refusal_facts f = with_file_capabilities("6.1.0-18-amd64");
	char text[REFUSAL_TEXT];

	(void)state;
	refusal_explain_events(&f, -EACCES, text, sizeof(text));
	assert_string_equal(text, "kernel.perf_event_paranoid is 3, so this kernel, Linux "
				  "6.1.0-18-amd64, allows perf events only with CAP_SYS_ADMIN");
	refusal_explain_events(&f, -EMFILE, text, sizeof(text));
	assert_string_equal(text, "Too many open files");
	refusal_explain_events(&root, -EACCES, text, sizeof(text));
	assert_string_equal(text, "Permission denied");
	f.perf_paranoid = 2;
	refusal_explain_events(&f, -EACCES, text, sizeof(text));
	assert_string_equal(text, "Permission denied");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_older_than_all_that_are_proven_are_named),
		cmocka_unit_test(verifiers_are_told_from_permissions),
		cmocka_unit_test(missing_btf_is_no_ended_process),
		cmocka_unit_test(lockdown_is_named_whatever_the_error),
		cmocka_unit_test(kernels_before_6_6_need_more_for_probes),
		cmocka_unit_test(uprobe_multi_is_told_to_have_come_with_6_6),
		cmocka_unit_test(missing_capabilities_are_named),
		cmocka_unit_test(debian_s_setting_for_perf_events_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
