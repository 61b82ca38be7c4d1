/* code_mapping.c - see code_mapping.h */
#include "report/trace/code_mapping.h"

#include <string.h>

static bool is_generated(const struct mlk_mapping *mapping)
{
	static const char *const kinds[] = {"[anon", "[heap]", "//anon", "/memfd:"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strncmp(mapping->path, kinds[i], strlen(kinds[i])))
			return !mapping->id.len;
	return !mapping->id.len && !mapping->path[0];
}

int code_mapping_copy(struct dwunw_mapping *to, const struct mlk_mapping *from,
		      struct trace_modules *images)
{
	to->start = from->start;
	to->end = from->end;
	to->module = DWUNW_NO_MODULE;
	if (is_generated(from)) {
		to->flags = DWUNW_MAPPING_GENERATED;
		return 0;
	}
	to->file_offset = from->offset;
	if (!from->id.len && from->path[0] != '/')
		return 0;
	return trace_modules_intern(images, &from->id, from->path, &to->module);
}
