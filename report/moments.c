/* moments.c - see moments.h */
#include "report/moments.h"

#include "mleak.h"
#include "report/trace/trace_marks.h"

#define MOST_TOLD 8 /* numbers of marks */

/* @nr marks are called @name; *numbers has those of the first. */
static int explain_several(const struct report_run *job, const char *name, const size_t *numbers,
			   size_t nr)
{
	char text[MOST_TOLD * 24 + 32];
	size_t len = 0, told = nr < MOST_TOLD ? nr : MOST_TOLD;

	for (size_t i = 0; i < told; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%zu",
					!i	     ? ""
					: i + 1 < nr ? ", "
						     : " and ",
					numbers[i]);
	if (told < nr)
		snprintf(text + len, sizeof(text) - len, " and %zu more", nr - told);
	log_error("'%s' has %zu marks '%s', the numbers %s: give one of these, as mark:%zu",
		  job->shown, nr, name, text, numbers[0]);
	return EXIT_USAGE;
}

/* Set *@ns, from the start of the recording, to the time of the mark called *@name, if there is a
 * name, which is not needed any more. */
static int find_moment(const struct report_run *job, const struct trace_marks *marks,
		       const char **name, uint64_t *ns)
{
	uint64_t start_ns = mlk_reader_meta(job->trace)->start_ns;
	size_t numbers[MOST_TOLD], nr;
	uint64_t time_ns;

	if (!*name)
		return EXIT_OK;
	nr = trace_marks_find(marks, *name, numbers, MOST_TOLD);
	if (nr > 1)
		return explain_several(job, *name, numbers, nr);
	if (!nr && marks->nr)
		log_error(
			"'%s' has no '%s': 'mleak info' lists its %zu mark%s, with numbers from 1",
			job->shown, *name, marks->nr, marks->nr == 1 ? "" : "s");
	else if (!nr)
		log_error("'%s' has no marks, and so no '%s': SIGUSR2 to the recorder and "
			  "'mleak ctl --mark' make them",
			  job->shown, *name);
	if (!nr)
		return EXIT_USAGE;
	time_ns = marks->all[numbers[0] - 1].time_ns;
	*ns = time_ns > start_ns ? time_ns - start_ns : 0;
	*name = NULL;
	return EXIT_OK;
}

int moments_check(uint64_t first_ns, uint64_t second_ns)
{
	if (first_ns <= second_ns)
		return EXIT_OK;
	log_error("of the two moments the first is the later one: give them in their order");
	return EXIT_USAGE;
}

int moments_find(struct block_filter *choice, const struct report_run *job)
{
	struct trace_marks marks = {0};
	int err, status = EXIT_OK;

	if (!choice->from_mark && !choice->until_mark)
		return EXIT_OK;
	err = trace_marks_read(&marks, job->trace);
	if (err)
		status = report_run_explain_read(job, err);
	if (status == EXIT_OK)
		status = find_moment(job, &marks, &choice->from_mark, &choice->from_ns);
	if (status == EXIT_OK)
		status = find_moment(job, &marks, &choice->until_mark, &choice->until_ns);
	trace_marks_release(&marks);
	if (status == EXIT_OK && choice->from_ns)
		status = moments_check(choice->from_ns, choice->until_ns);
	return status;
}
