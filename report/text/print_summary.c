/* print_summary.c - see print_summary.h */
#include "report/text/print_summary.h"

#include <inttypes.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/context/print_overruns.h"
#include "report/context/sampling_text.h"
#include "report/stats/process_groups.h"

#define MAX_MISSING 10 /* modules without unwind information that are listed */
#define MAX_MARKS   5

/* Least widths of the columns; larger numbers make them wider. */
#define LABEL_WIDTH 13
#define COUNT_WIDTH 9
#define BYTES_WIDTH 23 /* with their unit */

/* The columns of one summary. */
struct table {
	FILE *out;
	int count_width;
	int bytes_width;
};

/* One more than @text has: numbers never touch the text before them. */
static int wider(int width, const char *text)
{
	int needed = (int)strlen(text) + 1;

	return needed > width ? needed : width;
}

static void print_count(const struct table *t, const char *label, uint64_t count, const char *rest)
{
	char buf[TEXT_NUMBER_MAX];

	fprintf(t->out, "  %-*s%*s%s\n", LABEL_WIDTH, label, t->count_width,
		text_number(buf, count), rest);
}

static void print_amount(const struct table *t, const char *label, struct live_amount amount)
{
	char blocks[TEXT_NUMBER_MAX], bytes[SIZE_TEXT_MAX];

	fprintf(t->out, "  %-*s%*s %-6s%*s\n", LABEL_WIDTH, label, t->count_width,
		text_number(blocks, amount.blocks), text_blocks(amount.blocks), t->bytes_width,
		size_text(bytes, amount.bytes));
}

/* A sum modulo 2^64 that may be below zero, with its sign. */
static const char *net_text(char buf[TEXT_NUMBER_MAX + 1], uint64_t net)
{
	bool below = (int64_t)net < 0;

	buf[0] = below ? '-' : '+';
	text_number(buf + 1, below ? 0 - net : net);
	return buf;
}

/* What the recording added to the process: what is outstanding, less the older blocks freed. */
static void print_net(const struct table *t, const struct live_totals *totals)
{
	struct live_amount net = live_net(totals);
	uint64_t unknown = totals->unknown_frees - totals->older.blocks;
	char blocks[TEXT_NUMBER_MAX + 1], bytes[SIZE_TEXT_MAX], nr[TEXT_NUMBER_MAX];
	bool below = (int64_t)net.bytes < 0;

	fprintf(t->out, "  %-*s%*s %-6s%*s", LABEL_WIDTH, "net", t->count_width,
		net_text(blocks, net.blocks), text_blocks(net.blocks), t->bytes_width,
		size_change_text(bytes, below ? 0 - net.bytes : 0, below ? 0 : net.bytes));
	if (unknown)
		fprintf(t->out, ", less %s older %s of unknown size", text_number(nr, unknown),
			text_blocks(unknown));
	fputc('\n', t->out);
}

static void print_outstanding(const struct table *t, struct live_amount outstanding,
			      struct live_amount suspect)
{
	char blocks[TEXT_NUMBER_MAX], bytes[SIZE_TEXT_MAX];

	print_amount(t, "outstanding", outstanding);
	if (suspect.blocks)
		fprintf(t->out,
			"    suspect: %s of these blocks (%s) lived while frees were lost: "
			"%s may have been freed\n",
			text_number(blocks, suspect.blocks), size_text(bytes, suspect.bytes),
			suspect.blocks == 1 ? "it" : "they");
}

/* When the frees were lost that leave blocks in doubt, in seconds from @start_ns on. */
static void print_suspect_times(FILE *out, const struct replay *leaks, uint64_t start_ns)
{
	uint64_t end_ns = leaks->condition.end_ns, from_ns, to_ns;

	if (!leaks->suspects.blocks || !suspect_blocks_times(&leaks->suspect, &from_ns, &to_ns) ||
	    from_ns < start_ns || to_ns < from_ns)
		return;
	/* the recorder may have noted the last losses after the end that is told above */
	if (to_ns > end_ns && from_ns <= end_ns)
		to_ns = end_ns;
	fprintf(out,
		"    frees were lost between %.3f and %.3f s: blocks allocated later are not "
		"suspect\n",
		(double)(from_ns - start_ns) / 1e9, (double)(to_ns - start_ns) / 1e9);
}

/* Where the recording began later, blocks from before are freed in it as a matter of course. */
static void print_unknown_frees(const struct table *t, uint64_t nr, bool whole_life)
{
	if (nr && whole_life)
		print_count(
			t, "unknown frees", nr,
			"  (their allocation was not recorded, or libc emptied a thread's cache)");
	else if (nr)
		print_count(t, "older blocks", nr, "  freed, but allocated before the recording");
}

static void print_older_sizes(FILE *out, const struct live_amount *older)
{
	char blocks[TEXT_NUMBER_MAX], bytes[SIZE_TEXT_MAX];

	if (older->blocks)
		fprintf(out, "    %s of them had about %s: so much was allocated there next\n",
			text_number(blocks, older->blocks), size_text(bytes, older->bytes));
}

