/* source.h - where a trace is read from: a file or memory */
#ifndef MLK_SOURCE_H
#define MLK_SOURCE_H

#include <stddef.h>
#include <stdint.h>

/* The bytes of a trace. */
struct mlk_source {
	int fd;		    /* -1: from memory */
	const uint8_t *mem; /* borrowed */
	uint64_t size;	    /* bytes there are */
};

/* Open the regular file @path.  Returns 0, -errno, -EISDIR, or -EINVAL for what is no regular file.
 */
int mlk_source_open(struct mlk_source *s, const char *path);

/* Copy up to @len bytes from @offset to @to.  Returns the bytes there were, or -errno. */
int64_t mlk_source_read(const struct mlk_source *s, uint64_t offset, void *to, size_t len);

/* Close the file, if there is one; once more does nothing. */
void mlk_source_close(struct mlk_source *s);

#endif
