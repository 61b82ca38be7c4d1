/* gate.c - see gate.h */
#include "report/gate.h"

#include <inttypes.h>
#include <stdarg.h>

#include "mleak.h"
#include "report/base/text.h"
#include "report/output/print_growth.h"

/* What keeps a trace from telling, as it is put together. */
struct doubts {
	char text[GATE_TEXT / 2]; /* longer ones end early */
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct doubts *d, const char *fmt, ...)
{
	size_t room = sizeof(d->text) - d->len;
	va_list args;
	int n;

	if (d->len)
		n = snprintf(d->text + d->len, room, ", ");
	else
		n = 0;
	if ((size_t)n >= room)
		return;
	va_start(args, fmt);
	n += vsnprintf(d->text + d->len + n, room - (size_t)n, fmt, args);
	va_end(args);
	d->len += (size_t)n < room ? (size_t)n : room - 1;
}

/* Is the end of the recording behind all that is examined? */
static bool has_its_end(const struct report_run *job)
{
	const struct mlk_condition *condition = &job->leaks->condition;

	return (condition->ended && condition->reason != MLK_END_ERROR) ||
	       job->leaks->chosen.stop_ns < condition->end_ns;
}

static void doubt_chunks(struct doubts *d, const struct report_run *job)
{
	const struct mlk_condition *condition = &job->leaks->condition;

	if (job->leaks->suspect.chunks)
		add(d, "%" PRIu64 " %s", condition->chunks_lost,
		    condition->chunks_lost == 1 ? "of its chunks is lost"
						: "of its chunks are lost");
	if (!has_its_end(job))
		add(d, condition->ended ? "the recorder could not continue to write"
		       : mlk_reader_is_growing(job->trace) ? "it is still being written"
							   : "it has no end");
}

static void doubt_losses(struct doubts *d, const struct report_run *job)
{
	const struct stack_filter_opts *sieve = &job->opts->view.sieve;
	const uint64_t *lost = job->leaks->suspect.in_time;
	uint64_t programs = lost[MLK_LOST_EXEC], events = 0;

	for (int kind = 0; kind < MLK_LOSS_NR; kind++)
		if (replay_is_event_loss(kind) && kind != MLK_LOST_EXEC)
			events += lost[kind];
	if (lost[MLK_LOST_LOOK])
		add(d, "blocks of %" PRIu64 " %s were not checked for overruns",
		    lost[MLK_LOST_LOOK], lost[MLK_LOST_LOOK] == 1 ? "process" : "processes");
	if (events)
		add(d, "%" PRIu64 " %s", events,
		    events == 1 ? "event was lost" : "events were lost");
	if (programs)
		add(d, "%" PRIu64 " %s", programs,
		    programs == 1 ? "program or process was not recorded"
				  : "programs or processes were not recorded");
	if (lost[MLK_LOST_MODULE] && (sieve->function || sieve->module))
		add(d, "%" PRIu64 " %s, so not all of its stacks have names", lost[MLK_LOST_MODULE],
		    lost[MLK_LOST_MODULE] == 1 ? "module could not be read"
					       : "modules could not be read");
}

/* What was only counted has no blocks that could be left. */
static void doubt_counts(struct doubts *d, const struct report_run *job)
{
	uint64_t counted = replay_only_counted(job->leaks);

	if (counted)
		add(d, "nothing was recorded in full, %" PRIu64 " allocation%s only counted",
		    counted, counted == 1 ? " was" : "s were");
}

/* A command is recorded to its end, and what leaks may well be what it started. */
static void doubt_children(struct doubts *d, const struct report_run *job)
{
	const struct mlk_losses *losses = &job->leaks->condition.losses;
	const struct mlk_meta *meta = mlk_reader_meta(job->trace);
	uint64_t children = losses->skipped[MLK_SKIPPED_CHILD];

	if (children && meta->whole_life)
		add(d, "%" PRIu64 " child process%s not recorded (mleak record --follow)", children,
		    children == 1 ? " was" : "es were");
}

/* Does the trace of @job not show what is left? Then into the GATE_TEXT bytes at @text. */
static bool is_in_doubt(const struct report_run *job, char *text)
{
	struct doubts d = {.text = ""};

	doubt_chunks(&d, job);
	doubt_losses(&d, job);
	doubt_counts(&d, job);
	doubt_children(&d, job);
	if (d.len)
		snprintf(text, GATE_TEXT, "'%.200s' does not tell whether anything leaked: %s",
			 job->shown, d.text);
	return d.len > 0;
}

static bool is_more(const struct report_opts *opts, struct live_amount amount)
{
	return opts->fail_bytes ? amount.bytes > opts->fail_bytes : amount.blocks || amount.bytes;
}

static uint64_t less(uint64_t from, uint64_t by)
{
	return from > by ? from - by : 0;
}

/* What is there of @amount, whatever was lost. */
static struct live_amount certain_of(const struct report_run *job, struct live_amount amount)
{
	struct live_amount suspect = job->leaks->suspects;

