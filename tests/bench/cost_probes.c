/* cost_probes.c - put BPF programs on places in a file that one process has mapped
 *
 * usage: cost_probes [--perf] OBJECT PID FILE PROGRAM@OFFSET[:return]...
 *
 * OBJECT is a compiled BPF object, OFFSET counts bytes in FILE.  Prints "ready" when the probes
 * stand; they do until stdin ends.  They are uprobe_multi links, or perf events, which kernels
 * before 6.6 have alone.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/probe/uprobe_multi.h"

#define MAX_PROBES 16

struct probe {
	char program[64];
	uint64_t offset; /* bytes into the file */
	bool is_return;
};

static int fail(const char *what, int err)
{
	fprintf(stderr, "cost_probes: %s: %s\n", what, strerror(err));
	return -1;
}

static int parse(struct probe *p, const char *text)
{
	const char *at = strchr(text, '@');
	char *end;

	if (!at || (size_t)(at - text) >= sizeof(p->program))
		return fail(text, EINVAL);
	memcpy(p->program, text, (size_t)(at - text));
	p->offset = strtoull(at + 1, &end, 0);
	p->is_return = !strcmp(end, ":return");
	return *end && !p->is_return ? fail(text, EINVAL) : 0;
}

/* Only the programs that are wanted are loaded, each for a multi link or a perf event. */
static int load(struct bpf_object *obj, const struct probe *probes, int nr, bool perf)
{
	struct bpf_program *prog;
	int err;

	bpf_object__for_each_program(prog, obj) bpf_program__set_autoload(prog, false);
	for (int i = 0; i < nr; i++) {
		prog = bpf_object__find_program_by_name(obj, probes[i].program);
		if (!prog)
			return fail(probes[i].program, ENOENT);
		bpf_program__set_autoload(prog, true);
		if (!perf)
			bpf_program__set_expected_attach_type(prog, UPROBE_MULTI_ATTACH_TYPE);
	}
	err = bpf_object__load(obj);
	return err ? fail("cannot load", -err) : 0;
}

static int attach(struct bpf_object *obj, const struct probe *p, const char *path, pid_t pid)
{
	const struct bpf_program *prog = bpf_object__find_program_by_name(obj, p->program);

	if (!bpf_program__attach_uprobe(prog, p->is_return, pid, path, p->offset))
		return fail("cannot attach", errno);
	return 0;
}

static int attach_multi(struct bpf_object *obj, const struct probe *p, const char *path, pid_t pid)
{
	const struct bpf_program *prog = bpf_object__find_program_by_name(obj, p->program);
	const uint64_t cookie = 0;
	const struct uprobe_multi u = {.path = path,
				       .offsets = &p->offset,
				       .cookies = &cookie,
				       .nr = 1,
				       .pid = pid,
				       .is_return = p->is_return};
	int link = uprobe_multi_link(bpf_program__fd(prog), &u);

	return link < 0 ? fail("cannot attach", -link) : 0;
}

int main(int argc, char **argv)
{
	struct probe probes[MAX_PROBES] = {0};
	bool perf = argc > 1 && !strcmp(argv[1], "--perf");
	int nr = argc - 4 - perf;
	struct bpf_object *obj;
	char byte;

	argv += perf;
	if (nr < 1 || nr > MAX_PROBES) {
		fputs("usage: cost_probes [--perf] OBJECT PID FILE PROGRAM@OFFSET[:return]...\n",
		      stderr);
		return 2;
	}
	for (int i = 0; i < nr; i++)
		if (parse(&probes[i], argv[4 + i]))
			return 2;
	obj = bpf_object__open_file(argv[1], NULL);
	if (!obj)
		return fail(argv[1], errno) ? 1 : 0;
	if (load(obj, probes, nr, perf))
		return 1;
	for (int i = 0; i < nr; i++)
		if ((perf ? attach : attach_multi)(obj, &probes[i], argv[3], (pid_t)atoi(argv[2])))
			return 1;
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0; /* the links end with the process */
}
