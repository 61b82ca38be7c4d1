/* cmd_reach.c - which blocks a process has lost, by its memory alone: nothing is attached to */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmdline/options.h"
#include "cmdline/values.h"
#include "mleak.h"
#include "record/base/clock.h"
#include "record/base/rlimits.h"
#include "record/event_loop.h"
#include "record/output.h"
#include "record/pids.h"
#include "record/session/session.h"
#include "record/trace/write_failed.h"

#define MOST_PASSES 99

#define WAIT_MS 10 /* for words; a pass also begins by the clock */

enum { OPT_PASSES = 256, OPT_ROOT };

static const struct option_info table[] = {
	{.key = 'p',
	 .name = "pid",
	 .arg = "PID",
	 .help = "look at the running process PID: its number or name, or several with commas "
		 "between",
	 .group = "Options"},
	{.key = 'o',
	 .name = "output",
	 .arg = "FILE",
	 .help = "write the trace to FILE, where %p is the process, %h the host, %t the time "
		 "[mleak.mlk]"},
	{.key = OPT_PASSES,
	 .name = "passes",
	 .arg = "N",
	 .help = "how often memory is read, 2 to 99; pointers may move [3 to 10, as they do]"},
	{.key = OPT_ROOT,
	 .name = "root",
	 .arg = "RANGE|NAME",
	 .help = "as of mleak report: words at these addresses or in this variable hold what they "
		 "point to; may be given several times"},
	{.key = 'q', .name = "quiet", .help = "say nothing but errors and warnings"},
	{.key = 'h', .name = "help", .help = "show this help"},
};

bool reach_option(size_t i, struct option_info *option)
{
	if (i >= sizeof(table) / sizeof(table[0]))
		return false;
	*option = table[i];
	return true;
}

/* What the command line asks for. */
struct look_opts {
	pid_t pids[RECORD_MAX_PIDS];
	size_t nr_pids;
	struct output_opts output;
	uint64_t passes;
	char **roots; /* options of the report */
	size_t nr_roots;
	bool quiet, help;
};

static int add_root(struct look_opts *o, const struct option_info *option, const char *text)
{
	uint64_t start, end;

	if (isdigit((unsigned char)text[0]) ? value_range(text, &start, &end) : !text[0])
		return option_refuse(option, ROOT_EXPECTED, text);
	if (asprintf(&o->roots[o->nr_roots], "--root=%s", text) < 0)
		return -ENOMEM;
	o->nr_roots++;
	return 0;
}

static int apply(void *ctx, const struct option_info *option, const char *text)
{
	struct look_opts *o = ctx;

	switch (option->key) {
	case 'p':
		return pids_read(option, text, o->pids, &o->nr_pids);
	case 'o':
		o->output.name = text;
		return 0;
	case OPT_PASSES:
		return option_number(option, text, 2, MOST_PASSES, NULL, &o->passes);
	case OPT_ROOT:
		return add_root(o, option, text);
	case 'q':
		o->quiet = true;
		return 0;
	default:
		o->help = true;
		return 0;
	}
}

static int parse(struct look_opts *o, int argc, char **argv)
{
	*o = (struct look_opts){.output = {"mleak.mlk", -1, -1}};
	o->roots = calloc((size_t)argc, sizeof(*o->roots));
	if (!o->roots || options_read(reach_option, false, argc, argv, apply, o))
		return -EINVAL;
	if (o->help)
		return 0;
	for (; optind < argc; optind++)
		if (pids_read(&table[0], argv[optind], o->pids, &o->nr_pids))
			return -EINVAL;
	if (!o->nr_pids) {
		log_error("give the process that is to be looked at: mleak reach PID");
		return -EINVAL;
	}
	return 0;
}

static void print_help(void)
{
	puts("usage: mleak reach [OPTIONS] PID...\n\n"
	     "Shows which blocks of a running process nothing points to any more.  Its memory is\n"
	     "read while it goes on; nothing is attached to it, and no eBPF is needed.\n");
	print_options(reach_option);
}

