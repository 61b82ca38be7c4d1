/* json_reach.c - what the pointers in memory say of the blocks; doc/report-json.md says what the
 * members mean */
#include "report/machine/print_json.h"

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
	json_number(json, "read_bytes", p->read_bytes);
	json_number(json, "unread_bytes", p->unread_bytes);
	json_number(json, "running_threads", p->unknown_threads);
	json_open(json, "blocks", '{');
	for (int verdict = 0; verdict < VERDICT_NR; verdict++)
		json_amount(json, block_verdict_word((enum block_verdict)verdict),
			    p->sums[verdict]);
	json_close(json, '}');
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
}
