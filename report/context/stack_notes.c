/* stack_notes.c - see stack_notes.h */
#include "report/context/stack_notes.h"

int stack_notes_init(struct stack_notes *notes, const struct replay *leaks)
{
	int err;

	*notes = (struct stack_notes){0};
	err = ages_new(&notes->ages, leaks);
	if (!err)
		err = alloc_threads_new(&notes->takers, leaks);
	if (err)
		stack_notes_release(notes);
	return err;
}

/* In milliseconds from the start of the recording on. */
static uint64_t rounded(const struct report_data *export, uint64_t time_ns)
{
	return (report_data_since_start(export, time_ns) + 500000) / 1000000;
}

static void print_times(FILE *out, const struct report_data *export, const struct stack *stack)
{
	uint64_t first = rounded(export, stack->first_ns), last = rounded(export, stack->last_ns);

	if (first != last)
		fprintf(out, "allocated from %.3f to %.3f s", (double)first / 1e3,
			(double)last / 1e3);
	else
		fprintf(out, "allocated at %.3f s", (double)first / 1e3);
}

void stack_notes_print(FILE *out, const struct report_data *export, const struct stack_notes *notes,
		       size_t i, const char *indent)
{
	uint32_t number = view_number(export->view, i);

	fputs(indent, out);
	ages_print(out, notes->ages, number);
	fprintf(out, "\n%s", indent);
	print_times(out, export, view_stack(export->view, i));
	alloc_threads_print(out, notes->takers, number);
	fputc('\n', out);
}

void stack_notes_release(struct stack_notes *notes)
{
	ages_free(notes->ages);
	alloc_threads_free(notes->takers);
	*notes = (struct stack_notes){0};
}
