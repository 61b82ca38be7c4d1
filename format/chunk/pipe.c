/* pipe.c - see pipe.h */
#include "format/chunk/pipe.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_ROOM  (1u << 20)
#define MOST_WINDOW (32u << 20) /* several of the largest chunks */

/* Have room for bytes behind those that are there.  Returns 0 or -ENOMEM. */
static int make_room(struct mlk_pipe *s)
{
	size_t room = s->room ? 2 * s->room : FIRST_ROOM;
	uint8_t *bytes;

	if (s->len < s->room)
		return 0;
	bytes = realloc(s->bytes, room);
	if (!bytes)
		return -ENOMEM;
	s->bytes = bytes;
	s->room = room;
	return 0;
}

/* Write @len bytes at @bytes to where they go, too. */
static void copy_on(struct mlk_pipe *s, const uint8_t *bytes, size_t len)
{
	size_t done = 0;

	while (s->copies && !s->copy_err && done < len) {
		ssize_t n = write(s->copy_fd, bytes + done, len - done);

		if (n > 0)
			done += (size_t)n;
		else if (!n || errno != EINTR)
			s->copy_err = n ? -errno : -EIO;
	}
	s->copied += done;
}

void mlk_pipe_tee(struct mlk_pipe *s, int fd)
{
	s->copies = true;
	s->copy_fd = fd;
	copy_on(s, s->bytes, s->len);
}

/* One read(2), which may wait.  Returns as mlk_pipe_wait(). */
static int read_once(struct mlk_pipe *s)
{
	int err = make_room(s);
	ssize_t n;

	if (err)
		return err;
	do
		n = read(s->fd, s->bytes + s->len, s->room - s->len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	s->ended = !n;
	copy_on(s, s->bytes + s->len, (size_t)n);
	s->len += (size_t)n;
	return n > 0;
}

int mlk_pipe_wait(struct mlk_pipe *s)
{
	struct pollfd any = {.fd = s->fd, .events = POLLIN};
	int got;

	if (s->ended)
		return 0;
	do {
		/* it may have been set to return at once, by whoever else has it */
		poll(&any, 1, -1);
		got = read_once(s);
	} while (got == -EAGAIN);
	return got;
}

int mlk_pipe_take(struct mlk_pipe *s)
{
	struct pollfd any = {.fd = s->fd, .events = POLLIN};
	int got = 1;

	while (!s->ended && got > 0 && s->len < MOST_WINDOW && poll(&any, 1, 0) > 0)
		got = read_once(s);
	return got < 0 && got != -EAGAIN ? got : 0;
}

size_t mlk_pipe_copy(const struct mlk_pipe *s, uint64_t offset, void *to, size_t len)
{
	uint64_t from = offset - s->base;

	if (offset < s->base || from >= s->len)
		return 0;
	if (len > s->len - from)
		len = s->len - (size_t)from;
	memcpy(to, s->bytes + from, len);
	return len;
}

void mlk_pipe_forget(struct mlk_pipe *s, uint64_t offset)
{
	size_t less;

	if (offset <= s->base)
		return;
	less = offset - s->base < s->len ? (size_t)(offset - s->base) : s->len;
	memmove(s->bytes, s->bytes + less, s->len - less);
	s->len -= less;
	s->base += less;
}

void mlk_pipe_free(struct mlk_pipe *s)
{
	if (!s)
		return;
	free(s->bytes);
	free(s);
}
