/* file.c - see file.h */
#include "unwind/elf/file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Are files below @path not what they seem?  Some do things as soon as they are opened. */
static bool is_special(const char *path)
{
	static const char *const dirs[] = {"/proc/", "/sys/", "/dev/"};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (!strncmp(path, dirs[i], strlen(dirs[i])))
			return true;
	return false;
}

int dwunw_file_open(const char *path, size_t *size)
{
	char *resolved = realpath(path, NULL);
	struct stat st;
	int fd = -1;

	/* A link like /proc/PID/exe may lead out of there again. */
	if (!resolved || is_special(path) || is_special(resolved))
		goto out;
	/* Opening must not wait for the other end of a FIFO. */
	fd = open(resolved, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		goto out;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    st.st_size > (off_t)DWUNW_MAX_FILE) {
		close(fd);
		fd = -1;
		goto out;
	}
	*size = (size_t)st.st_size;
out:
	free(resolved);
	return fd;
}
