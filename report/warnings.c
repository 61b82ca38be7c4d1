/* warnings.c - see warnings.h */
#include "report/warnings.h"
#include "report/name/stack_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "report/base/text.h"
#include "report/context/sampling_text.h"
#include "report/trace/address_spaces.h"
#include "report/trace/trace_gaps.h"

/* Warn of what the trace holds more of than this mleak takes in. */
static void warn_of_limits(const char *path, const struct replay *leaks)
{
	size_t ignored = leaks->spaces->ignored;

	if (ignored)
		log_warn("'%s' holds more than %zu executable mappings: %zu of its snapshots of "
			 "them %s ignored, and stacks may be wrong or incomplete",
			 path, SPACES_MAX_MAPPINGS, ignored, ignored == 1 ? "was" : "were");
	if (leaks->images->overflown)
		log_warn("'%s' names more than %u programs and libraries: the others are ignored, "
			 "and stacks in them incomplete",
			 path, IMAGES_MAX);
}

/* Of what the formats for programs have no place for. */
static void warn_of_losses(const char *path, const struct replay *leaks)
{
	const struct mlk_losses *losses = &leaks->condition.losses;
	struct live_amount suspect = leaks->suspects;
	uint64_t total = replay_lost(leaks);

	if (total)
		log_warn("%" PRIu64 " %s while '%s' was recorded; the report without "
			 "--format lists %s",
			 total, total == 1 ? "event was lost" : "events were lost", path,
			 total == 1 ? "it" : "them");
	if (losses->count[MLK_LOST_LOOK])
		log_warn("'%s': %" PRIu64 " %s", path, losses->count[MLK_LOST_LOOK],
			 mlk_loss_text(MLK_LOST_LOOK, losses->count[MLK_LOST_LOOK]));
	if (losses->count[MLK_LOST_USER])
		log_warn("'%s': %" PRIu64 " %s %s missing", path, losses->count[MLK_LOST_USER],
			 mlk_loss_text(MLK_LOST_USER, losses->count[MLK_LOST_USER]),
			 losses->count[MLK_LOST_USER] == 1 ? "is" : "are");
	if (losses->count[MLK_LOST_SUM])
		log_warn("'%s': %" PRIu64 " %s, for lack of room: what was to be recorded then may "
			 "be missing",
			 path, losses->count[MLK_LOST_SUM],
			 mlk_loss_text(MLK_LOST_SUM, losses->count[MLK_LOST_SUM]));
	for (int kind = 0; kind < MLK_LOSS_NR; kind++)
		if (replay_is_frame_loss(kind) && losses->count[kind])
			log_warn("'%s': %" PRIu64 " %s", path, losses->count[kind],
				 mlk_loss_text((enum mlk_loss)kind, losses->count[kind]));
	if (suspect.blocks)
		log_warn("%" PRIu64 " of the outstanding blocks in '%s' (%" PRIu64
			 " bytes) lived while frees were lost: %s may have been freed",
			 suspect.blocks, path, suspect.bytes, suspect.blocks == 1 ? "it" : "they");
}

/* These have a summary above them, with losses and samples. */
static bool is_text(enum report_format format)
{
	return format == FORMAT_TREE || format == FORMAT_FLAT;
}

/* Of the formats that have no place for them. */
static void warn_of_overruns(const struct report_run *job)
{
	size_t nr = job->leaks->overruns->nr;
	enum report_format format = job->opts->format;

	if (nr && !is_text(format) && format != FORMAT_JSON)
		log_warn("%zu %s found in '%s'; the report without --format "
			 "describes %s",
			 nr, nr == 1 ? "overrun of a block was" : "overruns of blocks were",
			 job->shown, nr == 1 ? "it" : "them");
}

/* Likewise. */
static void warn_of_sample(const char *path, const struct mlk_meta *meta)
{
	char how[SAMPLE_TEXT_MAX];

	if (print_sampling_rate(how, meta))
		log_warn("'%s' holds %s: all bytes are estimates", path, how);
}

/* Of what only a table of threads has a place for. */
static void warn_of_counts(const struct report_run *job)
{
	uint64_t counted = replay_only_counted(job->leaks);

	if (counted && !group_is_threads(job->opts->by))
		log_warn("nothing of '%s' was recorded in full: %" PRIu64 " %s only counted",
			 job->shown, counted, counted == 1 ? "allocation was" : "allocations were");
}

static void warn_of_moment(const struct report_run *job)
{
	const struct chosen *chosen = &job->leaks->chosen;

	/* but --between 10s,1h may well mean until the end */
	if (job->opts->choice.until && chosen->end_ns < chosen->stop_ns &&
	    (!chosen->given_from_ns || chosen->given_from_ns > chosen->end_ns))
		log_warn("the recording '%s' ended after %.3f s, before the requested moment",
			 job->shown, (double)(int64_t)(chosen->end_ns - chosen->start_ns) / 1e9);
}

/* Is the same said of both? */
static bool is_same_interpreter(const struct mlk_interpreter *a, const struct mlk_interpreter *b)
{
	return !b->known && a->language == b->language && !strcmp(a->version, b->version) &&
	       !strcmp(a->why, b->why);
}

/* How many processes have what @of, the record @i, says, as it is the first one that says so; 0: it
 * is not.  A process may have several records, one after the other. */
static size_t count_same_interpreters(const struct interpreted *in, size_t i)
{
	const struct mlk_interpreter *of = &in->all_of[i], *last = of;
	size_t nr = 1;

	for (size_t k = 0; k < i; k++)
		if (is_same_interpreter(of, &in->all_of[k]))
			return 0;
	for (size_t k = i + 1; k < in->nr_of; k++)
		if (is_same_interpreter(of, &in->all_of[k])) {
			nr += in->all_of[k].tgid != last->tgid;
			last = &in->all_of[k];
		}
	return nr;
}

