/* dump_beside.c - see dump_beside.h */
#include "report/dump/dump_beside.h"

#include <inttypes.h>

#include "report/base/event_names.h"
#include "report/base/text.h"

void dump_memory(FILE *out, const struct mlk_memory *m)
{
	fprintf(out, "  MEMORY tgid %" PRIu32 ", time %" PRIu64, m->tgid, m->time_ns);
	if (!m->known)
		fprintf(out, ", error %" PRIu32, m->error);
	for (int i = 0; i < MLK_MEMORY_NR; i++)
		if (m->known >> i & 1)
			fprintf(out, ", %d: %" PRIu64, i, m->value[i]);
	putc('\n', out);
}

void dump_account(FILE *out, const struct mlk_account *a)
{
	fprintf(out,
		"  ACCOUNT tgid %" PRIu32 ", tid %" PRIu32 ", flags 0x%" PRIx32
		", allocated %" PRIu64 " %" PRIu64 ", freed %" PRIu64 " %" PRIu64
		", by others %" PRIu64 " %" PRIu64 "\n",
		a->tgid, a->tid, a->flags, a->allocated.blocks, a->allocated.bytes, a->freed.blocks,
		a->freed.bytes, a->freed_by_others.blocks, a->freed_by_others.bytes);
}

void dump_mark(FILE *out, const struct mlk_mark *m)
{
	fprintf(out, "  MARK time %" PRIu64 ", kind %" PRIu32, m->time_ns, m->kind);
	fputs(", text ", out);
	text_print(out, m->text);
	putc('\n', out);
}

void dump_regions(FILE *out, const struct mlk_regions *regions)
{
	fprintf(out,
		"  REGIONS tgid %" PRIu32 ", time %" PRIu64 ", left out %" PRIu64
		", mappings %zu\n",
		regions->tgid, regions->time_ns, regions->left_out, regions->nr);
	for (size_t i = 0; i < regions->nr; i++) {
		const struct mlk_mapping *m = &regions->mappings[i];

		fprintf(out,
			"    %" PRIx64 "-%" PRIx64 " perms %" PRIu32 " %" PRIx64 " %" PRIx32
			":%" PRIx32 " %" PRIu64 " path ",
			m->start, m->end, m->perms, m->offset, m->dev_major, m->dev_minor,
			m->inode);
		text_print(out, m->path);
		putc('\n', out);
	}
}

void dump_losses(FILE *out, const struct mlk_losses *losses)
{
	fputs("  LOSSES", out);
	for (int kind = 0; kind < MLK_LOSS_NR; kind++)
		fprintf(out, "%s %s %" PRIu64, kind ? "," : "", event_loss_name(kind),
			losses->count[kind]);
	fputs("\n  SKIPPED", out);
	for (int kind = 0; kind < MLK_SKIP_NR; kind++)
		fprintf(out, "%s %s %" PRIu64, kind ? "," : "", event_skip_name(kind),
			losses->skipped[kind]);
	fputs("\n  SKIPPED BYTES", out);
	for (int kind = 0; kind < MLK_SKIP_NR; kind++)
		fprintf(out, "%s %s %" PRIu64, kind ? "," : "", event_skip_name(kind),
			losses->skipped_bytes[kind]);
	putc('\n', out);
}
