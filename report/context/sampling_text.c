/* sampling_text.c - see sampling_text.h */
#include "report/context/sampling_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "report/base/sizes.h"
#include "report/base/text.h"

const char *print_sampling_rate(char buf[SAMPLE_TEXT_MAX], const struct mlk_meta *meta)
{
	struct sampling sampling = sampling_of(meta);
	char number[TEXT_NUMBER_MAX];

	if (!sampling_is_on(&sampling))
		return NULL;
	if (sampling.bytes)
		snprintf(buf, SAMPLE_TEXT_MAX, "one allocation in %s bytes on average",
			 text_number(number, sampling.bytes));
	else
		snprintf(buf, SAMPLE_TEXT_MAX, "one of %s allocations",
			 text_number(number, sampling.every));
	return buf;
}

/* Add @text to the list on @out, which has @nr items. */
static void add_note(FILE *out, int *nr, const char *text)
{
	fprintf(out, "%s%s", (*nr)++ ? "; " : "", text);
}

char *sampling_notes(const struct mlk_meta *meta, const struct mlk_losses *losses)
{
	char text[2 * SAMPLE_TEXT_MAX], sample[SAMPLE_TEXT_MAX], size[SIZE_TEXT_MAX], *notes = NULL;
	bool on_trigger = meta->trigger_bytes || meta->trigger_process || meta->trigger_site;
	size_t len;
	FILE *out = open_memstream(&notes, &len);
	int nr = 0;

	if (!out)
		return NULL;
	if (print_sampling_rate(sample, meta)) {
		snprintf(text, sizeof(text), "a sample, %s: figures are estimates", sample);
		add_note(out, &nr, text);
	}
	if (meta->min_size) {
		snprintf(text, sizeof(text), "without blocks below %s",
			 size_text(size, meta->min_size));
		add_note(out, &nr, text);
	}
	if (meta->max_size) {
		snprintf(text, sizeof(text), "without blocks above %s",
			 size_text(size, meta->max_size));
		add_note(out, &nr, text);
	}
	if (on_trigger)
		add_note(out, &nr, "from the triggers on");
	else if (losses->skipped[MLK_SKIPPED_TRIGGER])
		add_note(out, &nr, "of chosen threads alone");
	if (meta->of_kernel && losses->skipped[MLK_SKIPPED_SIZE])
		add_note(out, &nr, "of chosen blocks alone");
	if (!fclose(out))
		return notes;
	free(notes);
	return NULL;
}

/* The square root of a variance, as a number for people. */
uint64_t print_sampling_error(double variance)
{
	double error = ceil(sqrt(variance));

	return error < 0x1p63 ? (uint64_t)error : UINT64_MAX;
}

static const char *standard_error(char buf[TEXT_NUMBER_MAX], double variance)
{
	return text_number(buf, print_sampling_error(variance));
}

/* Print "(N blocks, M bytes)" of what was skipped for the reason @kind, and end the line. */
static void print_skipped(FILE *out, const struct mlk_losses *losses, enum mlk_skip kind)
{
	char blocks[TEXT_NUMBER_MAX], bytes[SIZE_TEXT_MAX];

	fprintf(out, " (%s %s, %s)\n", text_number(blocks, losses->skipped[kind]),
		text_blocks(losses->skipped[kind]), size_text(bytes, losses->skipped_bytes[kind]));
}

static void print_sample(FILE *out, const struct mlk_meta *meta, const struct replay *leaks)
{
	const struct mlk_losses *losses = &leaks->condition.losses;
	const struct sampling_error *error = &leaks->error;
	char how[SAMPLE_TEXT_MAX], blocks[TEXT_NUMBER_MAX], bytes[SIZE_TEXT_MAX];

	if (!print_sampling_rate(how, meta))
		return;
	fprintf(out, "  sampled: %s; all blocks and bytes are estimates\n", how);
	fprintf(out, "    standard error of what is outstanding: %s blocks, %s\n",
		standard_error(blocks, error->blocks),
		size_text(bytes, print_sampling_error(error->bytes)));
	fputs("    not recorded: allocations that are not in the sample", out);
	print_skipped(out, losses, MLK_SKIPPED_SAMPLE);
}

