/* demangled_names.c - see demangled_names.h */
#include "unwind/symbol/demangled_names.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/symbol/demangle.h"

static int make_room(struct dwunw_demangled_names *strings)
{
	uint32_t room = strings->room ? 2 * strings->room : 64;
	char **name;

	if (strings->nr < strings->room)
		return 0;
	name = room > strings->room ? reallocarray(strings->name, room, sizeof(*name)) : NULL;
	if (!name)
		return -1;
	strings->name = name;
	strings->room = room;
	return 0;
}

const char *dwunw_demangled_names_demangled(struct dwunw_demangled_names *strings, const char *raw,
					    size_t len)
{
	uint64_t key = (uint64_t)(uintptr_t)raw;
	uint32_t nr = dwunw_addr_index_find(&strings->index, key);
	char *name;

	if (nr != DWUNW_NOT_FOUND)
		return strings->name[nr];
	name = make_room(strings) ? NULL
	       : strings->mangled ? strndup(raw, len < DWUNW_MAX_NAME ? len : DWUNW_MAX_NAME)
				  : dwunw_demangle(raw, len);
	if (!name || dwunw_addr_index_add(&strings->index, key, strings->nr)) {
		free(name);
		return NULL;
	}
	strings->name[strings->nr++] = name;
	return name;
}

void dwunw_demangled_names_release(struct dwunw_demangled_names *strings)
{
	for (uint32_t i = 0; i < strings->nr; i++)
		free(strings->name[i]);
	free(strings->name);
	dwunw_addr_index_release(&strings->index);
}
