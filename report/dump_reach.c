/* dump_reach.c - see dump_reach.h */
#include "report/dump_reach.h"

#include <inttypes.h>

#include "report/base/text.h"

void dump_pointers(FILE *out, const struct mlk_pointers *pointers)
{
	fprintf(out, "  POINTERS tgid %" PRIu32 ", pass %" PRIu32 ", words %zu\n", pointers->tgid,
		pointers->pass, pointers->nr);
	for (size_t i = 0; i < pointers->nr; i++)
		fprintf(out, "    %" PRIx64 ": %" PRIx64 "\n", pointers->words[i].address,
			pointers->words[i].value);
}

static void dump_thread(FILE *out, const struct mlk_reach_thread *t)
{
	fprintf(out, "    thread %" PRIu32 " how %u", t->tid, t->how);
	for (int reg = 0; reg < MLK_REACH_REGS; reg++)
		if (t->known >> reg & 1)
			fprintf(out, " r%d %" PRIx64, reg, t->regs[reg]);
	putc('\n', out);
}

void dump_pass(FILE *out, const struct mlk_pass *pass)
{
	fprintf(out,
		"  PASS tgid %" PRIu32 ", pass %" PRIu32 ", snapshot %" PRIu32 ", flags 0x%" PRIx32
		", time %" PRIu64 " to %" PRIu64 ", words %" PRIu64 "\n",
		pass->tgid, pass->pass, pass->snapshot, pass->flags, pass->begin_ns, pass->end_ns,
		pass->words);
	for (size_t i = 0; i < pass->nr_ranges; i++) {
		fprintf(out,
			"    range %" PRIx64 "-%" PRIx64 " perms %" PRIu32 " %" PRIx64
			" absent %" PRIu64 " unread %" PRIu64 " path ",
			pass->ranges[i].start, pass->ranges[i].end, pass->ranges[i].perms,
			pass->ranges[i].offset, pass->ranges[i].absent, pass->ranges[i].unread);
		text_print(out, pass->ranges[i].path);
		putc('\n', out);
	}
	for (size_t i = 0; i < pass->nr_threads; i++)
		dump_thread(out, &pass->threads[i]);
	for (size_t i = 0; i < pass->nr_roots; i++)
		fprintf(out, "    root %u of %" PRIu32 ": %" PRIx64 "\n", pass->roots[i].kind,
			pass->roots[i].number, pass->roots[i].value);
}
