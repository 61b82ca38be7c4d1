/* embedded_suppressions.c - see embedded_suppressions.h */
#include "report/filter/embedded_suppressions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "report/base/text.h"

#define SECTION	 ".mleak.suppressions" /* as doc/trace-format.md has it */
#define MAX_TEXT (64 * 1024)

static void warn(const char *path)
{
	char *shown = text_escape(path);

	log_warn("cannot read the result of __lsan_default_suppressions() of '%s' because it is "
		 "not a string literal: give it with --suppressions",
		 shown ? shown : "");
	free(shown);
}

/* Add the suppressions of the module with this path, a string of @len bytes with its NUL. */
static int add(struct suppressions **suppressions, const char *path, const char *text, size_t len)
{
	int err = 0;

	if (len > MAX_TEXT || !memchr(text, '\0', len))
		return 0; /* no recorder makes such a one */
	if (!*text) {
		warn(path);
		return 0;
	}
	if (!*suppressions)
		err = suppressions_new(suppressions);
	return err ? err : suppressions_add(*suppressions, text, path);
}

int embedded_suppressions_add(struct suppressions **suppressions, const struct replay *leaks)
{
	const struct trace_modules *images = replay_modules(leaks);
	int err = 0;

	for (uint32_t i = 0; i < trace_modules_nr(images) && !err; i++) {
		size_t len;
		const char *text = dwunw_module_section(
			replay_unwinder(leaks), trace_modules_module(images, i), SECTION, &len);

		if (text)
			err = add(suppressions, trace_modules_path(images, i), text, len);
	}
	return err;
}
