/* dump_beside.c - see dump_beside.h */
#include "report/dump_beside.h"

#include <inttypes.h>

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
