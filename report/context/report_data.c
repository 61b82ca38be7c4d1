/* report_data.c - see report_data.h */
#include "report/context/report_data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "report/base/text.h"
#include "report/name/stack_id.h"

void print_no_blocks(FILE *out, const struct report_data *export)
{
	uint64_t counted = replay_only_counted(export->leaks);
	char number[TEXT_NUMBER_MAX];

	if (!counted) {
		fputs(export->leaks->choice.only ? "no blocks with these verdicts\n"
						 : "no outstanding blocks\n",
		      out);
		return;
	}
	fprintf(out,
		"nothing was recorded in full: %s %s only counted; to see how many each thread "
		"has: mleak report --by thread ",
		text_number(number, counted), counted == 1 ? "allocation was" : "allocations were");
	text_print(out, text_trace_argument(export->path));
	fputc('\n', out);
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* Print @what behind a space or, when there is something before it, a comma. */
static void begin_option(FILE *out, bool *is_first, const char *what)
{
	fprintf(out, "%s%s", *is_first ? " " : ", ", what);
	*is_first = false;
}

static void put_quoted(FILE *out, const char *text)
{
	fputs(" '", out);
	text_print(out, text);
	fputc('\'', out);
}

static void put_blocks(FILE *out, const struct block_filter *choice, bool *is_first)
{
	if (choice->until && choice->from_ns)
		fprintf(out, "blocks given out between %.9g s and %.9g s", seconds(choice->from_ns),
			seconds(choice->until_ns));
	else if (choice->moments)
		fprintf(out, "blocks outstanding at %.9g s before and %.9g s after",
			seconds(choice->until_before_ns), seconds(choice->until_ns));
	else if (choice->until)
		fprintf(out, "blocks outstanding at %.9g s", seconds(choice->until_ns));
	else
		fputs("blocks", out);
	if (choice->pid) {
		begin_option(out, is_first, "of process");
		if (choice->pid_before)
			fprintf(out, " %" PRIu32 " before and %" PRIu32 " after",
				choice->pid_before, choice->pid);
		else
			fprintf(out, " %" PRIu32, choice->pid);
	}
	if (choice->thread) {
		begin_option(out, is_first, "by thread");
		put_quoted(out, choice->thread);
	}
	if (choice->older_ns) {
		begin_option(out, is_first, "at least");
		fprintf(out, " %.9g s old", seconds(choice->older_ns));
	}
}

static void put_stack_options(FILE *out, const struct stack_filter_opts *sieve, bool *is_first)
{
	char number[TEXT_NUMBER_MAX], id[STACK_ID_MAX];

	if (sieve->module) {
		begin_option(out, is_first, "from stacks through module");
		put_quoted(out, sieve->module);
	}
	if (sieve->function) {
		begin_option(out, is_first, "from stacks through function");
		put_quoted(out, sieve->function);
	}
	if (sieve->by_id) {
		begin_option(out, is_first, "from the stack with the id");
		fprintf(out, " %s", stack_id_text(id, sieve->id));
	}
	if (sieve->min_bytes) {
		begin_option(out, is_first, "from stacks with at least");
		fprintf(out, " %s bytes", text_number(number, sieve->min_bytes));
	}
	if (sieve->min_blocks) {
		begin_option(out, is_first, "from stacks with at least");
		fprintf(out, " %s %s", text_number(number, sieve->min_blocks),
			text_blocks(sieve->min_blocks));
	}
}

static bool is_all(const struct block_filter *choice, const struct stack_filter_opts *sieve)
{
	return !choice->until && !choice->pid && !choice->thread && !choice->older_ns &&
	       !sieve->module && !sieve->function && !sieve->by_id && !sieve->min_bytes &&
	       !sieve->min_blocks;
}

int shown_text(char **text, const struct report_data *export)
{
	const struct stack_filter_opts *sieve = &export->view->opts.sieve;
	bool is_first = true;
	size_t len;
	FILE *out = open_memstream(text, &len);

	if (!out) {
		*text = NULL;
		return -ENOMEM;
	}
	if (!is_all(export->choice, sieve)) {
		put_blocks(out, export->choice, &is_first);
		put_stack_options(out, sieve, &is_first);
	}
	if (!fclose(out))
		return 0;
	free(*text);
	*text = NULL;
	return -ENOMEM;
}

int print_scope(FILE *out, const struct report_data *export)
{
	char *text;
	int err = shown_text(&text, export);

	if (!err && *text)
		fprintf(out, "  shown          %s\n", text);
	free(text);
	return err;
}

static void put_option_number(struct json *json, const char *key, uint64_t number)
{
	if (number)
		json_number(json, key, number);
}

static void put_option_text(struct json *json, const char *key, const char *text)
{
	if (text)
		json_text(json, key, text);
}

int shown_json(struct json *json, const struct report_data *export)
{
	const struct stack_filter_opts *sieve = &export->view->opts.sieve;
	const struct block_filter *choice = export->choice;
	char id[STACK_ID_MAX];
	char *text;
	int err = shown_text(&text, export);

	if (err)
		return err;
	json_open(json, "shown", '{');
	if (*text)
		json_text(json, "text", text);
	put_option_number(json, "given_from_ns", choice->from_ns);
	if (choice->moments)
		json_number(json, "at_before_ns", choice->until_before_ns);
	if (choice->until)
		json_number(json, "at_ns", choice->until_ns);
	put_option_number(json, "older_ns", choice->older_ns);
	put_option_number(json, "pid_before", choice->pid_before);
	put_option_number(json, "pid", choice->pid);
	put_option_text(json, "thread", choice->thread);
	put_option_text(json, "module", sieve->module);
	put_option_text(json, "function", sieve->function);
	if (sieve->by_id)
		json_text(json, "stack", stack_id_text(id, sieve->id));
	put_option_number(json, "min_bytes", sieve->min_bytes);
	put_option_number(json, "min_blocks", sieve->min_blocks);
	json_close(json, '}');
	free(text);
	return 0;
}

struct live_amount report_data_lost(const struct report_data *export)
{
	struct live_amount sum = {0};

	for (size_t i = 0; i < export->view->nr + export->view->left_out; i++)
		live_amount_add(&sum, view_stack(export->view, i)->lost);
	return sum;
}

struct live_amount report_data_selected(const struct report_data *export)
{
	struct live_amount sum = view_shown(export->view);

	live_amount_add(&sum, export->view->left_out_amount);
	return sum;
}

struct live_amount report_data_filtered(const struct report_data *export)
{
	struct live_amount all = export->leaks->totals.outstanding;
	struct live_amount selected = report_data_selected(export);

	live_amount_add(&all, export->leaks->older);
	return (struct live_amount){all.blocks - selected.blocks, all.bytes - selected.bytes};
}