	return (struct live_amount){less(amount.blocks, suspect.blocks),
				    less(amount.bytes, suspect.bytes)};
}

/* Is more left than is allowed, whatever was lost? Without its end it is unknown what would have
 * been freed. */
static bool is_certain(const struct report_run *job, struct live_amount amount)
{
	return has_its_end(job) && is_more(job->opts, certain_of(job, amount));
}

/* An option that chooses nothing of the trace hides all leaks. */
static bool chooses_nothing(bool unmatched, char *text)
{
	if (unmatched)
		snprintf(text, GATE_TEXT,
			 "it is not known whether anything leaked: nothing in the trace matches "
			 "the options; correct the name in the warning");
	return unmatched;
}

int gate_strict(const struct report_opts *opts)
{
	if (!opts->strict || !log_warnings())
		return EXIT_OK;
	log_error("the exit status is 2, since --strict is given and there was a warning");
	return EXIT_UNKNOWN;
}

struct gate gate_leaks(const struct report_run *job, const struct report_data *export,
		       bool unmatched)
{
	bool lost = job->opts->fail_on_lost;
	struct live_amount amount = lost ? report_data_lost(export) : report_data_selected(export);
	struct gate gate = {.status = EXIT_LEAKS};

	/* what is lost would not have been freed after the end, either */
	if (lost && is_more(job->opts, certain_of(job, amount)))
		return gate;
	if (!lost && (export->leaks->overruns->nr || is_certain(job, amount)))
		return gate;
	if (chooses_nothing(unmatched, gate.text) || is_in_doubt(job, gate.text))
		gate.status = EXIT_UNKNOWN;
	else if (!is_more(job->opts, amount))
		gate.status = EXIT_OK;
	return gate;
}

/* Judge it by --fail-on growing.  What grew before the trace was cut has grown. */
static struct gate gate_growing(const struct report_run *job, const struct report_data *export,
				bool unmatched)
{
	struct gate gate = {.status = EXIT_OK};
	size_t nr = 0;
	struct live_amount amount;
	char bytes[TEXT_NUMBER_MAX];

	if (print_growth_growing(export, job->growth, &nr, &amount)) {
		gate.status = EXIT_UNKNOWN;
		snprintf(gate.text, sizeof(gate.text),
			 "there is not enough memory to tell what grows; allow more by "
			 "--max-memory");
	} else if (growth_time_is_short(&job->leaks->chosen) && !replay_only_counted(job->leaks)) {
		log_warn("--fail-on growing is not told of less than a second: record for longer");
	} else if (certain_of(job, amount).bytes) {
		gate.status = EXIT_LEAKS;
		snprintf(gate.text, sizeof(gate.text),
			 "%zu %s, with %s bytes outstanding; 'mleak report --growth %.200s' shows "
			 "%s",
			 nr, nr == 1 ? "stack is growing" : "stacks are growing",
			 text_number(bytes, amount.bytes), text_trace_argument(job->shown),
			 nr == 1 ? "it" : "them");
	} else if (chooses_nothing(unmatched, gate.text) || is_in_doubt(job, gate.text)) {
		gate.status = EXIT_UNKNOWN;
	}
	return gate;
}

int gate_report(const struct report_run *job, const struct report_data *export, bool unmatched)
{
	const struct report_opts *opts = job->opts;
	struct gate leaks = {.status = EXIT_OK}, growing = {.status = EXIT_OK};

	if (opts->fail_on_leak)
		leaks = gate_leaks(job, export, unmatched);
	if (opts->fail_on_growing)
		growing = gate_growing(job, export, unmatched);
	if (growing.status == EXIT_LEAKS)
		log_info("%s", growing.text);
	if (growing.status == EXIT_LEAKS || leaks.status == EXIT_LEAKS)
		return EXIT_LEAKS;
	if (leaks.status != EXIT_OK || growing.status != EXIT_OK) {
		log_error("%s", leaks.status != EXIT_OK ? leaks.text : growing.text);
		return EXIT_UNKNOWN;
	}
	return gate_strict(opts);
}

/* Is it in doubt, which is logged? */
static bool doubts_side(const struct report_run *job)
{
	char text[GATE_TEXT];
	bool doubtful = is_in_doubt(job, text);

	if (doubtful)
		log_error("%s", text);
	return doubtful;
}

int gate_difference(const struct report_run *before, const struct report_run *after,
		    struct live_amount came, bool unmatched)
{
	const struct report_opts *opts = after->opts;
	char text[GATE_TEXT];
	bool doubtful;

	if (!opts->fail_on_leak)
		return gate_strict(opts);
	/* what is lost in either may be what makes the difference, or makes up for it */
	doubtful = doubts_side(before);
	doubtful = (!after->is_second && doubts_side(after)) || doubtful;
	if (chooses_nothing(unmatched, text)) {
		log_error("%s", text);
		doubtful = true;
	}
	if (doubtful)
		return EXIT_UNKNOWN;
	return is_more(opts, came) ? EXIT_LEAKS : gate_strict(opts);
}
