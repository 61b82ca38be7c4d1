/* print_github.c - workflow commands of GitHub Actions, as its runner reads them from a step's
 * output
 *
 * ::error file=FILE,line=LINE,title=TITLE::MESSAGE, in which some characters are %HH.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/base/text.h"
#include "report/context/table_rows.h"
#include "report/machine/print_ci.h"

/* Print @text, in a @property or the message. */
static void put_text(FILE *out, const char *text, bool property)
{
	for (; *text; text++) {
		if (*text == '%' || *text == '\r' || *text == '\n' ||
		    (property && (*text == ':' || *text == ',')))
			fprintf(out, "%%%02X", (unsigned char)*text);
		else
			fputc(*text, out);
	}
}

/* The part of @path below @folder; NULL: it is not there. */
static const char *path_below(const char *path, const char *folder)
{
	size_t len = folder ? strlen(folder) : 0;

	while (len && folder[len - 1] == '/')
		len--;
	return len && !strncmp(path, folder, len) && path[len] == '/' ? path + len + 1 : NULL;
}

const struct place *ci_place(const struct report_data *export, size_t i, const char *folder,
			     const char **file)
{
	const struct place *in_program = NULL, *any = NULL, *place = NULL;
	size_t nr;
	const uint32_t *path = places_path(export->places, i, &nr);

	for (size_t at = 0; at < nr; at++) {
		place = &export->places->all[path[at]];
		*file = path_below(place->file, folder);
		if (*file)
			return place;
		if (!place->file[0])
			continue;
		any = any ? any : place;
		if (!in_program &&
		    !strcmp(text_file_name(place->module), text_file_name(export->meta->exe)))
			in_program = place;
	}
	place = in_program ? in_program : any ? any : &export->places->all[path[0]];
	*file = place->file;
	return place;
}

static int put_annotation(FILE *out, const struct report_data *export, size_t i, const char *folder)
{
	const struct stack *stack = view_stack(export->view, i);
	const char *file, *level = export->verdict->leaks ? "error" : "notice";
	const struct place *place = ci_place(export, i, folder, &file);
	char bytes[TEXT_NUMBER_MAX], blocks[TEXT_NUMBER_MAX];
	char *text = NULL;
	size_t len, nr;
	const uint32_t *path = places_path(export->places, i, &nr);
	FILE *message = open_memstream(&text, &len);

	if (!message)
		return -ENOMEM;
	fprintf(message, "%s bytes in %s %s were allocated and not freed:\n",
		text_number(bytes, stack->bytes), text_number(blocks, stack->blocks),
		text_blocks(stack->blocks));
	for (size_t at = 0; at < nr; at++)
		print_place(message, &export->places->all[path[at]], NULL);
	if (fclose(message)) {
		free(text);
		return -ENOMEM;
	}
	if (len && text[len - 1] == '\n')
		text[len - 1] = '\0';
	fprintf(out, "::%s ", level);
	if (*file) {
		fputs("file=", out);
		put_text(out, file, true);
		fprintf(out, ",line=%" PRIu32 ",", place->line);
	}
	fputs("title=", out);
	put_text(out, "leak in ", true);
	put_text(out, place->function, true);
	fputs("::", out);
	put_text(out, text, false);
	fputc('\n', out);
	free(text);
	return 0;
}

int print_github(FILE *out, const struct report_data *export)
{
	const struct verdict *verdict = export->verdict;
	const char *folder = getenv("GITHUB_WORKSPACE");
	char *here = folder ? NULL : getcwd(NULL, 0);
	size_t overruns = export->leaks->overruns->nr;
	char *doubt;
	int err = 0;

	if (verdict->doubt) {
		doubt = text_escape(verdict->doubt);
		if (doubt) {
			fputs("::error title=mleak::", out);
			put_text(out, doubt, false);
			fputc('\n', out);
		} else {
			err = -ENOMEM;
		}
		free(doubt);
	}
	if (overruns)
		fprintf(out, "::error title=mleak::%zu %s; 'mleak report' shows more\n", overruns,
			overruns == 1 ? "block was written beyond its bounds"
				      : "blocks were written beyond their bounds");
	for (size_t i = 0; i < export->view->nr && !err; i++)
		err = put_annotation(out, export, i, folder ? folder : here);
	free(here);
	return err;
}
