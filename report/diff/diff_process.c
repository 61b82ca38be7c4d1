/* diff_process.c - are two traces of one process? see diff_one_process()
 *
 * A number of a process may be given to another, in a container even often: the program that was
 * started anew.  It has its libraries elsewhere, unless the kernel was told not to move them.
 */
#include <string.h>

#include "report/diff/diff.h"

#define MOST_MODULES 16
#define MOST_STACKS  256 /* in which they are looked for */

/* Where modules are, those that are moved: by how much. */
struct layout {
	struct {
		const char *path;
		uint64_t bias;
	} all[MOST_MODULES];
	size_t nr;
};

static void note_frame(struct layout *layout, const struct trace_modules *images,
		       const struct dwunw_frame *frame)
{
	uint64_t bias = frame->pc - frame->addr;
	uint32_t number;

	if (!bias || layout->nr == MOST_MODULES ||
	    !trace_modules_number(images, frame->module, &number))
		return;
	for (size_t i = 0; i < layout->nr; i++)
		if (!strcmp(layout->all[i].path, images->all[number].path))
			return;
	layout->all[layout->nr].path = images->all[number].path;
	layout->all[layout->nr++].bias = bias;
}

static void find_layout(struct layout *layout, const struct report_data *side)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];

	for (size_t i = 0; i < side->view->nr && i < MOST_STACKS; i++) {
		size_t nr = view_frames(side->view, i, frames);

		for (size_t at = 0; at < nr; at++)
			note_frame(layout, side->leaks->images, &frames[at]);
	}
}

/* Is all that both have elsewhere? */
static bool has_moved(const struct report_data *before, const struct report_data *after)
{
	struct layout a = {.nr = 0}, b = {.nr = 0};
	size_t common = 0;

	find_layout(&a, before);
	find_layout(&b, after);
	for (size_t i = 0; i < a.nr; i++)
		for (size_t k = 0; k < b.nr; k++) {
			if (strcmp(a.all[i].path, b.all[k].path) != 0)
				continue;
			if (a.all[i].bias == b.all[k].bias)
				return false;
			common++;
		}
	return common > 0;
}

bool diff_one_process(const struct report_data *before, const struct report_data *after)
{
	const struct mlk_meta *a = before->meta, *b = after->meta;

	return !a->whole_life && !b->whole_life && a->tgid == b->tgid &&
	       a->start_ns != b->start_ns && a->of_kernel == b->of_kernel &&
	       !strcmp(a->hostname, b->hostname) && (a->of_kernel || !has_moved(before, after));
}
