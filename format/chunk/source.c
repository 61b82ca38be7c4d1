/* source.c - bytes at an offset, from a file or from memory */
#include "format/chunk/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int mlk_source_open(struct mlk_source *s, const char *path)
{
	struct stat st;
	int err;

	/* O_NONBLOCK: a FIFO must be refused, not waited for. */
	*s = (struct mlk_source){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
	if (s->fd < 0)
		return -errno;
	if (fstat(s->fd, &st))
		err = -errno;
	else if (S_ISDIR(st.st_mode))
		err = -EISDIR;
	else
		err = S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (err)
		mlk_source_close(s);
	else
		s->size = (uint64_t)st.st_size;
	return err;
}

int64_t mlk_source_read(const struct mlk_source *s, uint64_t offset, void *to, size_t len)
{
	size_t done = 0;

	if (!len || offset >= s->size)
		return 0;
	if (len > s->size - offset)
		len = (size_t)(s->size - offset);
	if (s->fd < 0) {
		memcpy(to, s->mem + offset, len);
		return (int64_t)len;
	}
	while (done < len) {
		ssize_t n = pread(s->fd, (uint8_t *)to + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break; /* the file became shorter */
		done += (size_t)n;
	}
	return (int64_t)done;
}

void mlk_source_close(struct mlk_source *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}