/* Of interpreters whose frames are not in the trace. */
static void warn_of_interpreters(const struct report_run *job)
{
	const struct interpreted *in = &job->leaks->images->interpreted;

	for (size_t i = 0; i < in->nr_of; i++) {
		const struct mlk_interpreter *of = &in->all_of[i];
		const size_t nr = of->known ? 0 : count_same_interpreters(in, i);
		char more[48] = "";

		if (nr > 1)
			snprintf(more, sizeof(more), " and %zu more", nr - 1);
		if (nr)
			log_warn("stacks of process %" PRIu32 "%s in '%s' lack the functions of "
				 "%s %s: %s",
				 of->tgid, more, job->shown, mlk_language_text(of->language),
				 of->version, of->why);
	}
}

/* Of functions that processes generated, whose names are not in the trace. */
static void warn_of_generated(const struct report_run *job)
{
	const struct generated_names *names = &job->leaks->spaces->names;

	char *problem = names->problem ? text_escape(names->problem) : NULL;
	char bytes[64] = "";

	if (names->left_out_bytes)
		snprintf(bytes, sizeof(bytes), " (%" PRIu64 " bytes of it were left out)",
			 names->left_out_bytes);
	if (problem)
		log_warn("names of generated code of process %" PRIu32
			 " are missing in '%s': its %s %s%s",
			 names->problem_tgid, job->shown,
			 names->problem_source == MLK_CODE_NAMES_JITDUMP ? "jit-PID.dump"
									 : "/tmp/perf-PID.map",
			 problem, bytes);
	free(problem);
	if (names->left_out)
		log_warn("'%s' has too many names of generated code: %zu %s ignored", job->shown,
			 names->left_out, names->left_out == 1 ? "was" : "were");
}

void warn_of_trace(const struct report_run *job)
{
	warn_of_moment(job);
	if (job->is_second)
		return;
	warn_of_gaps(job->shown, job->trace, &job->leaks->condition,
		     "frees whose blocks may be reported as leaks");
	warn_of_limits(job->shown, job->leaks);
	warn_of_overruns(job);
	warn_of_interpreters(job);
	warn_of_generated(job);
	if (!is_text(job->opts->format)) {
		warn_of_losses(job->shown, job->leaks);
		warn_of_sample(job->shown, mlk_reader_meta(job->trace));
		warn_of_counts(job);
	}
}

void warn_of_names(const struct dwunw *dw)
{
	const char *path;

	for (uint32_t module = 0; (path = dwunw_module_path(dw, module)) != NULL; module++) {
		uint32_t notes = dwunw_module_notes(dw, module);
		char *shown = notes ? text_escape(path) : NULL;

		for (uint32_t note = 1; shown && note <= notes; note *= 2)
			if (notes & note)
				log_warn("some names or lines of '%s' are missing: %s%s", shown,
					 dwunw_note_text((enum dwunw_note)note),
					 note == DWUNW_NOTE_NO_MEMORY
						 ? "; allow more with --max-memory"
						 : "");
		free(shown);
	}
}

static bool warn_of_thread(const struct report_run *job)
{
	if (!job->opts->choice.thread || !unmatched_filters_thread(job->leaks))
		return false;
	log_warn("no thread of '%s' has the name or number '%s'", job->shown,
		 job->opts->choice.thread);
	return true;
}

static bool warn_of_module(const struct report_run *job)
{
	const char *module = job->opts->view.sieve.module;

	if (!module || !unmatched_filters_module(job->leaks, module))
		return false;
	log_warn("no program or library of '%s' is called '%s'", job->shown, module);
	return true;
}

/* Is there no stack with the id that is requested, be it of blocks that were freed? */
static bool warn_of_id(const struct report_run *job)
{
	const struct stack_filter_opts *sieve = &job->opts->view.sieve;
	const struct symbols_source source = {.dw = job->leaks->dw, .images = job->leaks->images};
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	char text[STACK_ID_MAX];
	const struct stacks *stacks = job->leaks->stacks;

	if (!sieve->by_id)
		return false;
	for (uint32_t i = 0; i < stacks->nr; i++)
		if (stack_id(&source, frames, stacks_frames(stacks, i, frames)) == sieve->id)
			return false;
	log_warn("no stack of '%s' has the id %s", job->shown, stack_id_text(text, sieve->id));
	return true;
}

int warn_of_filters(const struct report_run *job, bool *unmatched)
{
	const struct stack_filter_opts *sieve = &job->opts->view.sieve;
	struct symbols_source source = {.dw = job->leaks->dw, .images = job->leaks->images};
	bool is = false;
	int err;

	*unmatched = warn_of_thread(job);
	*unmatched = warn_of_module(job) || *unmatched;
	*unmatched = warn_of_id(job) || *unmatched;
	if (!sieve->function)
		return EXIT_OK;
	err = unmatched_filters_function(job->leaks, &source, sieve->function, &is);
	if (err)
		report_run_explain_make(job, err);
	else if (is)
		/* what comes later was not read */
		log_warn("no stack of '%s' has a function that matches '%s'%s", job->shown,
			 sieve->function, job->opts->choice.until ? " up to that moment" : "");
	*unmatched = *unmatched || is;
	return err ? EXIT_FAILED : EXIT_OK;
}

void warn_of_no_growth(void)
{
	log_warn("what grew is not said: that takes more memory than --max-memory allows");
}
