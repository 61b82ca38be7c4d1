/* memory_list.c - see memory_list.h */
#include "record/trace/memory_list.h"

#include "format/writer.h"

#define WAIT_NS 3500000000u /* a recording that is killed lacks as much */

int memory_list_add(struct memory_list *list, struct mlk_writer *w, const struct mlk_memory *sample)
{
	list->all[list->nr++] = *sample;
	if (list->nr < MEMORY_LIST_MAX && sample->time_ns < list->all[0].time_ns + WAIT_NS)
		return 0;
	return memory_list_flush(list, w);
}

int memory_list_flush(struct memory_list *list, struct mlk_writer *w)
{
	const size_t nr = list->nr;

	list->nr = 0;
	return mlk_writer_memory(w, list->all, nr);
}
