/* tracer_list.c - see tracer_list.h */
#include "record/ptrace/tracer_list.h"

#include <stdlib.h>
#include <string.h>

bool tracer_list_push(struct tracer_list *l, struct tracer_event event)
{
	if (l->nr == l->room) {
		size_t room = l->room ? l->room * 2 : 16;
		struct tracer_event *v = realloc(l->v, room * sizeof(*v));

		if (!v)
			return false;
		l->v = v;
		l->room = room;
	}
	l->v[l->nr++] = event;
	return true;
}

bool tracer_list_pop(struct tracer_list *l, struct tracer_event *event)
{
	if (!l->nr)
		return false;
	*event = l->v[0];
	memmove(l->v, l->v + 1, --l->nr * sizeof(*l->v));
	return true;
}
