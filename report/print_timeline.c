/* print_timeline.c - what was outstanding over time */
#include <inttypes.h>

#include "report/print_growth.h"
#include "report/text.h"

#define BAR_WIDTH 50

/* Print the end of slice @i: the recording's if it is the last one. */
static double end_of(const struct export *export, const struct growth *growth, size_t i)
{
	const struct chosen *chosen = leaks_chosen(export->leaks);
	uint64_t end = growth_start_ns(growth) + (i + 1) * growth_width_ns(growth);

	if (i + 1 == growth_slices(growth))
		end = chosen->end_ns;
	return end > chosen->start_ns ? (double)(end - chosen->start_ns) / 1e9 : 0;
}

static void put_bar(FILE *out, uint64_t bytes, uint64_t most)
{
	int width = most ? (int)((double)bytes / (double)most * BAR_WIDTH + 0.5) : 0;

	if (width)
		fputs("  ", out);
	for (int i = 0; i < width; i++)
		fputc('#', out);
	fputc('\n', out);
}

/* What no slice shows: the most that was outstanding at any time, and whose it was. */
static void put_peak(FILE *out, const struct export *export)
{
	struct live_amount all = leaks_peak(export->leaks), shown = {0};
	char bytes[TEXT_NUMBER_MAX], blocks[TEXT_NUMBER_MAX];

	for (size_t i = 0; i < view_nr(export->view); i++) {
		shown.blocks += view_stack(export->view, i)->peak.blocks;
		shown.bytes += view_stack(export->view, i)->peak.bytes;
	}
	fprintf(out, "\npeak of all stacks: %s bytes in %s blocks; ", text_number(bytes, all.bytes),
		text_number(blocks, all.blocks));
	fprintf(out, "then there were of these: %s bytes in %s blocks\n",
		text_number(bytes, shown.bytes), text_number(blocks, shown.blocks));
}

int print_timeline(FILE *out, const struct export *export, const struct growth *growth, bool csv)
{
	uint64_t sums[GROWTH_SLICES] = {0}, most = 0;
	char bytes[TEXT_NUMBER_MAX];

	for (size_t i = 0; i < view_nr(export->view); i++) {
		struct growth_stack stack = growth_of(growth, view_number(export->view, i));

		for (size_t at = 0; at < growth_slices(growth); at++)
			sums[at] += stack.bytes[at];
	}
	for (size_t at = 0; at < growth_slices(growth); at++)
		most = sums[at] > most ? sums[at] : most;
	if (csv)
		fputs("seconds,outstanding_bytes\r\n", out);
	else
		fprintf(out, "%12s%16s\n", "until", "bytes");
	for (size_t at = 0; at < growth_slices(growth); at++) {
		double end = end_of(export, growth, at);

		if (csv) {
			fprintf(out, "%.9f,%" PRIu64 "\r\n", end, sums[at]);
			continue;
		}
		fprintf(out, "%10.3f s%16s", end, text_number(bytes, sums[at]));
		put_bar(out, sums[at], most);
	}
	if (!csv)
		put_peak(out, export);
	return 0;
}
