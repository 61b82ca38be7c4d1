/* dump_reach.c - see dump_reach.h */
#include "report/dump/dump_reach.h"

#include <inttypes.h>

#include "report/base/text.h"

static void dump_pointers(FILE *out, const struct mlk_pointers *pointers)
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

static void dump_pass(FILE *out, const struct mlk_pass *pass)
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

static void dump_smaps(FILE *out, const struct mlk_smaps *smaps)
{
	static const char *const names[] = {
		[MLK_SMAPS_RSS] = "rss",   [MLK_SMAPS_PSS] = "pss",   [MLK_SMAPS_ANON] = "anon",
		[MLK_SMAPS_SWAP] = "swap", [MLK_SMAPS_LAZY] = "lazy", [MLK_SMAPS_DIRTY] = "dirty"};

	fprintf(out,
		"  SMAPS tgid %" PRIu32 ", snapshot %" PRIu32 ", %" PRIx64 "-%" PRIx64
		" perms %" PRIu32 " %" PRIx64,
		smaps->tgid, smaps->snapshot, smaps->start, smaps->end, smaps->perms,
		smaps->offset);
	for (int i = 0; i < MLK_SMAPS_NR; i++)
		if (smaps->known >> i & 1)
			fprintf(out, " %s %" PRIu64, names[i], smaps->value[i]);
	fputs(" path ", out);
	text_print(out, smaps->path);
	putc('\n', out);
	for (size_t i = 0; i < smaps->nr_pages; i++)
		fprintf(out, "    pages %" PRIx64 "-%" PRIx64 "\n", smaps->pages[i].start,
			smaps->pages[i].end);
}

static void dump_heap(FILE *out, const struct mlk_heap *heap)
{
	fprintf(out,
		"  HEAP tgid %" PRIu32 ", snapshot %" PRIu32 ", flags 0x%" PRIx32 ", allocator ",
		heap->tgid, heap->snapshot, heap->flags);
	text_print(out, heap->allocator);
	fprintf(out, ", time %" PRIu64 " to %" PRIu64 ", unwalked %" PRIu64 ", blocks %zu\n",
		heap->begin_ns, heap->end_ns, heap->unwalked, heap->nr);
	for (size_t i = 0; i < heap->nr_arenas; i++)
		fprintf(out, "    arena %" PRIx64 " %" PRIu64 "\n", heap->arenas[i].address,
			heap->arenas[i].length);
	for (size_t i = 0; i < heap->nr; i++)
		fprintf(out, "    block %" PRIx64 " %" PRIu64 " state %u first %" PRIx64 "\n",
			heap->blocks[i].address, heap->blocks[i].size, heap->blocks[i].state,
			heap->blocks[i].first);
}

static void dump_code_names(FILE *out, const struct mlk_code_names *names)
{
	fprintf(out,
		"  CODENAMES tgid %" PRIu32 ", time %" PRIu64 ", source %" PRIu32
		", flags 0x%" PRIx32 ", left out %" PRIu64 ", names %zu, problem ",
		names->tgid, names->time_ns, names->source, names->flags, names->left_out,
		names->nr);
	text_print(out, names->problem);
	putc('\n', out);
	for (size_t i = 0; i < names->nr; i++) {
		fprintf(out, "    code %" PRIx64 " %" PRIu64 " frame %" PRIu32 " name ",
			names->names[i].start, names->names[i].len, names->names[i].frame);
		text_print(out, names->names[i].name);
		putc('\n', out);
	}
}

void dump_snapshot(FILE *out, const struct mlk_record *record)
{
	switch ((unsigned int)record->type) {
	case MLK_RECORD_POINTERS:
		dump_pointers(out, &record->pointers);
		break;
	case MLK_RECORD_PASS:
		dump_pass(out, &record->pass);
		break;
	case MLK_RECORD_HEAP:
		dump_heap(out, &record->heap);
		break;
	case MLK_RECORD_CODE_NAMES:
		dump_code_names(out, &record->code_names);
		break;
	default:
		dump_smaps(out, &record->smaps);
	}
}
