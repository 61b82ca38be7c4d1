/* print_keeper.c - see print_keeper.h */
#include "report/ledger/print_keeper.h"

#include <inttypes.h>
#include <stdlib.h>

#include "report/base/text.h"
#include "report/reach/root_text.h"

void print_keeper(FILE *out, const struct ledger *ledger, const struct ledger_row *row,
		  const struct thread_names *threads)
{
	const struct root_name *name;

	if (row->keeper.kind == KEEPER_OLDER) {
		fprintf(out, "a block from before the recording, at 0x%" PRIx64,
			row->keeper.address);
		return;
	}
	name = root_names_get(ledger->roots, row->keeper.which);
	root_text_print(out, name, thread_names_get(threads, ledger->tgid, name->number), NULL);
}

void print_keeper_way(FILE *out, const struct ledger_row *row)
{
	char number[TEXT_NUMBER_MAX];

	if (row->mappings > 1)
		fprintf(out, ": %s mappings", text_number(number, row->mappings));
	if (row->keeper.steps)
		fprintf(out, "%s by way of %u other%s", row->mappings > 1 ? "," : ":",
			row->keeper.steps, row->keeper.steps > 1 ? "s" : "");
	fputc('\n', out);
}

void print_keeper_json(struct json *json, const struct ledger *ledger, const struct ledger_row *row,
		       const struct thread_names *threads)
{
	const struct root_name *name = row->keeper.kind == KEEPER_OLDER
					       ? NULL
					       : root_names_get(ledger->roots, row->keeper.which);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (out)
		print_keeper(out, ledger, row, threads);
	if (out && fclose(out)) {
		free(text);
		text = NULL;
	}
	json_open(json, "keeper", '{');
	json_text(json, "kind", name ? root_text_word(name->kind) : "block");
	json_text(json, "text", text ? text : "");
	free(text);
	if (name)
		root_text_json(json, name);
	else
		json_number(json, "start", row->keeper.address);
	json_close(json, '}');
}