/* May this user read the memory of the processes?  Else one sentence was logged. */
static bool may_read(const struct session *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		int fd = target_open_file(&s->all[i]->target, HELPER_MEM);

		if (fd >= 0)
			close(fd);
		if (fd != -EACCES && fd != -EPERM)
			continue;
		log_error("cannot read the memory of process %d: the system lets only root, or its "
			  "parent, do so (kernel.yama.ptrace_scope); run mleak as root",
			  (int)s->all[i]->target.pid);
		return false;
	}
	return true;
}

/* Read the memory of all processes, one after the other.  Returns whether that of any was. */
static bool read_all(struct session *s)
{
	bool more = session_reach_begin(s), any = false;
	struct progress progress = {0};

	progress_begin(&progress, clock_now_ns());
	while (more && !s->out.err) {
		struct pollfd fd = {.fd = session_reach_fd(s), .events = POLLIN};

		poll(&fd, 1, WAIT_MS);
		more = session_reach_step(s);
		progress_show_reach(&progress, s, clock_now_ns());
	}
	log_end_line();
	for (size_t i = 0; i < s->nr; i++)
		any |= s->all[i]->passes > 0;
	return any;
}

/* Look at the processes of @s, and write the trace to @out.  Returns whether it is there. */
static bool look(struct session *s, const struct look_opts *o, struct output *out)
{
	const struct session_opts opts = {.stack_mode = MLK_STACK_FILTERED,
					  .embed = EMBED_SYMBOLS,
					  .zstd_level = 1,
					  .fd = out->fd,
					  .path = out->path};
	bool any;

	session_reach_plan(s, (unsigned int)o->passes);
	if (session_start(s, &opts))
		return false;
	session_reach_open(s); /* who may use eBPF has all registers, and stacks for signals */
	any = may_read(s) && read_all(s);
	session_finish(s, MLK_END_DURATION);
	if (s->out.err) {
		write_failed_tell(out->path, s->out.err, false);
		return false;
	}
	if (!any || output_take(out) || output_check(out, mlk_writer_bytes(s->out.writer)))
		return false;
	output_tell(out, mlk_writer_bytes(s->out.writer), false);
	return true;
}

/* The report with @of, and with options of @o, of the trace at @path.  It tells by itself what it
 * cannot tell. */
static int report_on(const char *of, const struct look_opts *o, char *path)
{
	char **argv = calloc(o->nr_roots + 5, sizeof(*argv));
	int argc = 0, status;

	if (!argv)
		return EXIT_FAILED;
	argv[argc++] = (char *)"report";
	argv[argc++] = (char *)of;
	for (size_t i = 0; i < o->nr_roots; i++)
		argv[argc++] = o->roots[i];
	argv[argc++] = (char *)"--";
	argv[argc++] = path;
	optind = 0; /* begin anew */
	status = cmd_report(argc, argv);
	free(argv);
	return status;
}

/* What is lost, and where all of the memory is. */
static int report(const struct look_opts *o, char *path)
{
	const struct look_opts plain = {0};
	int status = report_on("--lost", o, path), where;

	putchar('\n');
	where = report_on("--resident", &plain, path);
	return status ? status : where;
}

static int look_at_processes(const struct look_opts *o)
{
	struct session s = {.looks = true};
	struct output out = {.fd = -1};
	bool there = false;

	if (!session_add_pids(&s, o->pids, o->nr_pids) && !output_open(&out, &o->output, s.pid)) {
		there = look(&s, o, &out);
		mlk_writer_free(s.out.writer); /* its thread writes to the file */
		s.out.writer = NULL;
		output_close(&out);
	}
	session_release(&s);
	return there ? report(o, out.path) : EXIT_FAILED;
}

static void release(struct look_opts *o)
{
	for (size_t i = 0; i < o->nr_roots; i++)
		free(o->roots[i]);
	free(o->roots);
}

int cmd_reach(int argc, char **argv)
{
	struct look_opts o;
	int status = parse(&o, argc, argv) ? EXIT_USAGE : EXIT_OK;

	if (!status && o.help) {
		print_help();
		status = print_finish(EXIT_OK);
	} else if (!status) {
		if (o.quiet)
			log_quiet();
		rlimits_raise();
		status = look_at_processes(&o);
	}
	release(&o);
	return status;
}
