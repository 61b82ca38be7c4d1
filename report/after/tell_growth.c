/* tell_growth.c - after a recording of running processes: what grows in it, in one line */
#include <stdlib.h>

#include "mleak.h"
#include "report/base/memory.h"
#include "report/report_run.h"
#include "report/text/growth_answer.h"

#define MOST_BYTES \
	(32u << 20) /* of a trace: a larger one takes longer than anybody wants to wait */

/* The line as log_info() wants it. */
static void log_growth(const struct report_data *export)
{
	struct growth_rows rows = {0};
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	bool known = out && !growth_rows_init(&rows, export, export->growth);

	if (known)
		print_growth_verdict(out, export, &rows);
	if (out && !fclose(out) && known)
		log_info("%s; to see how stacks grew: mleak report --growth %s", text,
			 export->path);
	growth_rows_release(&rows);
	free(text);
}

void tell_growth(const char *path)
{
	char *argv[] = {(char *)"report", (char *)"--quiet", (char *)"--no-pager",
			(char *)"--",	  (char *)path,	     NULL};
	struct report_run job = {0};
	struct report_data export;
	struct report_opts opts;

	if (!report_opts_parse(&opts, 5, argv)) {
		unsetenv("DEBUGINFOD_URLS");
		memory_limit(opts.max_memory);
		if (report_run_open(&job, &opts, path, NULL) == EXIT_OK &&
		    mlk_reader_size(job.trace) <= MOST_BYTES &&
		    report_run_collect(&job) == EXIT_OK &&
		    report_run_view(&job, &opts.view, false) == EXIT_OK) {
			export = report_run_export(&job);
			if (export.growth)
				log_growth(&export);
		} else if (job.trace && mlk_reader_size(job.trace) > MOST_BYTES) {
			log_info("to see what grows: mleak report --growth %s", path);
		}
	}
	report_run_release(&job);
	report_opts_release(&opts);
}
