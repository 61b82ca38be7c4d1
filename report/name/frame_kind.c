/* frame_kind.c - see frame_kind.h */
#include "report/name/frame_kind.h"

#include <string.h>

#include "report/name/symbols.h"
#include "report/trace/interpreted.h"

const char *frame_kind_mark(const char *module, const char *function)
{
	if (function[0] == '[') /* a remark, which says what it is */
		return "";
	if (!strcmp(module, INTERPRETED_MODULE))
		return " " INTERPRETED_MODULE;
	return strcmp(module, NAMES_GENERATED) ? "" : "_[j]";
}
