/* frame_kind.c - see frame_kind.h */
#include "report/name/frame_kind.h"

#include <string.h>

#include "report/name/symbols.h"

static const char *const marks[] = {" [python]", " [php]", " [ruby]", " [interpreted]"};

const char *frame_kind_mark(const char *module, const char *function)
{
	if (function[0] == '[') /* a remark, which says what it is */
		return "";
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (!strcmp(module, marks[i] + 1))
			return marks[i];
	return strcmp(module, NAMES_GENERATED) ? "" : "_[j]";
}