/* In a sample these frees are not in the trace, so their number is an estimate, as others are. */
static void print_older_in_sample(const struct table *t, const struct replay *leaks, uint64_t older)
{
	char blocks[TEXT_NUMBER_MAX + 1];

	if (!older)
		return;
	print_count(t, "older blocks", older,
		    "  freed, by estimate, but allocated before the recording; of unknown sizes");
	fprintf(t->out, "  %-*s%*s blocks, by estimate; of bytes it is not known\n", LABEL_WIDTH,
		"net", t->count_width, net_text(blocks, leaks->totals.outstanding.blocks - older));
}

static void print_totals(const struct table *t, const struct live_totals *totals,
			 struct live_amount suspect, bool whole_life)
{
	print_amount(t, "allocations", totals->allocated);
	print_amount(t, "frees", totals->freed);
	print_unknown_frees(t, totals->unknown_frees, whole_life);
	if (!whole_life)
		print_older_sizes(t->out, &totals->older);
	if (totals->freed_again)
		print_count(t, "freed again", totals->freed_again,
			    "  (libc emptied threads' caches, or an allocation was not seen)");
	if (totals->inherited_frees)
		print_count(t, "inherited", totals->inherited_frees,
			    "  (allocated by a process, freed in its forked child)");
	if (totals->implied.blocks) {
		print_amount(t, "implied frees", totals->implied);
		fputs("    not seen; known because the same addresses were allocated again\n",
		      t->out);
	}
	if (totals->gone.blocks)
		print_amount(t, "gone at exec", totals->gone);
	print_outstanding(t, totals->outstanding, suspect);
}

/* What of mappings is not outstanding, because it needs no memory. */
static void print_unused(const struct table *t, const char *label, struct live_amount amount,
			 const char *why)
{
	char blocks[TEXT_NUMBER_MAX], bytes[SIZE_TEXT_MAX];

	if (amount.blocks)
		fprintf(t->out, "  %-*s%*s %-6s%*s  %s\n", LABEL_WIDTH, label, t->count_width,
			text_number(blocks, amount.blocks), amount.blocks == 1 ? "range" : "ranges",
			t->bytes_width, size_text(bytes, amount.bytes), why);
}

static void print_losses(const struct table *t, const struct replay *leaks)
{
	const struct mlk_losses *losses = &leaks->condition.losses;
	char buf[TEXT_NUMBER_MAX];
	uint64_t frees;

	print_count(t, "lost events", replay_lost(leaks), "");
	for (int kind = 0; kind < MLK_LOSS_NR; kind++)
		if (replay_is_event_loss(kind) && losses->count[kind])
			fprintf(t->out, "    %s: %s\n", mlk_loss_text((enum mlk_loss)kind, 0),
				text_number(buf, losses->count[kind]));
	/* a release that was lost is a free that was lost */
	frees = losses->count[MLK_LOST_FREE] + losses->count[MLK_LOST_RELEASE];
	text_number(buf, frees);
	if (frees)
		fprintf(t->out,
			"    %s %s lost: up to %s of the outstanding blocks may not be leaks\n",
			buf, frees == 1 ? "free was" : "frees were", buf);
	if (losses->count[MLK_LOST_SUM])
		fprintf(t->out, "  not added up for --trigger: %s %s, for lack of room\n",
			text_number(buf, losses->count[MLK_LOST_SUM]),
			losses->count[MLK_LOST_SUM] == 1 ? "allocation or free"
							 : "allocations and frees");
	for (int kind = 0; kind < MLK_LOSS_NR; kind++)
		if (replay_is_frame_loss(kind) && losses->count[kind])
			fprintf(t->out, "  %s %s\n", text_number(buf, losses->count[kind]),
				mlk_loss_text((enum mlk_loss)kind, losses->count[kind]));
}

static void print_completeness(const struct table *t, const struct replay *leaks)
{
	uint64_t complete = leaks->status_counts[DWUNW_STATUS_ENDED];
	uint64_t all = replay_allocations(leaks);
	char buf[TEXT_NUMBER_MAX], of[TEXT_NUMBER_MAX];
	uint64_t permille;

	if (!all)
		return;
	/* rounded down: 100.0 % is said only when it is so */
	permille = (uint64_t)((double)complete / (double)all * 1000);
	if (permille >= 1000 && complete < all)
		permille = 999;
	fprintf(t->out, "  complete stacks %" PRIu64 ".%" PRIu64 " %% (%s of %s)\n", permille / 10,
		permille % 10, text_number(buf, complete), text_number(of, all));
	for (int status = 0; status < DWUNW_STATUS_NR; status++) {
		uint64_t count = leaks->status_counts[(enum dwunw_status)status];

		if (count && status != DWUNW_STATUS_ENDED)
			fprintf(t->out, "    incomplete, %s: %s\n",
				dwunw_status_text((enum dwunw_status)status),
				text_number(buf, count));
	}
}

