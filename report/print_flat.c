/* print_flat.c - one stack after the other, in the way of bcc's memleak */
#include <string.h>

#include "report/export.h"
#include "report/text.h"

static void put_place(FILE *out, const struct place *place)
{
	const char *slash = strrchr(place->module, '/');

	fprintf(out, "\t\t%s%s", place->function, place->inlined ? " (inlined)" : "");
	if (place->module[0])
		fprintf(out, " [%s]", slash && slash[1] ? slash + 1 : place->module);
	if (place->file[0])
		fprintf(out, " %s", place->file);
	if (place->line)
		fprintf(out, ":%u", place->line);
	fputc('\n', out);
}

int print_flat(FILE *out, const struct export *export)
{
	char bytes[TEXT_NUMBER_MAX], blocks[TEXT_NUMBER_MAX], stacks[TEXT_NUMBER_MAX];
	struct live_amount amount;
	size_t left_out = view_left_out(export->view, &amount);

	if (!view_nr(export->view))
		fputs("no outstanding blocks\n", out);
	for (size_t i = 0; i < view_nr(export->view); i++) {
		const struct stack *stack = view_stack(export->view, i);
		size_t nr;
		const uint32_t *path = places_path(export->places, i, &nr);

		fprintf(out, "\t%s bytes in %s %s from stack\n", text_number(bytes, stack->bytes),
			text_number(blocks, stack->blocks),
			stack->blocks == 1 ? "allocation" : "allocations");
		for (size_t at = 0; at < nr; at++)
			put_place(out, places_get(export->places, path[at]));
	}
	if (left_out)
		fprintf(out, "left out: %s lighter %s with %s blocks, %s bytes\n",
			text_number(stacks, left_out), left_out == 1 ? "stack" : "stacks",
			text_number(blocks, amount.blocks), text_number(bytes, amount.bytes));
	return 0;
}
