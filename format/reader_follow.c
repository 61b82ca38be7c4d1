/* reader_follow.c - a trace that is being written, in a file or through a pipe */
#include <errno.h>
#include <stdlib.h>

#include "format/reader_state.h"

int mlk_reader_follow(struct mlk_reader *r, bool last)
{
	int err = mlk_source_grow(&r->chunks.source, last);

	if (r->step == STEP_END && !r->single)
		r->step = STEP_FIND;
	return err;
}

bool mlk_reader_is_stream(const struct mlk_reader *r)
{
	return r->chunks.source.stream != NULL;
}

bool mlk_reader_stream_ended(const struct mlk_reader *r)
{
	return r->chunks.source.stream && r->chunks.source.stream->ended;
}

void mlk_reader_forget(struct mlk_reader *r, uint64_t offset)
{
	if (r->chunks.source.stream)
		mlk_pipe_forget(r->chunks.source.stream, offset);
}

void mlk_reader_copy_stream(struct mlk_reader *r, int fd)
{
	mlk_pipe_tee(r->chunks.source.stream, fd);
}

int mlk_reader_copied(const struct mlk_reader *r, uint64_t *bytes)
{
	*bytes = r->chunks.source.stream->copied;
	return r->chunks.source.stream->copy_err;
}

int mlk_reader_open_stream(struct mlk_reader **out, int fd)
{
	struct mlk_pipe *stream = calloc(1, sizeof(*stream));
	struct mlk_source source = {.fd = -1, .stream = stream, .shares = true, .growing = true};
	int err, more = 1;

	*out = NULL;
	if (!stream)
		return -ENOMEM;
	stream->fd = fd;
	while (more > 0 && stream->len < MLK_FILE_HEADER)
		more = mlk_pipe_wait(stream);
	/* tried again with each piece that comes: they are few until META is there */
	for (;;) {
		source.size = stream->len;
		err = more < 0 ? more : MLK_E_EMPTY;
		if (more >= 0 && stream->len)
			err = mlk_reader_open_source(out, &source);
		if (err != MLK_E_EMPTY || more <= 0)
			break;
		more = mlk_pipe_wait(stream);
	}
	if (err)
		mlk_pipe_free(stream);
	else
		(*out)->chunks.source.shares = false;
	return err;
}