/* The first marks, by which --at can be given. */
static void print_marks(FILE *out, const struct trace_marks *marks, uint64_t start_ns)
{
	for (size_t i = 0; i < marks->nr && i < MAX_MARKS; i++) {
		const struct trace_mark *mark = &marks->all[i];
		uint64_t since = mark->time_ns > start_ns ? mark->time_ns - start_ns : 0;

		fprintf(out, "  mark:%-10zu at %.3f s: ", i + 1, (double)since / 1e9);
		text_print(out, trace_mark_text(mark));
		fputc('\n', out);
	}
	if (marks->nr > MAX_MARKS)
		fprintf(out, "  and %zu more %s: 'mleak info' lists %s\n", marks->nr - MAX_MARKS,
			marks->nr - MAX_MARKS == 1 ? "mark" : "marks",
			marks->nr - MAX_MARKS == 1 ? "it" : "them");
}

static void print_missing(FILE *out, const struct replay *leaks)
{
	const char *path;
	size_t nr = 0;

	for (; (path = replay_missing(leaks, nr)); nr++) {
		if (nr >= MAX_MISSING)
			continue;
		fputs("  no unwind information in the trace for: ", out);
		text_print(out, path);
		fputc('\n', out);
	}
	if (nr > MAX_MISSING)
		fprintf(out, "  and for %zu more module%s\n", nr - MAX_MISSING,
			nr - MAX_MISSING == 1 ? "" : "s");
}

/* The name of the program that the first process began later, by exec; NULL: it began none, or one
 * of the same name. */
static const char *later_program(const struct mlk_meta *meta, const struct replay *leaks)
{
	const struct live *live = leaks->live;
	const char *name;

	for (size_t i = 0; i < live_nr_processes(live); i++) {
		struct live_process p = live_process(live, i);

		if (p.tgid != meta->tgid || !p.execed)
			continue;
		name = processes_name(leaks->processes, p.tgid);
		return strcmp(name, meta->comm) ? name : NULL;
	}
	return NULL;
}

static void print_origin(FILE *out, const char *path, const struct mlk_meta *meta,
			 const struct replay *leaks)
{
	const uint64_t end_ns = leaks->condition.end_ns;
	const char *later = later_program(meta, leaks);
	const char *who = meta->command[0] ? meta->command : meta->exe;
	uint64_t ns = end_ns > meta->start_ns ? end_ns - meta->start_ns : 0;
	uint64_t ms = ns / 1000000 + (ns % 1000000 >= 500000); /* as other times are rounded */

	fputs("trace '", out);
	text_print(out, path);
	fputs("': ", out);
	text_print(out, who[0] ? who : "unknown command");
	if (later) {
		fputs(", then ", out);
		text_print(out, later);
	}
	if (!meta->of_kernel)
		fprintf(out, " (pid %" PRIu64 ")", meta->tgid);
	fprintf(out, ", %" PRIu64 ".%03" PRIu64 " s", ms / 1000, ms % 1000);
	if (meta->hostname[0]) {
		fputs(" on ", out);
		text_print(out, meta->hostname);
	}
	if (meta->kernel[0]) {
		fputs(", Linux ", out);
		text_print(out, meta->kernel);
	}
	if (meta->machine[0]) {
		fputc(' ', out);
		text_print(out, meta->machine);
	}
	fputc('\n', out);
}

int print_summary(FILE *out, const char *path, const struct mlk_meta *meta,
		  const struct replay *leaks, bool each)
{
	const struct live_totals *totals = &leaks->totals;
	struct table t = {.out = out, .count_width = COUNT_WIDTH, .bytes_width = BYTES_WIDTH};
	char number[TEXT_NUMBER_MAX], size[SIZE_TEXT_MAX];
	struct process_groups groups;
	int err;

	/* no sum of the table is larger than these */
	t.count_width = wider(t.count_width, text_number(number, totals->allocated.blocks));
	t.count_width = wider(t.count_width, text_number(number, totals->unknown_frees));
	t.count_width = wider(t.count_width, text_number(number, totals->inherited_frees));
	t.bytes_width = wider(t.bytes_width, size_text(size, totals->allocated.bytes));

	print_origin(out, path, meta, leaks);
	/* where no calls were recorded, the verdicts that follow are all there is */
	if (strcmp(meta->backend, MLK_BACKEND_MEMORY) == 0)
		return 0;
	print_totals(&t, totals, leaks->suspects, meta->whole_life);
	print_unused(&t, "reserved", totals->reserved, "(PROT_NONE: needs no memory)");
	print_unused(&t, "given back", totals->given_back, "(by madvise: needs no memory)");
	print_suspect_times(out, leaks, meta->start_ns);
	if (totals->unknown_frees && !meta->whole_life)
		print_net(&t, totals);
	print_older_in_sample(&t, leaks, replay_older_in_sample(leaks, meta));
	print_sampling(out, meta, leaks);
	print_losses(&t, leaks);
	print_completeness(&t, leaks);
	print_missing(out, leaks);
	print_marks(out, &leaks->marks, meta->start_ns);
	print_overruns_count(out, meta, leaks);
	err = process_groups_init(&groups, leaks->processes, leaks->live,
				  each || leaks->chosen.pid);
	if (!err)
		err = process_groups_print(out, &groups, leaks->chosen.pid);
	process_groups_release(&groups);
	return err;
}
