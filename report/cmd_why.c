/* cmd_why.c - `mleak why`: who holds the blocks of a trace, by the pointers that it has */
#include "mleak.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmdline/values.h"
#include "report/base/text.h"
#include "report/moments.h"
#include "report/name/stack_id.h"
#include "report/report_run.h"
#include "report/terminal/pager.h"
#include "report/warnings.h"
#include "report/why/why.h"

#define SCHEMA_VERSION 1

/* What is asked for. */
struct question {
	struct report_run *job;
	bool of_block;
	uint64_t address;
	bool *wanted; /* by the replay's numbers of stacks; NULL: not of stacks */
	struct json json;
	size_t answered; /* of processes */
};

static void put_title(const struct why *why, const struct question *q)
{
	const struct verdict_process *p = why->process;
	const char *name = processes_name(why->leaks->processes, p->tgid);
	uint64_t start_ns = mlk_reader_meta(q->job->trace)->start_ns;

	printf("%sprocess %" PRIu32 "%s", q->answered ? "\n" : "", p->tgid, name[0] ? " (" : "");
	print_harmless(stdout, name);
	printf("%s, by the pointers in its memory at %.3f s (the last of %u %s):\n",
	       name[0] ? ")" : "",
	       (double)(p->begin_ns > start_ns ? p->begin_ns - start_ns : 0) / 1e9, p->passes,
	       p->passes == 1 ? "pass" : "passes");
}

static void put_json_title(struct why *why, const struct question *q)
{
	uint64_t start_ns = mlk_reader_meta(q->job->trace)->start_ns;
	const struct verdict_process *p = why->process;

	json_open(why->json, NULL, '{');
	json_number(why->json, "pid", p->tgid);
	json_text(why->json, "comm", processes_name(why->leaks->processes, p->tgid));
	json_number(why->json, "at_ns", p->begin_ns > start_ns ? p->begin_ns - start_ns : 0);
	json_number(why->json, "passes", p->passes);
	json_number(why->json, "pass", p->last);
}

static int answer_with(struct why *why, struct question *q)
{
	struct mlk_reader *trace = NULL;
	uint32_t block = q->of_block ? why_block_at(why, q->address) : HOLDERS_NONE;
	int err = 0;

	if (q->of_block && block == HOLDERS_NONE)
		return 0;
	if (why->opts->json) {
		why->json = &q->json;
		put_json_title(why, q);
	} else {
		put_title(why, q);
	}
	if (q->of_block) {
		err = mlk_reader_clone(&trace, q->job->trace);
		if (!err)
			err = why_print_block(why, trace, block, q->address);
		mlk_reader_free(trace);
	} else {
		err = q->wanted ? why_print_stacks(why, q->wanted) : why_print_table(why);
	}
	if (why->opts->json)
		json_close(&q->json, '}');
	q->answered++;
	return err;
}

/* Answer of the @i-th process. */
static int answer_of(struct question *q, size_t i)
{
	const struct report_opts *opts = q->job->opts;
	const struct verdicts *v = q->job->verdict.verdicts;
	const struct why_opts how = {.json = opts->format == FORMAT_JSON,
				     .whole_stacks = opts->full,
				     .top = opts->view.top,
				     .columns = opts->view.columns,
				     .view = &opts->view};
	struct why why;
	int err;

	if (opts->choice.pid && opts->choice.pid != verdicts_process(v, i)->tgid)
		return 0;
	err = why_init(&why, q->job->leaks, v, i, &how);
	if (!err)
		err = answer_with(&why, q);
	why_release(&why);
	return err;
}

/* Mark the stacks that are meant: those with this id, or through such a function. */
static int choose_stacks(struct question *q, const char *what)
{
	struct report_run *job = q->job;
	struct view_opts view = job->opts->view;
	int status;

	view.top = 0;
	view.all = true;
	view.details = true;
	view.sieve.by_id =
		strlen(what) == STACK_ID_MAX - 1 && !stack_id_parse(what, &view.sieve.id);
	if (!view.sieve.by_id)
		view.sieve.function = what;
	if (!view.sieve.by_id && stack_filter_check(what) == -EINVAL) {
		log_error("'%s' is no address as 0x55d0c0a812c0, no id of a stack and no regular "
			  "expression for functions",
			  what);
		return EXIT_USAGE;
	}
	status = report_run_view(job, &view, false);
	if (status != EXIT_OK)
		return status;
	if (!job->view->nr) {
		log_error("no stack in '%s' matches '%s': 'mleak report' shows which there are",
			  job->shown, what);
		return EXIT_USAGE;
	}
	q->wanted = calloc(job->leaks->stacks->nr + 1, sizeof(*q->wanted));
	if (!q->wanted)
		return report_run_explain_make(job, -ENOMEM);
	for (size_t i = 0; i < job->view->nr; i++)
		q->wanted[job->view->chosen[i]] = true;
	return EXIT_OK;
}

static int read_question(struct question *q)
{
	const char *what = q->job->opts->why_what;

	if (!what)
		return EXIT_OK;
	q->of_block = !strncmp(what, "0x", 2) && !value_address(what, &q->address);
	return q->of_block ? EXIT_OK : choose_stacks(q, what);
}

static int explain_address(const struct question *q)
{
	log_error("0x%" PRIx64 " is in no block that was judged: 'mleak report --addr 0x%" PRIx64
		  " %s' tells what is there",
		  q->address, q->address, text_trace_argument(q->job->shown));
	return EXIT_USAGE;
}

static int print_answers(struct question *q)
{
	const struct report_run *job = q->job;
	const struct verdicts *v = job->verdict.verdicts;
	bool as_json = job->opts->format == FORMAT_JSON;
	int err = 0;

	if (!job->opts->no_pager && !as_json)
		pager_start();
	if (as_json) {
		json_open(&q->json, NULL, '{');
		json_text(&q->json, "schema", "mleak-why");
		json_number(&q->json, "version", SCHEMA_VERSION);
		json_text(&q->json, "mleak", MLEAK_VERSION);
		json_text(&q->json, "path", job->path);
		json_open(&q->json, "processes", '[');
	}
	for (size_t i = 0; i < verdicts_nr(v) && !err; i++)
		err = answer_of(q, i);
	if (as_json) {
		json_close(&q->json, ']');
		json_close(&q->json, '}');
	}
	return err ? report_run_explain_make(job, err) : pager_finish();
}

static int why(const struct report_opts *opts)
{
	struct report_opts found = *opts; /* borrows what is allocated for @opts */
	struct report_run job = {0};
	struct question q = {.job = &job, .json = {.out = stdout}};
	int status = report_run_open(&job, &found, opts->path, NULL);

	if (status == EXIT_OK)
		status = moments_find(&found.choice, &job);
	if (status == EXIT_OK)
		status = report_run_collect(&job);
	if (status == EXIT_OK)
		status = read_question(&q);
	if (status == EXIT_OK)
		status = print_answers(&q);
	if (status == EXIT_OK && q.of_block && !q.answered)
		status = explain_address(&q);
	free(q.wanted);
	report_run_release(&job);
	return status;
}

int cmd_why(int argc, char **argv)
{
	return command_run(argc, argv, why);
}