static void print_sizes(FILE *out, const struct mlk_meta *meta, const struct mlk_losses *losses)
{
	char min[TEXT_NUMBER_MAX], max[TEXT_NUMBER_MAX];

	if (!meta->min_size && !meta->max_size && !losses->skipped[MLK_SKIPPED_SIZE])
		return;
	if (meta->of_kernel) {
		fputs("  not recorded: blocks that --cache, --comm, --cgroup or a size left out",
		      out);
		print_skipped(out, losses, MLK_SKIPPED_SIZE);
		return;
	}
	fputs("  not recorded: blocks", out);
	if (meta->min_size)
		fprintf(out, " below %s", text_number(min, meta->min_size));
	if (meta->min_size && meta->max_size)
		fputs(" or", out);
	if (meta->max_size)
		fprintf(out, " above %s", text_number(max, meta->max_size));
	fputs(meta->min_size || meta->max_size ? " bytes" : " of some sizes", out);
	print_skipped(out, losses, MLK_SKIPPED_SIZE);
}

static void print_threads(FILE *out, const struct mlk_meta *meta, const struct mlk_losses *losses)
{
	const struct {
		const char *what;
		uint64_t bytes;
	} kinds[] = {{"threads", meta->trigger_bytes},
		     {"processes", meta->trigger_process},
		     {"call sites", meta->trigger_site}};
	char bytes[SIZE_TEXT_MAX];
	bool any = false;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!kinds[i].bytes)
			continue;
		fprintf(out, "%s%s until they had %s outstanding",
			any ? ", " : "  not recorded: ", kinds[i].what,
			size_text(bytes, kinds[i].bytes));
		any = true;
	}
	if (!any && !losses->skipped[MLK_SKIPPED_TRIGGER])
		return;
	if (!any)
		fputs("  not recorded: what was not chosen", out);
	print_skipped(out, losses, MLK_SKIPPED_TRIGGER);
}

void print_sampling(FILE *out, const struct mlk_meta *meta, const struct replay *leaks)
{
	const struct mlk_losses *losses = &leaks->condition.losses;
	uint64_t unkept = losses->skipped[MLK_SKIPPED_UNKEPT];
	uint64_t children = losses->skipped[MLK_SKIPPED_CHILD];
	static const enum mlk_skip kernel[] = {MLK_SKIPPED_SHORT, MLK_SKIPPED_OWN,
					       MLK_SKIPPED_SLAB};
	char number[TEXT_NUMBER_MAX];

	print_sample(out, meta, leaks);
	print_sizes(out, meta, losses);
	print_threads(out, meta, losses);
	if (losses->skipped[MLK_SKIPPED_DELAY]) {
		fputs("  not recorded: events before the delay was over", out);
		print_skipped(out, losses, MLK_SKIPPED_DELAY);
	}
	if (losses->skipped[MLK_SKIPPED_FREE])
		fprintf(out, "  not recorded: %s %s not in the trace\n",
			text_number(number, losses->skipped[MLK_SKIPPED_FREE]),
			losses->skipped[MLK_SKIPPED_FREE] == 1 ? "free of a block that is"
							       : "frees of blocks that are");
	if (children)
		fprintf(out, "  not recorded: %s child process%s (mleak record --follow%s)\n",
			text_number(number, children), children == 1 ? "" : "es",
			meta->whole_life ? "" : ", and -p for each that runs already");
	for (size_t i = 0; i < sizeof(kernel) / sizeof(kernel[0]); i++)
		if (losses->skipped[kernel[i]]) {
			fprintf(out, "  not recorded: %s", mlk_skip_text(kernel[i], 0));
			print_skipped(out, losses, kernel[i]);
		}
	if (losses->skipped[MLK_SKIPPED_PAGES])
		fprintf(out, "  not known: whether %s %s that madvise gave back %s used again\n",
			text_number(number, losses->skipped[MLK_SKIPPED_PAGES]),
			losses->skipped[MLK_SKIPPED_PAGES] == 1 ? "range" : "ranges",
			losses->skipped[MLK_SKIPPED_PAGES] == 1 ? "is" : "are");
	if (unkept)
		fprintf(out,
			"  table of recorded blocks full: %s; other blocks' frees are in the "
			"trace\n",
			text_number(number, unkept));
}
