/* json_reach.c - what the pointers in memory say of the blocks; doc/report-json.md says what the
 * members mean */
#include "report/machine/print_json.h"

#include "report/context/stack_verdicts.h"
#include "report/reach/verdicts.h"

static void put_process(struct json *json, const struct report_data *export,
			const struct verdict_process *p)
{
	const uint64_t start_ns = export->meta->start_ns;

	json_open(json, NULL, '{');
	json_number(json, "pid", p->tgid);
	json_number(json, "at_ns", p->begin_ns > start_ns ? p->begin_ns - start_ns : 0);
	json_number(json, "took_ns", p->end_ns - p->begin_ns);
	json_number(json, "passes", p->passes);
	json_bool(json, "settled", p->settled);
	json_bool(json, "stopped", p->stopped);
	json_number(json, "changed", p->changed);
	json_number(json, "read_bytes", p->read_bytes);
	json_number(json, "unread_bytes", p->unread_bytes);
	json_number(json, "running_threads", p->unknown_threads);
	json_open(json, "blocks", '{');
	for (int verdict = 0; verdict < VERDICT_NR; verdict++)
		json_amount(json, block_verdict_word((enum block_verdict)verdict),
			    p->sums[verdict]);
	json_close(json, '}');
	if (p->walked) {
		json_text(json, "allocator", p->allocator);
		json_number(json, "unwalked_bytes", p->unwalked);
		json_open(json, "older", '{');
		for (int verdict = VERDICT_LOST; verdict < VERDICT_NR; verdict++)
			json_amount(json, block_verdict_word((enum block_verdict)verdict),
				    p->older[verdict]);
		json_close(json, '}');
	}
	json_close(json, '}');
}

void json_stack_verdicts(struct json *json, const struct report_data *export, uint32_t stack)
{
	if (!export->by_verdict)
		return;
	json_open(json, "verdicts", '{');
	for (int verdict = 0; verdict < VERDICT_NR; verdict++) {
		struct live_amount sum = export->by_verdict->all[stack][verdict];

		if (sum.blocks)
			json_amount(json, block_verdict_word((enum block_verdict)verdict), sum);
	}
	json_close(json, '}');
}

void json_reach(struct json *json, const struct report_data *export)
{
	const struct verdicts *v = export->verdicts;

	if (!v)
		return;
	json_open(json, "reach", '[');
	for (size_t i = 0; i < verdicts_nr(v); i++)
		put_process(json, export, verdicts_process(v, i));
	json_close(json, ']');
	if (!export->leaks->guessed.blocks)
		return;
	json_open(json, "likely", '{');
	json_amount(json, "guessed", export->leaks->guessed);
	json_amount(json, "right", export->leaks->guessed_right);
	json_close(json, '}');
}
