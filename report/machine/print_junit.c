/* print_junit.c - the stacks as test cases of JUnit, which CI systems show
 *
 * There is no standard, but what all read: testsuites, testsuite, testcase with failure or error.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report/base/text.h"
#include "report/context/print_overruns.h"
#include "report/context/table_rows.h"
#include "report/machine/print_ci.h"

#define NAMED 3 /* callers in the name of a test case */

/* Print @text, which has no control characters but newlines, inside an attribute or element. */
static void put_xml(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc(*text, out);
		}
	}
}

/* Likewise of any bytes. */
static int put_unsafe(FILE *out, const char *text)
{
	char *safe = text_escape(text);

	if (!safe)
		return -ENOMEM;
	put_xml(out, safe);
	free(safe);
	return 0;
}

/* The beginning of a test case up to what is in it; @what is its name, or stack @i. */
static int begin_case(FILE *out, const struct report_data *export, const char *what, size_t i)
{
	const char *file = NULL;
	const struct place *place = NULL;
	int err;

	fputs("  <testcase classname=\"", out);
	err = put_unsafe(out, export->leaks->comm);
	fputs("\" name=\"", out);
	if (what) {
		put_xml(out, what);
	} else {
		size_t nr;
		const uint32_t *path = places_path(export->places, i, &nr);

		for (size_t at = 0; at < nr && at <= NAMED; at++) {
			fputs(at ? " &lt; " : "", out);
			put_xml(out, export->places->all[path[at]].function);
		}
		place = ci_place(export, i, NULL, &file);
	}
	fputc('"', out);
	if (place && *file) {
		fputs(" file=\"", out);
		put_xml(out, file);
		fprintf(out, "\" line=\"%" PRIu32 "\"", place->line);
	}
	fputs(">\n", out);
	return err;
}

static int put_stack_case(FILE *out, const struct report_data *export, size_t i)
{
	const struct stack *stack = view_stack(export->view, i);
	char bytes[TEXT_NUMBER_MAX], blocks[TEXT_NUMBER_MAX];
	char *text = NULL;
	size_t len, nr;
	const uint32_t *path = places_path(export->places, i, &nr);
	FILE *frames;

	if (begin_case(out, export, NULL, i))
		return -ENOMEM;
	fprintf(out,
		"    <failure type=\"leak\" message=\"%s bytes in %s %s were not freed\">", //
		text_number(bytes, stack->bytes), text_number(blocks, stack->blocks),
		text_blocks(stack->blocks));
	frames = open_memstream(&text, &len);
	for (size_t at = 0; frames && at < nr; at++)
		print_place(frames, &export->places->all[path[at]], NULL);
	if (!frames || fclose(frames)) {
		free(text);
		return -ENOMEM;
	}
	put_xml(out, text);
	fputs("</failure>\n  </testcase>\n", out);
	free(text);
	return 0;
}

/* All that was written beyond its bounds, in one case. */
static int put_overruns(FILE *out, const struct report_data *export)
{
	size_t len, nr = export->leaks->overruns->nr;
	char *text = NULL;
	FILE *all = open_memstream(&text, &len);

	if (all)
		print_overruns(all, export);
	if (!all || fclose(all)) {
		free(text);
		return -ENOMEM;
	}
	if (!begin_case(out, export, "overruns", 0)) {
		fprintf(out, "    <failure type=\"overrun\" message=\"%zu %s overrun\">", nr,
			nr == 1 ? "block was" : "blocks were");
		put_xml(out, text);
		fputs("</failure>\n  </testcase>\n", out);
	}
	free(text);
	return 0;
}

/* The one case of a check that passed, or could not be made. */
static int put_other(FILE *out, const struct report_data *export)
{
	struct live_amount amount = report_data_selected(export);
	int err = begin_case(out, export, "no leaks", 0);

	if (export->verdict->doubt) {
		fputs("    <error type=\"unknown\" message=\"", out);
		err = err ? err : put_unsafe(out, export->verdict->doubt);
		fputs("\"/>\n", out);
	} else if (amount.bytes) {
		fprintf(out, "    <system-out>%" PRIu64 " bytes are outstanding</system-out>\n",
			amount.bytes);
	}
	fputs("  </testcase>\n", out);
	return err;
}

static int begin_suite(FILE *out, const struct report_data *export, size_t failures, bool error)
{
	time_t start = (time_t)(export->meta->realtime_ns / 1000000000u);
	size_t tests = failures ? failures : 1;
	char when[64] = "";
	struct tm tm;
	int err;

	if (gmtime_r(&start, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
	fprintf(out, "<testsuites tests=\"%zu\" failures=\"%zu\" errors=\"%d\">\n", tests, failures,
		error);
	fprintf(out,
		" <testsuite name=\"mleak\" tests=\"%zu\" failures=\"%zu\" errors=\"%d\" "
		"skipped=\"0\" timestamp=\"%s\" time=\"%.3f\" hostname=\"",
		tests, failures, error, when, (double)report_data_duration(export) / 1e9);
	err = put_unsafe(out, export->meta->hostname);
	fputs("\">\n  <properties>\n   <property name=\"command\" value=\"", out);
	err = err ? err : put_unsafe(out, export->meta->command);
	fputs("\"/>\n  </properties>\n", out);
	return err;
}

int print_junit(FILE *out, const struct report_data *export)
{
	const struct verdict *verdict = export->verdict;
	bool overruns = export->leaks->overruns->nr > 0;
	size_t stacks = verdict->leaks ? export->view->nr : 0;
	int err = begin_suite(out, export, stacks + overruns, verdict->doubt != NULL);

	if (!err && overruns)
		err = put_overruns(out, export);
	for (size_t i = 0; i < stacks && !err; i++)
		err = put_stack_case(out, export, i);
	if (!err && !stacks && !overruns)
		err = put_other(out, export);
	fputs(" </testsuite>\n</testsuites>\n", out);
	return err;
}
