/* trace_marks.c - see trace_marks.h */
#include "report/trace/trace_marks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"

int trace_marks_note(struct trace_marks *marks, const struct mlk_mark *mark)
{
	struct trace_mark kept = {.time_ns = mark->time_ns, .kind = mark->kind};
	size_t at = marks->nr, size = strlen(mark->text) + 1;
	int err;

	/* nearly always it is the last; a recorder writes them in their order */
	while (at && marks->nr - at <= TRACE_MARKS_LATE &&
	       marks->all[at - 1].time_ns > kept.time_ns)
		at--;
	if (marks->nr >= TRACE_MARKS_MAX || marks->nr - at > TRACE_MARKS_LATE ||
	    marks->text_bytes + size > TRACE_MARKS_TEXT) {
		marks->left_out++;
		return 0;
	}
	kept.text = strdup(mark->text);
	err = kept.text ? array_append(&marks->all, &marks->nr, &marks->room, &kept, sizeof(kept))
			: -ENOMEM;
	if (err) {
		free(kept.text);
		return err;
	}
	marks->text_bytes += size;
	memmove(&marks->all[at + 1], &marks->all[at], (marks->nr - 1 - at) * sizeof(kept));
	marks->all[at] = kept;
	return 0;
}

int trace_marks_read(struct trace_marks *marks, struct mlk_reader *trace)
{
	struct mlk_record record;
	int more, err;

	mlk_reader_rewind(trace, MLK_RECORD_MARK);
	while ((more = mlk_reader_next(trace, &record)) > 0) {
		err = trace_marks_note(marks, &record.mark);
		if (err)
			return err;
	}
	return more;
}

size_t trace_marks_find(const struct trace_marks *marks, const char *name, size_t *numbers,
			size_t most)
{
	const char *text = name + strlen(TRACE_MARKS_PREFIX);
	unsigned long long number;
	size_t nr = 0;

	if (*text && !text[strspn(text, "0123456789")]) {
		errno = 0;
		number = strtoull(text, NULL, 10);
		if (number && !errno && number <= marks->nr) {
			numbers[0] = (size_t)number;
			return 1;
		}
	}
	for (size_t i = 0; i < marks->nr; i++) {
		if (strcmp(marks->all[i].text, text) != 0)
			continue;
		if (nr < most)
			numbers[nr] = i + 1;
		nr++;
	}
	return nr;
}

const char *trace_mark_text(const struct trace_mark *mark)
{
	if (*mark->text)
		return mark->text;
	return mark->kind == MLK_MARK_SIGNAL ? "by SIGUSR2" : "without a text";
}

const char *trace_mark_kind(const struct trace_mark *mark)
{
	static const char *const kinds[] = {[MLK_MARK_SIGNAL] = "signal",
					    [MLK_MARK_TEXT] = "text",
					    [MLK_MARK_CHANGE] = "change"};

	return mark->kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[mark->kind] : "other";
}

void trace_marks_release(struct trace_marks *marks)
{
	for (size_t i = 0; i < marks->nr; i++)
		free(marks->all[i].text);
	free(marks->all);
	*marks = (struct trace_marks){0};
}
