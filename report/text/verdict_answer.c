/* verdict_answer.c - see verdict_answer.h */
#include "report/text/verdict_answer.h"

#include <inttypes.h>

#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/reach/verdicts.h"

static void print_sum(FILE *out, const char *label, struct live_amount amount)
{
	char blocks[TEXT_NUMBER_MAX], bytes[SIZE_TEXT_MAX];

	if (amount.blocks)
		fprintf(out, "    %-26s%12s %-6s%16s\n", label, text_number(blocks, amount.blocks),
			text_blocks(amount.blocks), size_text(bytes, amount.bytes));
}

/* What became of blocks whose allocation is not in the trace, and what is not known of them. */
static void print_older(FILE *out, const struct verdict_process *p)
{
	char size[SIZE_TEXT_MAX], blocks[TEXT_NUMBER_MAX];
	struct live_amount lost = p->older[VERDICT_LOST];

	if (!p->walked)
		return;
	if (!p->allocator[0]) {
		fputs("    blocks from before the recording are not judged: the allocator is not "
		      "known\n",
		      out);
		return;
	}
	live_amount_add(&lost, p->older[VERDICT_LOST_WITH]);
	fprintf(out, "  of blocks of %s from before the recording, %s %s %s lost, %s:\n",
		p->allocator, text_number(blocks, lost.blocks), text_blocks(lost.blocks),
		lost.blocks == 1 ? "is" : "are", size_text(size, lost.bytes));
	for (int verdict = VERDICT_LOST; verdict < VERDICT_NR; verdict++)
		print_sum(out, block_verdict_text((enum block_verdict)verdict), p->older[verdict]);
	if (p->unwalked)
		fprintf(out,
			"    %s of its memory could not be walked: its blocks are not judged\n",
			size_text(size, p->unwalked));
}

/* What makes the answer less sure. */
static void print_doubts(FILE *out, const struct verdict_process *p)
{
	char size[SIZE_TEXT_MAX], number[TEXT_NUMBER_MAX];

	if (p->passes < 2 && !p->stopped)
		fputs("    a single pass: a pointer that moved meanwhile may have been missed\n",
		      out);
	else if (!p->settled)
		fprintf(out,
			"    has not settled: the last pass still found pointers to %s %s that "
			"seemed lost: record with --passes %u\n",
			text_number(number, p->changed), text_blocks(p->changed), p->passes + 3);
	if (p->unknown_threads)
		fprintf(out, "    %u %s ran meanwhile: what only registers hold seems lost\n",
			p->unknown_threads, p->unknown_threads == 1 ? "thread" : "threads");
	if (p->unread_bytes)
		fprintf(out, "    %s of memory could not be read: what it holds seems lost\n",
			size_text(size, p->unread_bytes));
}

void print_verdict_answer(FILE *out, const struct report_data *export)
{
	const struct verdicts *v = export->verdicts;

	for (size_t i = 0; v && i < verdicts_nr(v); i++) {
		const struct verdict_process *p = verdicts_process(v, i);
		uint64_t at = p->begin_ns > export->meta->start_ns
				      ? p->begin_ns - export->meta->start_ns
				      : 0;

		if (export->leaks->chosen.pid && export->leaks->chosen.pid != p->tgid)
			continue;
		fprintf(out,
			"  by the pointers in memory of process %" PRIu32 " at %.3f s (%u %s%s):\n",
			p->tgid, (double)at / 1e9, p->passes, p->passes == 1 ? "pass" : "passes",
			p->stopped ? ", stopped" : "");
		for (int verdict = VERDICT_LOST; verdict < VERDICT_NR; verdict++)
			print_sum(out, block_verdict_text((enum block_verdict)verdict),
				  p->sums[verdict]);
		print_sum(out, block_verdict_text(VERDICT_NONE), p->sums[VERDICT_NONE]);
		print_older(out, p);
		print_doubts(out, p);
	}
}
