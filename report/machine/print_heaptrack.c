/* print_heaptrack.c - heaptrack's data file, version 3, as text
 *
 * Lines in the order of their use: s LENGTH TEXT, a string; i ADDRESS MODULE FUNCTION FILE LINE, a
 * place in the code; t PLACE PARENT, a step of a stack, outermost first; a SIZE STEP, a kind of
 * allocation; + KIND and - KIND; c MILLISECONDS.  Numbers are hexadecimal, and those of strings,
 * places and steps begin with 1, where 0 is none.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/hash_index.h"
#include "report/base/strings.h"
#include "report/base/text.h"
#include "report/context/report_data.h"
#include "report/stats/heaptrack_events.h"

struct step {
	uint32_t place, parent;
};

struct printer {
	FILE *out;
	const struct report_data *export;
	struct strings *strings;
	INTERN_OF(struct step); /* number 1 first */
	uint32_t *leaves;	/* of each stack: its last step; 0: it is not asked for */
	uint32_t *processes;	/* of each: its place; 0: none so far */
	uint32_t nr_places;	/* so far */
};

static int put_string(struct printer *p, const char *text, uint32_t *number)
{
	size_t before = p->strings->nr;
	int err = strings_intern(p->strings, text, number);

	if (!err && p->strings->nr > before)
		fprintf(p->out, "s %zx %s\n", strlen(text), text);
	return err;
}

static int put_places(struct printer *p)
{
	const struct places *places = p->export->places;
	uint32_t module, function, file;
	int err = 0;

	for (uint32_t i = 0; i < places->nr && !err; i++) {
		const struct place *place = &places->all[i];

		err = put_string(p, place->module, &module);
		if (!err)
			err = put_string(p, place->function, &function);
		if (!err)
			err = put_string(p, place->file, &file);
		if (err)
			return err;
		/* heaptrack takes equal addresses for one place */
		fprintf(p->out, "i %" PRIx32 " %" PRIx32 " %" PRIx32, i + 1, module, function);
		if (file)
			fprintf(p->out, " %" PRIx32 " %" PRIx32, file, place->line);
		fputc('\n', p->out);
	}
	p->nr_places = (uint32_t)places->nr;
	return err;
}

/* Find the step or print it.  *@number counts from 1. */
static int put_step(struct printer *p, const struct step *step, uint32_t *number)
{
	int added = intern_pair(&p->table, step, sizeof(*step), number);

	if (added < 0)
		return added;
	++*number;
	if (added)
		fprintf(p->out, "t %" PRIx32 " %" PRIx32 "\n", step->place, step->parent);
	return 0;
}

/* Print a place that is none in the code. */
static int put_remark(struct printer *p, const char *text, uint32_t *place)
{
	uint32_t name;
	int err = put_string(p, text, &name);

	if (err)
		return err;
	*place = ++p->nr_places;
	fprintf(p->out, "i %" PRIx32 " 0 %" PRIx32 "\n", *place, name);
	return 0;
}

/* Stacks that the view leaves out have events as well: they get a place of their own. */
static int put_left_out(struct printer *p)
{
	size_t first = p->export->view->nr;
	size_t nr = p->export->view->left_out;
	struct step step = {0};
	uint32_t number;
	int err;

	if (!nr)
		return 0;
	err = put_remark(p, "[left out]", &step.place);
	if (!err)
		err = put_step(p, &step, &number);
	for (size_t i = first; i < first + nr && !err; i++)
		p->leaves[p->export->view->chosen[i]] = number;
	return err;
}

/* Of several processes, print the step that all steps of process @number follow.  *@last is 0 when
 * there is only one. */
static int put_process(struct printer *p, uint32_t number, uint32_t *last)
{
	const char *name = view_process(p->export->view, number);
	struct step step;
	int err = 0;

	*last = 0;
	if (!name)
		return 0;
	if (!p->processes[number])
		err = put_remark(p, name, &p->processes[number]);
	step = (struct step){.place = p->processes[number]};
	return err ? err : put_step(p, &step, last);
}

static int put_steps(struct printer *p)
{
	int err = put_left_out(p);

	for (size_t i = 0; i < p->export->view->nr && !err; i++) {
		size_t nr;
		const uint32_t *path = places_path(p->export->places, i, &nr);
		struct step step = {0};
		uint32_t last = 0;

		err = put_process(p, view_stack(p->export->view, i)->process, &last);
		while (nr && !err) {
			step = (struct step){.place = path[--nr] + 1, .parent = last};
			err = put_step(p, &step, &last);
		}
		p->leaves[p->export->view->chosen[i]] = last;
	}
	return err;
}

static void put_heaptrack_head(struct printer *p)
{
	const struct mlk_meta *meta = p->export->meta;

	fputs("v 10400 3\nX ", p->out);
	text_print(p->out, meta->command[0] ? meta->command : meta->exe);
	fputs("\nI 1000 0\n", p->out);
}

static int print_lines(struct printer *p, struct heaptrack_events *events)
{
	const struct heaptrack_kind *kinds;
	size_t nr = heaptrack_events_kinds(events, &kinds);
	int err;

	put_heaptrack_head(p);
	err = put_places(p);
	if (!err)
		err = put_steps(p);
	for (size_t i = 0; i < nr && !err; i++)
		fprintf(p->out, "a %" PRIx64 " %" PRIx32 "\n", kinds[i].size,
			p->leaves[kinds[i].stack]);
	return err ? err
		   : heaptrack_events_copy(events, p->out, p->leaves,
					   p->export->leaks->chosen.end_ns);
}

int print_heaptrack(FILE *out, const struct report_data *export, struct heaptrack_events *events)
{
	struct printer p = {.out = out, .export = export};
	int err = strings_new(&p.strings);

	p.processes = calloc(live_nr_processes(export->leaks->live) + 1, sizeof(*p.processes));
	p.leaves = calloc(export->leaks->stacks->nr + 1, sizeof(*p.leaves));
	if (!err)
		err = p.leaves && p.processes ? print_lines(&p, events) : -ENOMEM;
	strings_free(p.strings);
	intern_release(&p.table);
	free(p.leaves);
	free(p.processes);
	return err;
}
