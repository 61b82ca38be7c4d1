/* print_csv.c - the stacks as rows of CSV, by RFC 4180 */
#include <inttypes.h>

#include "report/context/report_data.h"
#include "report/context/stack_verdicts.h"
#include "report/context/table_rows.h"
#include "report/name/stack_id.h"

static void put_field(FILE *out, const char *text)
{
	fputc(',', out);
	csv_text(out, text);
}

/* But of those that were not judged, which are what is left. */
static void put_verdicts(FILE *out, const struct live_amount sums[VERDICT_NR])
{
	for (int verdict = VERDICT_LOST; verdict < VERDICT_NR; verdict++)
		fprintf(out, ",%" PRIu64 ",%" PRIu64, sums[verdict].bytes, sums[verdict].blocks);
}

static void put_stack_row(FILE *out, const struct report_data *export, size_t i)
{
	const struct stack *stack = view_stack(export->view, i);
	size_t nr;
	const uint32_t *path = places_path(export->places, i, &nr);
	char id[STACK_ID_MAX];
	const struct place *leaf = &export->places->all[path[0]];

	fprintf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
		stack->bytes, stack->blocks, stack->allocated.bytes, stack->allocated.blocks,
		stack->freed.bytes, stack->freed.blocks);
	fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d",
		stack->peak.bytes, stack->peak.blocks, stack->temporary,
		report_data_since_start(export, stack->first_ns),
		report_data_since_start(export, stack->last_ns),
		stack->status == DWUNW_STATUS_ENDED);
	put_field(out, leaf->function);
	put_field(out, leaf->module);
	put_field(out, leaf->file);
	fprintf(out, ",%" PRIu32, leaf->line);
	fputc(',', out);
	csv_path(out, export->places, i);
	fprintf(out, ",%" PRIu32 ",%s", report_data_pid(export, i),
		stack_id_text(id, view_stack_id(export->view, i)));
	if (export->by_verdict)
		put_verdicts(out, export->by_verdict->all[export->view->chosen[i]]);
	fputs("\r\n", out);
}

static void put_verdict_names(FILE *out)
{
	for (int verdict = VERDICT_LOST; verdict < VERDICT_NR; verdict++) {
		const char *word = block_verdict_word((enum block_verdict)verdict);

		fprintf(out, ",%s_bytes,%s_blocks", word, word);
	}
}

int print_csv(FILE *out, const struct report_data *export)
{
	fputs("outstanding_bytes,outstanding_blocks,allocated_bytes,allocated_blocks,freed_bytes,"
	      "freed_blocks,peak_bytes,peak_blocks,temporary_blocks,first_ns,last_ns,complete,"
	      "function,module,file,line,stack,pid,id",
	      out);
	if (export->by_verdict)
		put_verdict_names(out);
	fputs("\r\n", out);
	for (size_t i = 0; i < export->view->nr; i++)
		put_stack_row(out, export, i);
	return 0;
}
