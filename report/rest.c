/* rest.c - see rest.h */
#include "report/rest.h"

int rest_init(struct rest *rest, const struct leaks *leaks)
{
	int err;

	*rest = (struct rest){0};
	err = ages_new(&rest->ages, leaks);
	if (!err)
		err = takers_new(&rest->takers, leaks);
	if (err)
		rest_release(rest);
	return err;
}

/* In milliseconds from the start of the recording on. */
static uint64_t rounded(const struct export *export, uint64_t time_ns)
{
	return (export_since_start(export, time_ns) + 500000) / 1000000;
}

static void print_times(FILE *out, const struct export *export, const struct stack *stack)
{
	uint64_t first = rounded(export, stack->first_ns), last = rounded(export, stack->last_ns);

	if (first != last)
		fprintf(out, "allocated from %.3f to %.3f s", (double)first / 1e3,
			(double)last / 1e3);
	else
		fprintf(out, "allocated at %.3f s", (double)first / 1e3);
}

void rest_print(FILE *out, const struct export *export, const struct rest *rest, size_t i,
		const char *indent)
{
	uint32_t number = view_number(export->view, i);

	fputs(indent, out);
	ages_print(out, rest->ages, number);
	fprintf(out, "\n%s", indent);
	print_times(out, export, view_stack(export->view, i));
	takers_print(out, rest->takers, number);
	fputc('\n', out);
}

void rest_release(struct rest *rest)
{
	ages_free(rest->ages);
	takers_free(rest->takers);
	*rest = (struct rest){0};
}
