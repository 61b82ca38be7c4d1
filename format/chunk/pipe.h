/* pipe.h - the bytes of a trace that come through a pipe: a window of them, which moves on */
#ifndef MLK_PIPE_H
#define MLK_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes from @base on that were read and are still wanted. */
struct mlk_pipe {
	int fd; /* borrowed */
	uint8_t *bytes;
	size_t len, room;
	uint64_t base; /* offset of the first of them in the trace */
	bool ended;    /* the other side closed it */
	bool copies;   /* all bytes go to copy_fd, borrowed, too */
	int copy_fd;
	int copy_err;	 /* why not all did, -errno of write(2) */
	uint64_t copied; /* bytes */
};

/* Wait for bytes from @fd, which is borrowed until mlk_pipe_free(), and take them in.  Returns 1,
 * 0: there are no more, -ENOMEM or -errno of read(2). */
int mlk_pipe_wait(struct mlk_pipe *s);

/* Take in what there is, without waiting for more, unless the window is large already: who writes
 * has to wait then.  Returns 0, -ENOMEM or -errno of read(2). */
int mlk_pipe_take(struct mlk_pipe *s);

/* Write what is there, which must be all from the beginning on, and what will come to @fd, too: to
 * be borrowed until mlk_pipe_free().  The first error ends it. */
void mlk_pipe_tee(struct mlk_pipe *s, int fd);

/* Copy up to @len bytes from @offset to @to.  Returns how many there were. */
size_t mlk_pipe_copy(const struct mlk_pipe *s, uint64_t offset, void *to, size_t len);

/* What is before @offset is not wanted any more. */
void mlk_pipe_forget(struct mlk_pipe *s, uint64_t offset);

/* Release @s; NULL is allowed. */
void mlk_pipe_free(struct mlk_pipe *s);

#endif
