/* streams.c - the threads of a chunk */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/event/events.h"

struct mlk_stream *mlk_stream_add(struct mlk_stream **streams, size_t *nr, size_t *room,
				  const uint32_t id[2])
{
	const size_t before = *room;
	struct mlk_stream *s;

	if (mlk_grow(streams, *nr, room, sizeof(*s)))
		return NULL;
	memset(*streams + before, 0, (*room - before) * sizeof(*s));
	s = &(*streams)[(*nr)++];
	s->tgid = id[0];
	s->tid = id[1];
	s->end = 0;
	memset(s->regs, 0, sizeof(s->regs));
	mlk_image_reset(&s->image);
	mlk_image_reset(&s->raw);
	return s;
}

void mlk_streams_trim(struct mlk_stream *streams, size_t room)
{
	for (size_t i = 0; i < room; i++) {
		mlk_image_release(&streams[i].image);
		mlk_image_release(&streams[i].raw);
	}
}

int mlk_append(uint64_t **list, size_t *nr, size_t *room, uint64_t value)
{
	if (*nr == *room && mlk_grow(list, *nr, room, sizeof(value)))
		return -ENOMEM;
	(*list)[(*nr)++] = value;
	return 0;
}
